"""Fine-tuning on regret: its gradient is that of the expected regret, and what it subtracts does not change it."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from driftformer.models.incontext import InContextPolicy
from driftformer.pretraining.data import OwnRollouts
from driftformer.pretraining.losses import advantages, regret_loss
from driftformer.pretraining.play import Player
from driftformer.pretraining.processes import Part
from driftformer.pretraining.recipes import recipe_of
from driftformer.pretraining.run import policy_config
from driftformer.pretraining.worlds import worlds_of
from driftformer.randomness import Randomness
from driftformer.simulation.tape import problems_of


def alone(value: Tensor) -> Tensor:
    """The mean over one process."""
    return value


def test_advantages_count_only_what_is_still_to_come_against_the_same_problem() -> None:
    expected = torch.tensor([[1.0, 2.0, 4.0], [9.0, 0.0, 0.0], [1.0, 6.0, 0.0], [9.0, 2.0, 2.0]])  # 2 rollouts of 2
    found = advantages(expected, 2, alone)
    raw = torch.tensor([[0.0, 2.0, 0.0], [-2.0, -1.0, 0.0], [0.0, -2.0, 0.0], [2.0, 1.0, 0.0]])
    assert torch.allclose(found, raw / raw.square().mean(dim=0, keepdim=True).sqrt().clamp(min=1e-6))


def test_the_last_round_has_no_future_and_descends_on_its_exact_regret() -> None:
    torch.manual_seed(0)
    logits = torch.randn(4, 1, 3, requires_grad=True)
    gaps, arms = torch.rand(4, 1, 3), torch.randint(3, (4, 1))
    loss, regret = regret_loss(logits, arms, gaps, count=2, future=0.3, average=alone)
    exact = (logits.softmax(2) * gaps).sum(2).mean()
    assert torch.allclose(loss, exact)
    assert torch.allclose(regret, exact)


def test_its_gradient_is_the_exact_rounds_plus_the_weighted_score_function() -> None:
    torch.manual_seed(0)
    logits = torch.randn(6, 5, 3, dtype=torch.double, requires_grad=True)
    gaps, arms = torch.rand(6, 5, 3).double(), torch.randint(3, (6, 5))
    loss, _ = regret_loss(logits, arms, gaps, count=3, future=0.7, average=alone)
    (slope,) = torch.autograd.grad(loss, logits)
    policy = logits.detach().float().softmax(2).double()
    expected = (policy * gaps).sum(2)
    rounds = policy * (gaps - expected.unsqueeze(2))  # of the expected regret of each round
    score = torch.nn.functional.one_hot(arms, 3) - policy  # of the log-probability of the arm that was played
    by_hand = (rounds + 0.7 * advantages(expected, 3, alone).unsqueeze(2) * score) / 30
    assert torch.allclose(slope, by_hand, atol=1e-6)


def test_repeated_problems_stand_copy_after_copy() -> None:
    for world in worlds_of("tiny"):
        once = problems_of(world.environment, Randomness(0, size=6))
        thrice = once.repeat(3)
        for copy, row in itertools.product(range(3), range(6)):
            assert torch.equal(thrice.features[copy * 6 + row], once.features[row])
            assert torch.equal(thrice.values[copy * 6 + row], once.values[row])


def test_every_step_has_its_own_problems_and_its_rollouts_share_problem_and_noise() -> None:
    recipe = recipe_of("tiny", tuning_tokens=30 * 4 * 8, shards=2)  # 4 problems, 8 rollouts
    simulator = OwnRollouts(worlds_of("tiny"), recipe, 4, torch.device("cpu"), Part(2))
    player = Player(InContextPolicy(policy_config(recipe)))
    seen = [simulator.roll(step, player) for step in range(20)]
    first = [rolled.trajectories.on_offer.values[:4].sum().item() for rolled in seen]
    assert len(set(first)) == 20
    for rolled in seen:
        played, tape = rolled.trajectories, rolled.trajectories.on_offer
        means = tape.values.view(8, 4, 30, 4)
        assert torch.equal(means[0], means[7])
        paid = tape.values.gather(2, played.arms.unsqueeze(2)).squeeze(2)
        noise = (played.rewards - paid).view(8, 4, 30)
        assert torch.allclose(noise[0], noise[5], atol=1e-5)
        assert float(noise.std()) > 0.1
        assert not torch.equal(played.arms[:4], played.arms[4:8])
    again = OwnRollouts(worlds_of("tiny"), recipe, 4, torch.device("cpu"), Part(2)).roll(19, player)  # after a restart
    assert torch.equal(again.trajectories.arms, seen[19].trajectories.arms)
    assert torch.equal(again.trajectories.rewards, seen[19].trajectories.rewards)


def test_tuning_shares_its_problems_among_its_updates() -> None:
    recipe = recipe_of("tiny")
    rows = recipe.tuning_tokens // 30
    assert rows % recipe.tuning_rollouts == 0
    assert rows // recipe.tuning_rollouts >= recipe.tuning_updates
