"""A pretrained policy as an agent: the same numbers cached, stacked, wrapped and online as when it reads everything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from driftformer.agents.incontext import InContext, load_policy
from driftformer.agents.master import Master
from driftformer.agents.registry import full_label, label, make_agent
from driftformer.agents.services.online import Online
from driftformer.environments.registry import make_env
from driftformer.errors import InputError
from driftformer.evaluation.evaluate import evaluate
from driftformer.models.checkpoints import save_policy
from driftformer.models.configuration import Form, PolicyConfig
from driftformer.models.incontext import InContextPolicy
from driftformer.policies import shipped
from driftformer.randomness import CHUNK, Randomness
from driftformer.simulation.rollout import rollout
from driftformer.simulation.tape import problems_of

HORIZON, ARMS, DIM = 16, 4, 5
SMALL = {"horizon": HORIZON, "arms": ARMS, "dim": DIM}


@pytest.fixture(scope="module", params=["paper", "pointer"])
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_source(request.param, tmp_path_factory.mktemp(request.param))


def make_source(form: Form, folder: Path) -> str:
    torch.manual_seed(0)
    policy = InContextPolicy(PolicyConfig(form, "gpt2", DIM, ARMS, HORIZON, layers=2, heads=2, width=16))
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.mul_(4)
    save_policy(policy, folder)
    return str(folder)


def test_it_plays_what_the_whole_history_says(source: str) -> None:
    agent, environment = InContext(source, mode="greedy"), make_env("high", arm_mode="resampled", **SMALL)
    seen = rollout(environment, agent, seed=4, trajectories=True).trajectories
    assert seen is not None
    problems = problems_of(environment, Randomness(4, (0,), size=CHUNK))
    logits = agent.model(torch.device("cpu"))(problems.features, seen.arms.long(), seen.rewards)
    assert float((logits.argmax(2) == seen.arms).float().mean()) > 0.999  # ties at the last bit
    assert len(set(seen.arms.flatten().tolist())) == ARMS
    assert seen.auxiliary_values is not None
    probability = logits.softmax(2).amax(2)
    assert torch.allclose(seen.auxiliary_values, probability, atol=1e-4)


def test_sampling_follows_its_distribution(source: str) -> None:
    agent, environment = InContext(source), make_env("high", **{**SMALL, "horizon": 1})
    seen = rollout(environment, agent, chunks=range(20), trajectories=True).trajectories
    assert seen is not None
    assert seen.auxiliary_values is not None
    # The average probability of a sampled arm is that of the sum of squares: greedy play would give the largest.
    greedy = rollout(environment, replace(agent, mode="greedy"), chunks=range(20), trajectories=True).trajectories
    assert greedy is not None
    assert greedy.auxiliary_values is not None
    assert float(seen.auxiliary_values.mean()) < float(greedy.auxiliary_values.mean()) - 0.02
    cold = rollout(environment, replace(agent, temperature=1e-3), chunks=range(20), trajectories=True).trajectories
    assert cold is not None
    assert float((cold.arms == greedy.arms).float().mean()) > 0.97


def test_results_do_not_depend_on_workers_or_runs(source: str, tmp_path: Path) -> None:
    environment = make_env("high", **SMALL)
    whole = evaluate(environment, [InContext(source)], runs=2 * CHUNK + 5, out=tmp_path / "a")
    first = evaluate(environment, [InContext(source)], runs=CHUNK, out=tmp_path / "b")
    assert np.array_equal(next(iter(whole.finals.values()))[:CHUNK], next(iter(first.finals.values())))
    again = evaluate(environment, [InContext(source)], runs=2 * CHUNK + 5, workers=2)
    assert whole.summary == again.summary


def test_master_wraps_it_and_restarts_its_rows(source: str) -> None:
    """With tests that always fail, MASTER restarts every round, so every round is the policy's first."""
    environment = make_env("stationary", **SMALL)
    always = Master(base=InContext(source, mode="greedy"), test_scale=1e-9)
    seen = rollout(environment, always, trajectories=True).trajectories
    assert seen is not None
    problems = problems_of(environment, Randomness(0, (0,), size=CHUNK))
    first = InContext(source).model(torch.device("cpu"))(
        problems.features[:, :1], torch.zeros(CHUNK, 1, dtype=torch.long), torch.zeros(CHUNK, 1)
    )
    fresh = seen.events["failed_test"][:, :-1] > 0
    assert float(fresh.float().mean()) > 0.3
    same = seen.arms[:, 1:] == first[:, 0].argmax(1, keepdim=True)
    assert bool(same[fresh].all())


def test_restarting_periodically_lets_it_play_longer_than_it_was_made_for(source: str) -> None:
    environment = make_env("stationary", **{**SMALL, "horizon": 3 * HORIZON})
    with pytest.raises(InputError, match=r"horizon is 48, but policy:.* at most 16; .*restart@base=.*,every=16"):
        rollout(environment, InContext(source))
    long = rollout(environment, f"restart@base=policy:{source},every={HORIZON}")
    assert np.isfinite(long.regrets[0].regret).all()


