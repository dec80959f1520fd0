"""Agents at work: what every agent of the registry keeps to in a service, for one live problem and for many."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from driftformer.agents.base import ProblemShape
from driftformer.agents.reference import NoInfo
from driftformer.agents.registry import AGENTS, ALIASES, make_agent
from driftformer.agents.services.online import Online, OnlineMany, online
from driftformer.agents.services.propensity import Coins
from driftformer.agents.services.rounds import Decision
from driftformer.agents.services.scaling import Scaler
from driftformer.environments.registry import make_env
from driftformer.errors import InputError
from driftformer.problem import Observation, Traits, why_not
from driftformer.randomness import Randomness, Stream
from driftformer.simulation.tape import lay_out

BANDIT = Traits(one_hot=True, same_arms=True)
ORDINARY = [name for name, entry in AGENTS.items() if not entry.privileged and "." in str(entry.where)]
FOR_MDPS = [name for name in [*ORDINARY, *ALIASES] if why_not(make_agent(name), BANDIT) is not None]
DRAWN = [
    "random",
    "thompson",
    "epsilon-greedy",
    "beta-thompson",
    "discounted-thompson",
    "master",
    "policy",
    "restart@base=p",
]
PLAYING = [name for name in [*ORDINARY, *ALIASES] if name not in FOR_MDPS]
EVERY = [*PLAYING, "policy:drift", "policy:cosine", "policy:high", "restart@base=policy:drift"]
ARMS, DIM = 3, 4
Array = np.ndarray


@pytest.mark.parametrize("name", FOR_MDPS)
def test_agents_for_mdps_are_refused_in_words(name: str) -> None:
    with pytest.raises(InputError, match="cannot be put to work: it is made for MDPs and needs states and episodes"):
        online(make_agent(name))


def counts_arms(name: str) -> bool:
    """Whether an agent plays arms without features only."""
    return why_not(make_agent(name), Traits(same_arms=True)) is not None


def fixed_arms(name: str) -> bool:
    """Whether it needs the same arms in every round."""
    return counts_arms(name) or why_not(make_agent(name), Traits(one_hot=True)) is not None


class World:
    """Arms on offer as an agent takes them, always the same for the same round, and a reward for each."""

    def __init__(self, name: str, dim: int = DIM) -> None:
        self.fixed, self.counts, self.dim = fixed_arms(name), counts_arms(name), dim

    def offer(self, t: int, user: int = 0, arms: int = ARMS) -> Array:
        if self.counts:
            return np.eye(ARMS)
        return np.random.default_rng([0 if self.fixed else t, user]).uniform(-1, 1, (arms, self.dim))

    def reward(self, t: int, user: int, arm: int) -> float:
        return float(np.random.default_rng([9, t, user]).uniform(0, 1, 300)[arm])


def play(service: Online, world: World, rounds: range, user: int = 0, delay: int = 0) -> list[int]:
    """Arms that are chosen where every third reward comes late and every seventh never; or all of them late."""
    arms: list[int] = []
    for t in rounds:
        arms.append(service.act(world.offer(t, user)))
        late = t - delay if delay else t - 2
        if delay == 0 and t % 3 and t % 7:
            service.update(world.reward(t, user, arms[-1]))
        if late >= rounds.start and (delay or (late % 3 == 0 and late % 7)):
            service.update(world.reward(late, user, arms[late - rounds.start]), round=late + 1)
    return arms


@pytest.mark.parametrize("name", EVERY)
def test_every_agent_acts_decides_learns_late_and_goes_on_from_a_file(name: str, tmp_path: Path) -> None:
    world, whole, broken = World(name), make_agent(name).online(seed=5), make_agent(name).online(seed=5)
    before = [play(service, world, range(12)) for service in (whole, broken)]
    assert before[0] == before[1]
    waiting = broken.act(world.offer(12)), whole.act(world.offer(12))
    assert waiting[0] == waiting[1]
    broken.save(tmp_path / "state")
    restored = make_agent(name).online(state=tmp_path / "state")
    assert restored.round == 13
    for service in (whole, restored):
        assert service.update(1.0, round=1), "lost so far"
        assert service.update(0.5), "the open round is not lost"
        with pytest.raises(InputError, match="round 13 has its reward already"):
            service.update(0.5)
    assert play(restored, world, range(13, 22)) == play(whole, world, range(13, 22))
    likely = [service.probabilities(world.offer(22)) for service in (whole, restored)]
    assert np.allclose(*likely, atol=1e-5)
    decisions = [service.decide(world.offer(22)) for service in (whole, restored)]
    assert decisions[0].arm == decisions[1].arm
    assert isinstance(decisions[0], Decision)
    assert decisions[0].round == 23
    assert decisions[0].probability == pytest.approx(likely[0][decisions[0].arm])
    assert likely[0].sum() == pytest.approx(1)
    assert whole.exact is not None


@pytest.mark.parametrize("name", EVERY)
def test_every_agent_plays_many_problems_as_it_plays_each(name: str, tmp_path: Path) -> None:
    """All rewards come three rounds late, for some users at a time; agents that draw have other random numbers."""
    world, users = World(name), 5
    many = make_agent(name).online(problems=users)
    assert isinstance(many, OnlineMany)
    arms = np.zeros((users, 10), int)
    for t in range(10):
        who = [user for user in range(users) if (user + t) % 4]
        given = np.stack([world.offer(t, user) for user in who])
        arms[who, t] = many.act(given, users=who)
        for user in who:
            if many.round(user) > 3:
                many.update([world.reward(many.round(user) - 4, user, 0)], users=[user], rounds=[many.round(user) - 3])
        if t == 6:
            many.save(tmp_path / "state")
            many = make_agent(name).online(state=tmp_path / "state")
            assert many.problems == users
    if name.startswith(tuple(DRAWN)):
        return
    for user in range(users):
        alone, rounds = make_agent(name).online(), [t for t in range(10) if (user + t) % 4]
        for number, t in enumerate(rounds, start=1):
            assert alone.act(world.offer(t, user)) == arms[user, t]
            if number > 3:
                alone.update(world.reward(number - 4, user, 0), round=number - 3)


@pytest.mark.parametrize("name", EVERY)
def test_every_agent_explores_learns_from_others_and_takes_only_what_is_offered(name: str) -> None:
    world, service = World(name), make_agent(name).online(explore=0.3)
    for t in range(6):
        service.observe(world.offer(t), t % ARMS, world.reward(t, 0, t % ARMS))
    assert service.round == 0, "others decided"
    offered = np.array([True, False, True])
    for t in range(6, 14):
        likely = service.probabilities(world.offer(t), offered)
        assert likely[1] == 0
        assert likely.sum() == pytest.approx(1)
        assert likely.min(where=offered, initial=1) >= 0.15 - 1e-9, "a floor under every arm on offer"
        decision = service.decide(world.offer(t), offered)
        assert decision.arm != 1
        assert decision.probability == pytest.approx(likely[decision.arm])
        service.update(world.reward(t, 0, decision.arm))


@pytest.mark.parametrize("name", [name for name in EVERY if not fixed_arms(name)])
def test_every_agent_with_features_takes_raw_columns_and_more_or_fewer_arms(name: str, tmp_path: Path) -> None:
    world, service = World(name), make_agent(name).online(scale=True)
    for t in range(12):
        columns = world.offer(t, arms=2 + t % 4) * [1, 1e-9, 1e30, 0] + [0, 5, 1e6, 7]
        columns[0, t % 4] = np.nan
        if t == 6:
            service.save(tmp_path / "state")
            service = make_agent(name).online(state=tmp_path / "state")
        assert np.isfinite(service.probabilities(columns)).all()
        service.act(columns)
        service.update(world.reward(t, 0, 0))
    with pytest.raises(InputError, match="numbers beyond 1e"):
        service.act(np.full((2, DIM), np.inf))


def in_blocks(context: Array, arms: int = ARMS) -> Array:
    """Features of all arms, each with a block of its own."""
    return np.kron(np.eye(arms), context)


@pytest.mark.parametrize(
    "name", ["linucb", "adaptive-linucb", "sliding-window-linucb", "policy:drift", "policy:cosine"]
)
def test_a_context_that_arms_share_is_read_as_features_in_blocks(name: str) -> None:
    shared, plain = make_agent(name).online(arms=ARMS), make_agent(name).online()
    rng, offered = np.random.default_rng(0), np.array([True, False, True])
    for t in range(12):
        context, mask, reward = rng.uniform(-1, 1, DIM), offered if t % 2 else None, rng.uniform()
        blocks = in_blocks(np.append(context, 1.0))
        np.testing.assert_allclose(shared.probabilities(context, mask), plain.probabilities(blocks, mask), atol=1e-5)
        assert shared.act(context, mask) == plain.act(blocks, mask)
        for one in (shared, plain):
            one.update(reward)
    shared.observe(context, 2, 0.5)
    plain.observe(blocks, 2, 0.5)
    np.testing.assert_allclose(shared.probabilities(context), plain.probabilities(blocks), atol=1e-5)


def test_raw_columns_of_a_shared_context_are_scaled_before_they_are_put_into_blocks(tmp_path: Path) -> None:
    """Afterwards the zeros of the other arms would count as values of the column."""
    many, plain = (
        make_agent("linucb").online(arms=ARMS, scale=True, problems=2),
        make_agent("linucb").online(problems=2),
    )
    rng, scaler = np.random.default_rng(0), Scaler.fresh(DIM)
    for t in range(20):
        contexts = rng.normal(1012, 8, (2, DIM))
        contexts[0, t % DIM] = np.nan
        scaler = scaler.after(contexts)
        blocks = np.stack([in_blocks(row) for row in scaler.scale(contexts)])
        arms = many.act(contexts)
        assert arms.tolist() == plain.act(blocks).tolist()
        for one in (many, plain):
            one.update(np.sin(contexts[1]).sum() * arms)
        if t == 9:
            many.save(tmp_path / "state")
            many = make_agent("linucb").online(state=tmp_path / "state")


@pytest.mark.parametrize(
    ("name", "call", "message"),
    [
        ("linucb", lambda one: one.act(3), r"features has shape \(\); give \[dim\], the context that all arms share"),
        ("linucb", lambda one: one.act(np.eye(3)), r"features has shape \(3, 3\); give \[dim\]"),
        ("linucb", lambda one: one.act([1.0, 2.0], [True, False]), r"give an array \[3\] of them"),
        ("linucb", lambda one: one.observe([1.0], 3, 1.0), r"arm is 3; give one of 0\.\.2"),
        (
            "policy:cosine",
            lambda one: one.act(np.ones(20)),
            "63 dimensions with scale or arms, but .* takes at most 32",
        ),
        ("ucb", None, "arms is 3, but agent 'ucb' reads no context"),
        ("detection-linucb", None, "arms is 3, but agent 'detection' reads no context"),
    ],
)
def test_contexts_that_cannot_be_are_refused(name: str, call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(make_agent(name).online(arms=3)) if call else make_agent(name).online(arms=3)


@pytest.mark.parametrize("name", [name for name in ORDINARY if name not in [*DRAWN, *FOR_MDPS]])
def test_choices_are_those_of_the_batch_on_the_same_history(name: str) -> None:
    """Agents that draw nothing, in float64 as in a service: every one of 64 problems, a hundred rounds."""
    agent, rounds = make_agent(name), 100
    kind = "bernoulli" if counts_arms(name) else "high"
    environment = make_env(kind, horizon=rounds, arms=5) if counts_arms(name) else make_env(kind, horizon=rounds, dim=6)
    tape = lay_out(environment, Randomness(3, dtype=torch.float64))
    state, none = agent.init(tape.shape), Randomness(0, dtype=torch.float64).stream("agent")
    service = online(agent, problems=64, horizon=rounds)
    for t in range(rounds - 1):
        features = tape.features[:, t].contiguous()
        with torch.inference_mode():
            arm, info = agent.act(state, Observation(features), none)
            reward = tape.values[:, t].gather(1, arm[:, None])[:, 0]
            state = agent.update(state, Observation(features), arm, reward, info)
        assert service.act(features.numpy()).tolist() == arm.tolist(), f"round {t + 1}"
        service.update(reward.numpy())


@pytest.mark.parametrize("name", ["linucb", "thompson", "ucb", "policy:drift", "policy:cosine", "policy:high"])
def test_rounds_that_others_decided_teach_what_rounds_of_its_own_teach(name: str) -> None:
    world, own, warm = World(name), make_agent(name).online(), make_agent(name).online()
    for t in range(8):
        arm = own.act(world.offer(t))
        own.update(world.reward(t, 0, arm))
        warm.observe(world.offer(t), arm, world.reward(t, 0, arm))
    likely = [
        one._service.memory.ask_apart([0], _seen(one, world), Coins(1, 1, 1, torch.float64)) for one in (own, warm)
    ]
    assert torch.allclose(likely[0][1].values, likely[1][1].values, atol=1e-5)


def _seen(service: Online, world: World) -> Observation:
    given = np.pad(world.offer(9), ((0, 0), (0, service._service.columns - world.offer(9).shape[1])))
    return Observation(torch.from_numpy(given).to(service._service.dtype).unsqueeze(0))


@pytest.mark.parametrize(
    "name", ["thompson", "master-thompson", "epsilon-greedy@epsilon=0.4", "policy:drift", "random"]
)
def test_logged_probabilities_are_those_of_the_draws(name: str) -> None:
    """Inverse propensities add up: the mean of 1/p over the arms that were drawn is the number of arms."""
    world, service = World(name), make_agent(name).online(explore=0.2)
    drawn, told = np.zeros(ARMS), np.zeros(ARMS)
    for t in range(5):
        service.observe(world.offer(0), t % ARMS, 0.8 * (t % ARMS == 1))
    for _ in range(150):
        decision = service.decide(world.offer(0))
        drawn[decision.arm] += 1 / decision.probability
        told[decision.arm] += 1
    assert abs(drawn / 150 - 1).max() < 0.45, (drawn, told)  # three standard errors of the rarest arm
    exact = {"thompson": False, "master-thompson": False}.get(name, True)
    assert service.exact is exact


def test_an_exact_probability_is_the_formula_s() -> None:
    service = make_agent("epsilon-greedy", epsilon=0.4).online(explore=0.5)
    service.observe(np.eye(4), 2, 1.0)
    assert np.allclose(service.probabilities(np.eye(4)), [0.175, 0.175, 0.475, 0.175], atol=1e-12)
    assert np.allclose(service.probabilities(np.eye(4), [True, False, True, False]), [0.35, 0, 0.65, 0], atol=1e-12)
    assert np.allclose(make_agent("linucb").online().probabilities(np.eye(3)), [1, 0, 0])


def test_features_are_those_of_the_time_of_the_choice_whatever_becomes_of_the_array() -> None:
    kept, reused = (make_agent("discounted-linucb").online() for _ in range(2))
    rng, buffer = np.random.default_rng(0), np.zeros((3, 4))
    for _ in range(20):
        now = rng.normal(size=(3, 4))
        buffer[:] = now
        assert kept.act(now.copy()) == reused.act(buffer)
        buffer[:] = 0
        for one in (kept, reused):
            one.update(float(now[0, 0]))


def test_agents_that_plan_ahead_begin_again_when_their_rounds_are_over() -> None:
    for name in ("master-linucb", "glr-kl-ucb", "detection-linucb"):
        world, service, fresh = World(name), make_agent(name).online(horizon=16), make_agent(name).online(horizon=16)
        for t in range(16):
            service.update(world.reward(t, 0, service.act(world.offer(t))))
        for t in range(3):
            arms = [one.act(world.offer(t)) for one in (service, fresh)]
            assert arms[0] == arms[1] or name == "master-linucb", "which draws, and so has other random numbers by now"
            for one in (service, fresh):
                one.update(1.0)
        for t in range(40):
            service.act(world.offer(t))
            service.update(0.0)


@dataclass(frozen=True)
class Drawing:
    """Notes what it draws."""

    name: ClassVar[str] = "drawing"
    learns: ClassVar[bool] = False
    drawn: ClassVar[list[float]] = []

    def init(self, shape: ProblemShape) -> None:
        """There is nothing to remember."""

    def act(self, state: None, observation: Observation, rng: Stream) -> tuple[torch.Tensor, NoInfo]:
        self.drawn.append(float(rng.uniform()[0]))
        return torch.zeros(len(observation.action_set), dtype=torch.long), NoInfo()

    def update(self, state: None, observation: Observation, arm: Any, reward: Any, info: NoInfo) -> None: ...


def test_every_question_to_an_agent_has_random_numbers_of_its_own(tmp_path: Path) -> None:
    """MASTER draws its schedule when it is asked, also about a late round: with the same numbers it would not vary."""
    service = online(Drawing())
    for _ in range(4):
        service.act(2)
    service.update(1.0, round=1)
    service.save(tmp_path / "state")
    for again in (service, online(Drawing(), state=tmp_path / "state")):
        del Drawing.drawn[5 if again is service else 7 :]
        again.act(2)
        again.update(1.0, round=2)
    assert len(set(Drawing.drawn[:7])) == 7
    assert Drawing.drawn[-2:] == Drawing.drawn[5:7], "and the same after a break"


def test_an_arm_is_drawn_from_the_shares_that_were_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = torch.tensor([[0.0, 0.0, 1.0, 0.0]], dtype=torch.float64)
    monkeypatch.setattr("driftformer.agents.services.rounds.counted", lambda *_: shares)
    service = make_agent("thompson").online()
    decisions = [service.decide(np.eye(4)) for _ in range(20)]
    assert {(one.arm, one.probability) for one in decisions} == {(2, 1.0)}


def test_a_number_of_arms_takes_the_place_of_features() -> None:
    one, many = make_agent("ucb").online(), make_agent("ucb").online(problems=3)
    assert [one.act(4), int(many.act(4)[1])] == [0, 0]
    one.update(1.0)
    assert one.act(np.int64(4), offered=[True, False, False, True]) == 3
    for wrong, message in ((5, "5 arms, but 4 before; give all of them"), (np.ones((4, 4)), "no unit vectors")):
        with pytest.raises(InputError, match=message):
            one.act(wrong)
    for wrong in (0, -1, 10**9, True):
        with pytest.raises(InputError, match="features"):
            one.act(wrong)
    assert make_agent("linucb").online().act(4) == 0, "arms without features are played by any agent"


def test_what_cannot_be_is_refused_in_one_line_and_changes_nothing(tmp_path: Path) -> None:
    many = make_agent("linucb").online(problems=4)
    given = np.random.default_rng(0).normal(size=(2, 3, 4))
    many.act(given, users=[0, 2])
    many.save(tmp_path / "before")
    refused: list[tuple[Any, str]] = [
        (lambda: many.act(given), "users is missing for 2 of 4 problems"),
        (lambda: many.act(given, users=[0, 4]), "user 4 is unknown; there are 4, from 0"),
        (lambda: many.act(given, users=[0, "ann"]), "user 'ann' is unknown"),
        (lambda: many.act(given, users=[1, 1]), "users names 1 different users for 2 rows"),
        (lambda: many.act(given, users=3), "users is 3; give a list"),
        (lambda: many.act(given * np.nan, users=[0, 1]), r"NaN or .* online\(scale=True\)"),
        (lambda: many.act(given, [0, 1], offered=[[True] * 3, [False] * 3]), "offered has no arm"),
        (lambda: many.act(given, [0, 1], offered=[True] * 3), r"offered is not .* an array \[2, 3\]"),
        (lambda: many.update([1.0], users=[1]), "round is None; 0 rounds have been played"),
        (lambda: many.update([1.0, 1.0], users=[0, 2], rounds=[1, 2]), "round is 2; 1 rounds have been played"),
        (lambda: many.update([1.0, np.nan], users=[0, 2]), "reward is nan"),
        (lambda: many.update([1.0], users=[0], rounds=[1, 1]), "rounds has 2 entries for 1 users"),
        (lambda: many.update(1.0, users=[0]), "rewards is 1.0; give a list"),
        (lambda: many.observe(given, [0, 3], [1, 1], users=[0, 1]), r"arm is 3; give one of 0\.\.2"),
        (lambda: many.observe(given, [0], [1, 1], users=[0, 1]), "arms has 1 and rewards 2 entries for 2 users"),
        (lambda: many.observe(given, [0, 1], [1, 1], [0, 1], [[True] * 3, [True, False, True]]), "not on offer"),
        (lambda: many.round(9), "user 9 is unknown"),
    ]
    for call, message in refused:
        with pytest.raises(InputError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)
    many.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert many.update([1.0, 2.0], users=[2, 0]) == [True, True]
    with pytest.raises(InputError, match="round 1 has its reward already"):
        many.update([1.0, 1.0], users=[0, 2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"explore": 1.5}, "explore is 1.5"),
        ({"scale": 1}, "scale is 1; give True or False"),
        ({"problems": 0}, "problems is 0"),
        ({"horizon": 0}, "horizon is 0"),
        ({"arms": 1}, "arms is 1; give a whole number of at least 2"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_agent("linucb").online(**options)


def test_agents_that_cannot_work_say_why(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="agent 'oracle' must be told the truth"):
        make_agent("oracle").online()
    with pytest.raises(InputError, match="scale is True, but agent 'ucb' plays arms without features"):
        make_agent("ucb").online(scale=True)
    with pytest.raises(InputError, match=r"20000 dimensions and 2 arms, for which linucb needs 3\.0 GiB"):
        make_agent("linucb").online().act(np.zeros((2, 20_000)))
    service = make_agent("detection-linucb").online()
    service.act(np.ones((2, 3)))
    with pytest.raises(InputError, match="other arms than in the first round, but detection needs the same"):
        service.act(np.zeros((2, 3)))
    service.save(tmp_path / "state")
    with pytest.raises(InputError, match=r"is of agent 'detection@.*', not of 'linucb@.*'; make that agent"):
        make_agent("linucb").online(state=tmp_path / "state")
    with pytest.raises(InputError, match="brings its own options; leave out all others"):
        make_agent("detection-linucb").online(state=tmp_path / "state", explore=0.1)


def test_open_rounds_and_users_beyond_count_fit_into_a_file(tmp_path: Path) -> None:
    """A file has a few tensors however much is in it: their names alone would not fit otherwise."""
    many = make_agent("linucb").online(problems=3000)
    for _ in range(7):
        many.act(np.ones((3000, 2, 1)))
    many.save(tmp_path / "state")
    restored = make_agent("linucb").online(state=tmp_path / "state")
    assert restored.round(2999) == 7
    assert all(restored.update(np.ones(3000), rounds=[3] * 3000))


def test_memory_grows_with_the_users_that_were_seen() -> None:
    many = make_agent("policy:drift").online(problems=10**6)
    for _ in range(20):
        many.act(np.random.default_rng(0).normal(size=(2, 10, 32)), users=[7, 999_999])
        many.update([1.0, 0.0], users=[7, 999_999])
    held = many._service.memory.tensors()
    assert sum(one.numel() * one.element_size() for one in held.values()) / 2 < 10**6, "bytes of a user"


def test_calls_from_several_threads_wait_for_each_other() -> None:
    """Each thread has users of its own; what they learn is what they would learn alone, and no round is lost."""
    many, alone, failed = make_agent("linucb").online(problems=8), make_agent("linucb").online(problems=8), []
    world, rounds = World("linucb"), 120

    def work(service: OnlineMany, first: int) -> None:
        try:
            for t in range(rounds):
                who = [first, first + 1]
                arms = service.act(np.stack([world.offer(t, user) for user in who]), users=who)
                service.update([world.reward(t, user, arm) for user, arm in zip(who, arms, strict=True)], users=who)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(many, first)) for first in (0, 2, 4, 6)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    for first in (0, 2, 4, 6):
        work(alone, first)
    assert not failed
    given = np.stack([world.offer(rounds, user) for user in range(8)])
    one, other = (service._service.memory.copied(list(range(8))) for service in (many, alone))
    assert torch.equal(one.inverse, other.inverse), "a few steps more, and the arms would differ"
    assert many.act(given).tolist() == alone.act(given).tolist()


KILLED = """
import os, signal, sys
import numpy as np
import driftformer as df
service = df.make_agent("discounted-linucb").online(problems=2, explore=0.2)
for t in range(6):
    service.act(np.random.default_rng(t).normal(size=(2, 3, 4)))
    service.update([t, -t])
    service.save(sys.argv[1])
