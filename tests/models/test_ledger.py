"""The ledger of an MDP: what it counts, what it plans, when it begins anew, and what plays no part in it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from driftformer.environments.mdp import Model, TabularMDP, backward_induction
from driftformer.environments.mdp_families import Given
from driftformer.models import ledger as ledgers
from driftformer.models.configuration import PolicyConfig
from driftformer.models.ledger import ALARMS, FORGETS, MEMORIES, Ledger, empty, learn, read, unit
from driftformer.models.tabular import TabularPolicy
from driftformer.randomness import Randomness

S, A, H = 4, 3, 3
LIKE = torch.zeros((), dtype=torch.double)


def history(episodes: int, batch: int = 5, seed: int = 0) -> list[tuple[Tensor, int, Tensor, Tensor]]:
    """(state, stage, action, reward) of each step; an episode begins in state 0."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(most: int) -> Tensor:
        return torch.randint(most, (batch,), generator=generator)

    steps = []
    for t in range(episodes * H):
        state = drawn(S) if t % H else torch.zeros(batch, dtype=torch.long)
        reward = torch.rand(batch, generator=generator, dtype=torch.double).round(decimals=1)
        steps.append((state, t % H, drawn(A), reward))
    return steps


def fed(steps: list[tuple[Tensor, int, Tensor, Tensor]], differ: bool = False) -> Ledger:
    ledger = empty(len(steps[0][0]), S, A, H, H if differ else 1, LIKE)
    for step in steps:
        learn(ledger, *step)
    return ledger


@pytest.mark.parametrize("differ", [False, True])
def test_the_memory_that_keeps_everything_counts_as_a_plain_loop_does(differ: bool) -> None:
    steps = history(7)
    ledger = fed(steps, differ)
    moves, paid = torch.zeros_like(ledger.moves[:, 0]), torch.zeros_like(ledger.paid[:, 0])
    for t, (state, stage, action, reward) in enumerate(steps):
        for b in range(len(state)):
            at = (stage if differ else 0, int(state[b]), int(action[b]))
            paid[b, 0][at] += 1
            paid[b, 1][at] += reward[b]
            paid[b, 2][at] += reward[b] ** 2
            if stage < H - 1:  # what follows the last step of an episode is the next one, whatever was played
                moves[b][(*at, int(steps[t + 1][0][b]))] += 1
    assert torch.equal(ledger.moves[:, 0], moves)
    assert torch.allclose(ledger.paid[:, 0], paid, atol=1e-12)


def test_with_many_visits_every_plan_is_backward_induction() -> None:
    drawn = torch.rand(2, 1, S, A, S, generator=torch.Generator().manual_seed(1), dtype=torch.double)
    model = Model(drawn[..., 0] / 2, drawn / drawn.sum(-1, keepdim=True))
    ledger = empty(2, S, A, H, 1, LIKE)
    visits = 1e7
    ledger.moves[:] = visits * model.transitions.unsqueeze(1)
    ledger.paid[:, :, 0] = visits
    ledger.paid[:, :, 1] = visits * model.rewards.unsqueeze(1)
    ledger.paid[:, :, 2] = visits * model.rewards.unsqueeze(1) ** 2
    ledgers.make_plans(ledger)
    exact = backward_induction(model, H)  # [B, H, S, A]
    worth = exact.amax(dim=3)[:, None, 1:].expand(-1, MEMORIES, -1, -1)
    assert torch.allclose(ledger.ahead[:, :, :-1, 0], worth, atol=1e-5)
    assert torch.allclose(ledger.ahead[:, :, :-1, 1], worth, atol=1e-5)
    assert float(ledger.ahead[:, :, :, 2].max()) < 1e-5
    for stage in range(H):
        for state in range(S):
            centred = exact[:, stage, state] - exact[:, stage, state].mean(1, keepdim=True)  # [B, A]
            told = read(ledger, torch.full((2,), state), stage).arms[..., : 2 * MEMORIES]
            assert torch.allclose(told * unit(ledger, stage)[:, None, None], centred.unsqueeze(2), atol=1e-5)


def test_what_was_never_seen_is_hoped_to_pay_the_most() -> None:
    ledger = empty(1, S, A, H, 1, LIKE)
    assert ledger.ahead[0, 0, :, 1, 0].tolist() == [2, 1, 0]


def test_what_was_tried_is_hoped_for_less_from_the_next_step_on() -> None:
    ledger, here = empty(1, S, A, H, 1, LIKE), torch.zeros(1, dtype=torch.long)
    learn(ledger, here, 0, here + 1, torch.zeros(1, dtype=torch.double))  # a step that pays nothing and leads back
    hoped = read(ledger, here, 1).arms[0, :, MEMORIES : 2 * MEMORIES]  # [A, K]
    assert bool((hoped[1] < hoped[[0, 2]].min(dim=0).values).all())