def test_more_than_it_takes_is_refused(source: str) -> None:
    with pytest.raises(InputError, match=r"dim is 6, but policy:.* at most 5"):
        rollout(make_env("stationary", **{**SMALL, "dim": 6}), InContext(source))
    more = make_env("stationary", **{**SMALL, "arms": ARMS + 3})
    if InContext(source).config.form == "paper":
        with pytest.raises(InputError, match=r"arms is 7, but policy:.* at most 4"):
            rollout(more, InContext(source))
    else:
        rollout(more, InContext(source))


def test_fewer_arms_and_dimensions_are_padded(source: str) -> None:
    seen = rollout(make_env("stationary", horizon=9, arms=2, dim=2), InContext(source), trajectories=True).trajectories
    assert seen is not None
    assert int(seen.arms.max()) == 1


def test_its_name_its_options_and_its_weights_identify_it(source: str, tmp_path: Path) -> None:
    agent = make_agent(f"policy:{source}@mode=greedy")
    assert label(agent) == f"policy:{source}@mode=greedy"
    assert full_label(agent).endswith(f"weights={InContext(source).weights}")
    assert make_agent(full_label(agent)) == agent
    with pytest.raises(InputError, match="its weights are"):
        make_agent(f"policy:{source}@weights=0123456789ab")
    with pytest.raises(InputError, match="there is no 'mod'; did you mean 'mode'"):
        make_agent(f"policy:{source}@mod=greedy")
    with pytest.raises(InputError, match="no such folder"):
        make_agent("policy:runs/nowhere")
    with pytest.raises(InputError, match="there is no 'cosin'; did you mean 'cosine'"):
        load_policy("cosin")


def test_stored_results_belong_to_the_weights_also_of_a_wrapped_policy(tmp_path: Path) -> None:
    source = make_source("pointer", tmp_path / "policy")
    spec, environment = f"restart@base=policy:{source},every=8", make_env("stationary", **SMALL)
    before = full_label(make_agent(spec))
    first = evaluate(environment, [spec], runs=CHUNK, out=tmp_path / "out")
    named = InContext(source)
    torch.manual_seed(1)
    save_policy(InContextPolicy(named.config), tmp_path / "policy")
    assert full_label(make_agent(spec)) != before
    again = evaluate(environment, [spec], runs=CHUNK, out=tmp_path / "out")
    assert first.summary.agents != again.summary.agents
    assert make_agent(full_label(make_agent(spec))) == make_agent(spec)


def test_weights_that_change_under_an_agent_are_never_mixed_in(tmp_path: Path) -> None:
    source = make_source("pointer", tmp_path / "policy")
    loaded, named = InContext(source), InContext(source, mode="greedy")
    online = loaded.online()
    online.act(features(np.random.default_rng(0)))
    torch.manual_seed(1)
    save_policy(InContextPolicy(loaded.config), tmp_path / "policy")
    online.act(features(np.random.default_rng(0)))  # it goes on with what it has
    online.save(tmp_path / "state")
    with pytest.raises(InputError, match=r"weights=.*, not of .*; make that agent"):
        InContext(source).online(state=tmp_path / "state")
    from driftformer.agents import incontext

    incontext._load.cache_clear()
    with pytest.raises(InputError, match="other weights now than when it was named"):
        named.online()


@pytest.mark.parametrize("name", shipped())
def test_shipped_policies_load_and_beat_random_on_problems_of_their_kind(name: str) -> None:
    policy = load_policy(name)
    environment = (
        make_env("random-mdp", episodes=12)
        if policy.episodic
        else make_env("low" if name == "low" else "high", horizon=60)
    )
    result = evaluate(environment, [policy, "random"], runs=CHUNK)
    mine, random = (one.regret_mean for one in result.summary.agents.values())
    assert mine < random


def test_a_policy_may_be_loaded_by_its_name_among_agents() -> None:
    assert load_policy("policy:drift") == load_policy("drift")


def features(rng: np.random.Generator, arms: int = ARMS, dim: int = DIM) -> np.ndarray:
    return rng.uniform(-1, 1, (arms, dim))


def expected(source: str, now: np.ndarray, rounds: list[tuple[np.ndarray, int, float]]) -> np.ndarray:
    """The probabilities of a round, from one pass over the whole history of arms on offer, arms and rewards."""
    model = InContext(source).model(torch.device("cpu"))
    offered = [*(one for one, _, _ in rounds), now]
    most = model.config.arms if model.config.form == "paper" else max(len(one) for one in offered)
    whole = torch.zeros(1, len(offered), most, model.config.dim)
    for t, one in enumerate(offered):
        whole[0, t, : len(one), : one.shape[1]] = torch.from_numpy(one)
    arms, rewards = torch.tensor([[*(arm for _, arm, _ in rounds), 0]]), torch.zeros(1, len(offered))
    rewards[0, :-1] = torch.tensor([reward for _, _, reward in rounds])
    return model(whole, arms, rewards)[0, -1, : len(now)].double().softmax(0).numpy()