print(service.act(np.random.default_rng(6).normal(size=(2, 3, 4))).tolist(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_kill_between_act_and_update_loses_the_open_round_alone(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "state")], capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    service = make_agent("discounted-linucb").online(state=tmp_path / "state")
    assert [service.round(0), service.round(1)] == [6, 6]
    assert str(service.act(np.random.default_rng(6).normal(size=(2, 3, 4))).tolist()) == done.stdout.strip()
    assert service.update([1.0, 1.0]) == [True, True]


def test_what_comes_fifty_rounds_late_teaches_what_it_would_have_taught_in_time() -> None:
    """LinUCB forgets nothing, so the order does not matter; with one arm, all play the same."""
    world, late, prompt = World("linucb"), make_agent("linucb").online(), make_agent("linucb").online()
    for t in range(60):
        late.act(world.offer(t, arms=1))
        prompt.act(world.offer(t, arms=1))
        prompt.update(world.reward(t, 0, 0))
        if t >= 50:
            late.update(world.reward(t - 50, 0, 0), round=t - 49)
    for t in range(10, 60):
        late.update(world.reward(t, 0, 0), round=t + 1)
    one, other = (service._service.memory.tensors() for service in (late, prompt))
    assert all(torch.allclose(one[name], other[name]) for name in ("state.theta", "state.inverse"))