def test_names_of_states_and_actions_play_no_part() -> None:
    steps, states, actions = history(6), torch.tensor([0, 3, 1, 2]), torch.tensor([2, 0, 1])
    plain = fed(steps)
    renamed = fed([(states[state], stage, actions[action], reward) for state, stage, action, reward in steps])
    policy = TabularPolicy(PolicyConfig("tabular", layers=1, heads=2, width=16)).double()
    torch.nn.init.normal_(policy.head.weight)
    for stage in range(H):
        here = torch.arange(5) % S
        one, other = read(plain, here, stage), read(renamed, states[here], stage)
        assert torch.allclose(one.problem, other.problem, atol=1e-9)
        assert torch.allclose(one.arms, other.arms[:, actions], atol=1e-9)
        assert torch.allclose(policy(one).logits, policy(other).logits[:, actions], atol=1e-6)
        assert torch.equal(unit(plain, stage), unit(renamed, stage))


def test_problems_of_a_batch_do_not_meet() -> None:
    steps = history(6)
    alone = fed([tuple(part[2:3] if isinstance(part, Tensor) else part for part in step) for step in steps])  # type: ignore[misc]
    together = fed(steps)
    one, other = read(alone, torch.zeros(1, dtype=torch.long), 0), read(together, torch.zeros(5, dtype=torch.long), 0)
    assert torch.allclose(one.arms[0], other.arms[2], atol=1e-12)
    assert torch.allclose(one.problem[0], other.problem[2], atol=1e-12)


def played(rewards: list[float], slips: float = 0.0, episodes: int = 300, seed: int = 0) -> Ledger:
    """A ledger that saw an MDP of two states, in which an action pays rewards[0] in the first half, then rewards[1]."""
    pays = torch.zeros(2, 1, 2, 2, dtype=torch.double)
    pays[:, 0, 0, 0] = torch.tensor(rewards)
    moves = torch.tensor([[[1 - slips, slips], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]], dtype=torch.double)
    changes = episodes // 2

    def half(episode: int, reward: Tensor, transition: Tensor) -> tuple[Tensor, Tensor]:
        return (
            (reward, transition)
            if episode < changes
            else (torch.full_like(reward, rewards[1]) * (reward > 0), transition)
        )

    from driftformer.environments.mdp_drift import Own

    mdp = TabularMDP(family=Given(pays, moves.expand(2, 1, -1, -1, -1)), stages=2, episodes=episodes, drift=Own(half))
    randomness = Randomness(seed)
    world = mdp.reset(randomness)
    ledger = empty(len(world.values), 2, 2, 2, 1, world.values)
    while world.t <= mdp.horizon:
        state, stage = world.observation.state, (world.t - 1) % 2
        action = torch.zeros(len(state), dtype=torch.long)
        reward, _, world = mdp.step(world, action, randomness)
        learn(ledger, state, stage, action, reward)
    return ledger


def test_a_memory_begins_anew_where_rewards_change_and_keeps_its_moves() -> None:
    ledger, first = played([0.9, 0.3]), len(FORGETS)
    ages = ledger.since[:, :, 0]  # [B, ALARMS] of rewards
    assert bool((ages < 150).all())
    assert bool((ages > 140).all())  # within a few episodes of the change
    assert bool((ledger.since[:, :, 1] == 300).all())  # moves never changed
    mean = ledger.paid[:, :, 1, 0, 0, 0] / ledger.paid[:, :, 0, 0, 0, 0]
    assert torch.allclose(mean[:, first:], torch.tensor(0.3), atol=1e-4)
    assert torch.allclose(mean[:, 0], torch.tensor(0.6), atol=0.02)


def test_rare_slips_are_no_alarm() -> None:
    """A move with a chance of .03 in 300 episodes of 64 problems: the cautious memory may begin anew in few of them."""
    ledger = played([0.9, 0.9], slips=0.03)
    assert float((ledger.since[:, len(ALARMS) - 1] < 300).any(dim=1).double().mean()) < 0.15


def test_a_new_policy_shares_the_optimism_of_the_cautious_memory() -> None:
    ledger = fed(history(6))
    policy = TabularPolicy(PolicyConfig("tabular", layers=1, heads=2, width=16)).double()
    known = read(ledger, torch.zeros(5, dtype=torch.long), 0)
    verdict = policy(known)
    optimist = known.arms[..., MEMORIES + MEMORIES - 1]
    assert float(torch.corrcoef(torch.stack([verdict.logits.flatten(), optimist.flatten()]))[0, 1]) > 0.9
