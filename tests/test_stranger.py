"""What a stranger brings: an environment and an agent written to the documented protocol with the public surface alone.

The environment pays clicks, has states that wander and arms that come and go; the agent counts clicks by state.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env

import driftformer as df
from driftformer.cli import main
from driftformer.evaluation.leaderboard import leaderboard, read_worlds

STATES = 3


@dataclass(frozen=True)
class Ward:
    """A batch of clinics in one round."""

    t: int
    observation: df.Observation
    values: torch.Tensor  # [B, A]
    cures: torch.Tensor  # [B, STATES, A]
    changed: torch.Tensor  # [B]


@dataclass(frozen=True)
class Clinic:
    """Patients of three kinds; each treatment cures each kind with its own probability, redrawn halfway."""

    horizon: int
    arms: int
    name: ClassVar[str] = "clinic"
    traits: ClassVar[df.Traits] = df.Traits(same_arms=True, abrupt=True, states=STATES)

    @property
    def dim(self) -> int:
        return STATES * self.arms

    def reset(self, randomness: Any) -> Ward:
        return self._ward(1, randomness.stream("cures").uniform(STATES, self.arms), randomness)

    def _ward(self, t: int, cures: torch.Tensor, randomness: Any) -> Ward:
        state = (randomness.stream("patients").uniform() * STATES).long()
        offered = randomness.stream("stock").uniform(self.arms) < 0.8
        offered[:, 0] = True
        kinds = torch.nn.functional.one_hot(state, STATES).to(cures)
        eye = torch.eye(self.arms).to(cures)
        features = torch.einsum("bs,ij->bisj", kinds, eye).flatten(2)  # [B, A, S·A]
        values = cures[torch.arange(len(state)), state]
        changed = torch.full_like(state, t == self.horizon // 2, dtype=torch.bool)
        stage = torch.full_like(state, t - 1)
        return Ward(t, df.Observation(features, offered, state, stage), values, cures, changed)

    def step(self, world: Ward, arm: torch.Tensor, randomness: Any) -> tuple[torch.Tensor, torch.Tensor, Ward]:
        chance = world.values[torch.arange(len(arm)), arm]
        reward = (randomness.stream("luck").uniform() < chance).to(chance)
        best = world.values.masked_fill(~world.observation.offered, 0.0).amax(dim=1)
        cures = world.cures
        if world.t + 1 == self.horizon // 2:
            cures = randomness.stream("cures").uniform(STATES, self.arms)
        return reward, best - chance, self._ward(world.t + 1, cures, randomness)

    def truth(self, world: Ward) -> df.Truth:
        return df.Truth(world.values, world.changed)

    def describe(self) -> str:
        return f"clinic: {self.arms} treatments, {self.horizon} patients"

    def config(self) -> dict[str, Any]:
        return {"name": "clinic", "horizon": self.horizon, "arms": self.arms}


@df.register_environment
@dataclass(frozen=True, kw_only=True)
class ClinicOptions:
    """A clinic whose cures change halfway."""

    name: ClassVar[str] = "clinic"

    horizon: int = 30
    """Patients."""
    arms: int = 4
    """Treatments."""

    def build(self) -> Clinic:
        return Clinic(self.horizon, self.arms)


@dataclass
class Counts:
    tries: torch.Tensor  # [B, S, A]
    cures: torch.Tensor  # [B, S, A]


@dataclass(frozen=True)
class CountInfo:
    auxiliary_value: torch.Tensor


@df.register_agent
@dataclass(frozen=True)
class Doctor:
    """Takes what has cured most, counted by kind of patient, with an optimistic start."""

    optimism: float = 2.0
    name: ClassVar[str] = "doctor"
    learns: ClassVar[bool] = True

    def why_not(self, traits: df.Traits) -> str | None:
        return None if traits.states else "it treats patients, and there are none"

    def init(self, shape: Any) -> Counts:
        tries = torch.ones(shape.batch, STATES, shape.arms, dtype=shape.dtype, device=shape.device)
        return Counts(tries, tries * self.optimism)

    def act(self, state: Counts, observation: df.Observation, rng: Any) -> tuple[torch.Tensor, CountInfo]:
        rows = torch.arange(len(state.tries))
        rate = (state.cures / state.tries)[rows, observation.state]
        arm = observation.best(rate)
        return arm, CountInfo(rate[rows, arm])

    def update(self, state: Counts, observation: df.Observation, arm: Any, reward: Any, info: Any) -> Counts:
        rows = torch.arange(len(arm))
        state.tries[rows, observation.state, arm] += 1
        state.cures[rows, observation.state, arm] += reward
        return state


AGENTS = ["random", "linucb", "doctor", "doctor@optimism=1", "change-point-oracle@base=doctor", "optimal"]


def test_they_are_simulated_tabulated_plotted_stored_and_loaded(tmp_path: Path) -> None:
    result = df.evaluate("clinic", AGENTS, runs=128, seed=1, out=tmp_path / "run")
    regret = {name: row.regret_mean for name, row in result.summary.agents.items()}
    assert regret["optimal"] == 0
    assert regret["doctor"] < regret["random"]
    page = result.table()
    assert "clinic: 4 treatments, 30 patients, 128 runs, seed 1" in page
    assert "doctor@optimism=1" in page
    result.plot(tmp_path / "regret.svg")
    assert "doctor" in (tmp_path / "regret.svg").read_text()
    loaded = df.load_result(tmp_path / "run")
    assert loaded.summary == result.summary
    assert loaded.table() == df.load_result(tmp_path / "run").table()
    more = df.evaluate(df.make_env("clinic"), AGENTS, runs=192, seed=1, out=tmp_path / "run")
    assert np.array_equal(more.finals["doctor"][:128], result.finals["doctor"])
    with pytest.raises(df.InputError, match="horizon is 30 there and 20 here"):
        df.evaluate(df.make_env("clinic", horizon=20), AGENTS, runs=64, seed=1, out=tmp_path / "run")


def test_it_is_a_case_of_an_experiment_and_stands_in_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from driftformer.experiments import EXPERIMENTS, reproduce
    from driftformer.experiments.base import Case, Experiment
    from driftformer.report import write_report

    ward = Case("ward", "A ward", ClinicOptions(), ("random", "linucb", "doctor"))
    small = Case("small", "A small ward", ClinicOptions(arms=2), ("random", "doctor"))
    mine = Experiment(name="clinics", title="Clinics", question="Who cures more?", cases=(ward, small))
    monkeypatch.setitem(EXPERIMENTS, "clinics", mine)
    monkeypatch.setattr(reproduce, "NAMES", (*reproduce.NAMES, "clinics"))
    monkeypatch.setattr(reproduce, "SINGLE_RUNS", ())  # of our own worlds: they take half a minute
    reproduce.reproduce(["clinics"], tmp_path, runs=64)
    reproduce.draw_experiments(tmp_path)
    page = write_report(tmp_path).read_text()
    assert "Who cures more?" in page
    assert "A small ward" in page
    regret = df.load_result(tmp_path / "clinics" / "ward").summary.agents["doctor"].regret_mean
    assert f"{regret:.1f}" in page
    assert (tmp_path / "figures" / "clinics.png").exists()


REPORT_ELSEWHERE = """
import sys
from driftformer.cli import main
from driftformer.agents.registry import AGENTS
assert "doctor" not in AGENTS
main(["report", sys.argv[1]])
"""


def test_its_results_are_reported_and_ranked_even_where_nobody_knows_it(tmp_path: Path) -> None:
    """A colleague without the package gets the folder: a summary is all that a report and a board need."""
    df.evaluate("clinic", AGENTS, runs=64, seed=1, out=tmp_path / "ward")
    command = [sys.executable, "-c", REPORT_ELSEWHERE, str(tmp_path / "ward")]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "ward" / "report.html").read_text()
    assert "clinic: 4 treatments, 30 patients" in page
    assert "an agent of another package; here with optimism=1" in page
    board = leaderboard(read_worlds([tmp_path / "ward"]))
    assert board.standings[0].agent == "optimal"
    assert board.first is not None
    assert board.first.agent in ("doctor", "doctor@optimism=1", "linucb")


def test_workers_give_the_same_bits(tmp_path: Path) -> None:
    alone, shared = (df.evaluate("clinic", ["doctor"], runs=256, workers=workers) for workers in (1, 2))
    assert np.array_equal(alone.finals["doctor"], shared.finals["doctor"])


def test_agents_refuse_what_they_are_not_made_for() -> None:
    with pytest.raises(df.InputError, match="agent 'doctor' cannot play 'high': it treats patients"):
        df.evaluate("high", ["doctor"], runs=1)
    with pytest.raises(df.InputError, match="agent 'oracle' cannot play 'clinic'"):
        df.evaluate("clinic", ["oracle"], runs=1)
    with pytest.raises(df.InputError, match="agent 'ucb' cannot play 'clinic'"):
        df.evaluate("clinic", ["ucb"], runs=1)


def test_gymnasium_plays_it() -> None:
    with pytest.warns(UserWarning, match="Box"):  # nobody has said that its features are bounded
        check_env(gymnasium.make("driftformer/Clinic-v0").unwrapped, skip_render_check=True)
    batch = gymnasium.make_vec("driftformer/Clinic-v0", num_envs=5, vectorization_mode="vector_entry_point")
    seen, info = batch.reset(seed=3)
    assert seen["state"].shape == (5,)
    assert batch.observation_space.contains(seen)
    assert info["values"].shape == seen["offered"].shape == (5, 4)


def test_a_policy_is_pretrained_on_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = "--steps 100 --tuning-steps 2 --tokens 3840 --generation 1024 --tuning-tokens 960 --rate 6e-3"
    with torch.inference_mode(False):
        main(["pretrain", "tiny", "--worlds", "clinic", *sizes.split(), "--out", str(tmp_path / "policy")])
    assert "lowest regret" in capsys.readouterr().out
    losses = [json.loads(line) for line in (tmp_path / "policy" / "log.jsonl").read_text().splitlines()]
    first, last = (np.mean([row["loss"] for row in part]) for part in (losses[:10], losses[90:100]))
    assert last < first - 0.015
    result = df.evaluate("clinic", ["random", f"policy:{tmp_path}/policy/best"], runs=64)
    assert len(result.finals) == 2


def changed(**fields: Any) -> Any:
    """A clinic whose first world has something wrong in it."""

    class Wrong(Clinic):
        def reset(self, randomness: Any) -> Ward:
            world = super().reset(randomness)
            seen = {name: value(world) for name, value in fields.items() if hasattr(world.observation, name)}
            own = {name: value(world) for name, value in fields.items() if hasattr(world, name)}
            return replace(world, observation=replace(world.observation, **seen), **own)

    return Wrong(20, 4)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (changed(values=lambda world: world.values[:, :2]), r"'clinic': values is a .* tensor \[64, 2\]; give a"),
        (changed(values=lambda world: world.values.double()), r"'clinic': values is a torch.float64 tensor"),
        (changed(values=lambda world: None), "'clinic': values is NoneType; give a torch.float32 tensor"),
        (changed(action_set=lambda world: world.values), r"observation.action_set is a .* tensor \[64, 4\]"),
        (changed(action_set=lambda world: world.observation.action_set * np.inf), "action_set has NaN or infinite"),
        (changed(offered=lambda world: world.values), "observation.offered is a torch.float32 tensor"),
        (
            changed(offered=lambda world: world.values > 2),
            "a problem has no arm on offer in round 1; offer at least one",
        ),
        (changed(t=lambda world: 0), "reset\\(\\) must give a world with t = 1"),
    ],
)
def test_a_wrong_world_is_named_before_anything_is_stored(wrong: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(df.InputError, match=message):
        df.evaluate(wrong, ["random"], runs=1, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"describe": lambda self: None}, "'clinic': describe\\(\\) gives None; return one line of text"),
        ({"describe": lambda self: "two\nlines"}, "describe\\(\\) gives 'two"),
        ({"config": lambda self: {"x": torch.ones(1)}}, "config\\(\\) is not plain JSON data"),
        ({"config": lambda self: []}, "config\\(\\) gives list; return a dict"),
        ({"name": "my clinic"}, "has the name 'my clinic'; give one word"),
        ({"arms": 0}, "'clinic': arms is 0; give a whole number of at least 1"),
        ({"dim": None}, "'clinic': dim is None; give a whole number"),
    ],
)
def test_a_wrong_description_is_named_before_anything_is_stored(
    fields: dict[str, Any], message: str, tmp_path: Path
) -> None:
    wrong = type("Wrong", (Clinic,), fields)(20, 4) if "arms" not in fields else Clinic(20, 0)
    with pytest.raises(df.InputError, match=message):
        df.evaluate(wrong, ["random"], runs=1, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_agent_that_takes_what_is_not_on_offer_is_told_so() -> None:
    @dataclass(frozen=True)
    class Greedy(Doctor):
        def act(self, state: Counts, observation: df.Observation, rng: Any) -> tuple[torch.Tensor, CountInfo]:
            arm = torch.full((len(state.tries),), 3)
            return arm, CountInfo(arm.float())

    with pytest.raises(df.InputError, match="an arm that is not on offer was chosen in round 1"):
        df.evaluate("clinic", [Greedy()], runs=1)


def test_names_that_are_taken_or_unfit_are_refused() -> None:
    with pytest.raises(df.InputError, match="agent 'linucb' is registered already"):
        df.register_agent(type("Mine", (Doctor,), {"name": "linucb"}))
    with pytest.raises(df.InputError, match="environment 'high' is registered already"):
        df.register_environment(type("Mine", (ClinicOptions,), {"name": "high"}))
    with pytest.raises(df.InputError, match="give small letters and hyphens"):
        df.register_environment(type("Mine", (ClinicOptions,), {"name": "My Env"}))
    with pytest.raises(df.InputError, match="register a frozen dataclass"):
        df.register_environment(Clinic)


PACKAGE = '''
from dataclasses import dataclass
from typing import ClassVar
import driftformer as df
from driftformer.environments.presets import High

@df.register_environment
@dataclass(frozen=True, kw_only=True)
class Mine(High):
    """High by another name."""
    name: ClassVar[str] = "mine"
    b: float = 0.01

@df.register_agent
@dataclass(frozen=True)
class Lazy(type(df.make_agent("random"))):
    """Does not care."""
    name: ClassVar[str] = "lazy"
'''


@pytest.mark.parametrize("first", ["driftformer", "shop"])
def test_an_installed_package_is_found_by_its_entry_points(first: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(PACKAGE)
    about = tmp_path / "shop-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1.0\n")
    points = "[driftformer.environments]\nmine = shop:Mine\n[driftformer.agents]\nlazy = shop:Lazy\n"
    (about / "entry_points.txt").write_text(points)
    script = f"import {first}; from driftformer.cli import main; main('evaluate mine --runs 2 --agents lazy'.split())"
    paths = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=os.environ | paths, capture_output=True, text=True, check=False)
    assert "mine: b=0.01" in done.stdout, done.stderr
    assert "lazy" in done.stdout