def test_online_sees_rewarded_rounds_in_the_order_in_which_their_rewards_came(source: str) -> None:
    rng, policy = np.random.default_rng(0), load_policy(source).online(seed=1)
    rounds: list[tuple[np.ndarray, int, float]] = []
    for t in range(HORIZON - 1):
        now = features(rng, arms=2 + t % 3)  # arms come and go
        assert np.allclose(policy.probabilities(now), expected(source, now, rounds), atol=1e-5)
        arm = policy.act(now)
        assert 0 <= arm < len(now)
        if t == 5:
            late = now, arm
        if t % 4 != 1:  # every fourth reward does not come in time
            rounds.append((now, arm, float(rng.normal())))
            assert policy.update(rounds[-1][2])
        if t == 10:  # one of them comes late
            rounds.append((*late, 2.5))
            assert policy.update(2.5, round=6)
    assert policy.round == HORIZON - 1


def test_asking_for_probabilities_changes_nothing(source: str) -> None:
    rng, policy, silent = np.random.default_rng(0), load_policy(source).online(), load_policy(source).online()
    for _ in range(HORIZON + 3):  # past the end of its context
        now, reward = features(rng), float(rng.normal())
        assert np.array_equal(policy.probabilities(now), policy.probabilities(now))
        policy.probabilities(now * 0.5)
        assert policy.act(now) == silent.act(now)
        for one in (policy, silent):
            one.update(reward)


def test_online_goes_on_where_it_was_saved(source: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    offered, rewards = [features(rng, 2 + t % 3) for t in range(12)], rng.normal(size=12)

    def play(policy: Online, rounds: range) -> list[int]:
        arms = []
        for t in rounds:
            arms.append(policy.act(offered[t]))
            if t % 3:
                policy.update(rewards[t])
        return arms

    whole = play(load_policy(source).online(seed=3), range(12))
    first = load_policy(source).online(seed=3)
    begun = play(first, range(6))
    first.save(tmp_path / "state.safetensors")
    rest = play(load_policy(source).online(state=tmp_path / "state.safetensors"), range(6, 12))
    assert begun + rest == whole


def test_online_slides_its_context_when_it_is_full(source: str) -> None:
    rng, policy = np.random.default_rng(0), load_policy(source).online()
    rounds: list[tuple[np.ndarray, int, float]] = []
    for _ in range(HORIZON + 3):
        now = features(rng)
        rounds.append((now, policy.act(now), float(rng.normal())))
        policy.update(rounds[-1][2])
    now = features(rng)
    assert np.allclose(policy.probabilities(now), expected(source, now, rounds[HORIZON // 2 :]), atol=1e-5)
    assert policy.round == HORIZON + 3


def test_online_refuses_bad_input_and_loses_nothing(source: str, tmp_path: Path) -> None:
    rng, policy = np.random.default_rng(0), load_policy(source).online()
    with pytest.raises(InputError, match="0 rounds have been played"):
        policy.update(1.0)
    first = features(rng)
    policy.act(first)
    for wrong, message in (
        (np.full((3, DIM), np.nan), "NaN"),
        (np.full((3, DIM), 1e30), "beyond 1e"),
        (np.zeros(DIM), r"give \[arms, dim\]"),
        (np.zeros((2, DIM + 1)), "takes at most 5"),
        (np.zeros((0, DIM)), r"give \[arms, dim\]"),
        ("features", "no array"),
    ):
        with pytest.raises(InputError, match=message):
            policy.act(wrong)
    for reward in (np.nan, np.inf, "much", None, 1e30, 10**400):
        with pytest.raises(InputError, match="give a finite number"):
            policy.update(reward)  # type: ignore[arg-type]
    assert policy.round == 1
    assert policy.update(np.float32(0.5), round=np.int64(1))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has its reward already"):
        policy.update(0.7)
    with pytest.raises(InputError, match="round is 9; 1 rounds have been played"):
        policy.update(0.7, round=9)
    policy.save(tmp_path / "state")
    (tmp_path / "state").write_bytes((tmp_path / "state").read_bytes()[:50])
    with pytest.raises(InputError, match="is broken"):
        load_policy(source).online(state=tmp_path / "state")


def test_too_many_arms_online_are_refused_by_the_paper_form_alone(tmp_path: Path) -> None:
    many = features(np.random.default_rng(0), arms=ARMS + 2)
    with pytest.raises(InputError, match=r"6 arms, but .* takes at most 4; a policy of the pointer form"):
        load_policy(make_source("paper", tmp_path / "paper")).online().act(many)
    assert 0 <= load_policy(make_source("pointer", tmp_path / "pointer")).online().act(many) < 6


def test_a_state_of_another_policy_is_refused(tmp_path: Path) -> None:
    one, other = make_source("paper", tmp_path / "a"), make_source("pointer", tmp_path / "b")
    load_policy(one).online().save(tmp_path / "state")
    with pytest.raises(InputError, match=r"not of .* make that agent"):
        load_policy(other).online(state=tmp_path / "state")
