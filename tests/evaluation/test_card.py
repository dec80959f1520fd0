"""Cards: figures from evaluations, and how close a policy is to its teacher."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from driftformer.agents.incontext import InContext
from driftformer.agents.registry import make_agent
from driftformer.environments.linear import LinearBandit
from driftformer.environments.per_problem import CosineWithin
from driftformer.errors import InputError
from driftformer.evaluation.card import render, write_card
from driftformer.policies import shipped
from driftformer.pretraining.imitation import measure_closeness
from driftformer.pretraining.recipes import recipe_of
from driftformer.pretraining.run import train
from driftformer.randomness import one_thread
from driftformer.simulation.numbers import number

TOY = LinearBandit(name="toy", horizon=30, dim=4, arms=4, noise=0.3, drift=CosineWithin((0.01, 0.03), in_phase=1.0))


@pytest.fixture(scope="module")
def pupil(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A policy that was trained for a moment on LinUCB's arms."""
    out = tmp_path_factory.mktemp("pupil")
    with one_thread(), torch.inference_mode(False):
        train(
            recipe_of("tiny", labels="linucb", steps=150, tuning_steps=0), out, evaluate_every=150, evaluate_problems=16
        )
    return str(out / "best")


def test_a_pupil_is_closer_to_its_teacher_than_chance_and_than_the_optimum(pupil: str) -> None:
    found = measure_closeness(InContext(pupil), make_agent("linucb"), TOY, runs=64, copies=1)
    rows = found["closeness"]
    assert rows["this policy"]["kl"] < min(rows["uniform"]["kl"], rows["optimum"]["kl"])
    assert rows["this policy"]["agreement"] > max(rows["uniform"]["agreement"], rows["optimum"]["agreement"]) + 0.05
    assert len(found["by_round"]["this policy"]["kl"]) == 30
    assert found["distribution_ratio"]["trajectories"] == 64
    assert found["distribution_ratio"]["log_ratio"] > 0


def test_a_card_tells_how_a_policy_was_made_and_what_it_does(pupil: str, tmp_path: Path) -> None:
    first = write_card(pupil, tmp_path, runs=64).read_text()
    card = json.loads((tmp_path / "card.json").read_text())
    assert [row["title"] for row in card["regret"]] == ["tiny High, fixed arms", "tiny High, resampled arms"]
    mean = card["regret"][0]["agents"]["sampled"]["mean"]
    assert f"| {number(mean)} ± " in first
    assert "150 steps on labels" in first
    assert "How close it is to its teacher" in first
    again = "driftformer pretrain tiny --labels linucb --steps 150 --tuning-steps 0 --out FOLDER"
    assert again in first, "the command that makes it again"
    assert card["weights"] == InContext(pupil).weights
    assert write_card(pupil, tmp_path, runs=64).read_text() == first, "again from stored results, to the last digit"


def test_a_policy_of_other_worlds_is_measured_on_its_own(tmp_path: Path) -> None:
    recipe = recipe_of("tiny", worlds="tiny-jumps-3", layers=1, width=8, steps=1, tuning_steps=0)
    with one_thread(), torch.inference_mode(False):
        train(recipe, tmp_path / "made", evaluate_every=1, evaluate_problems=16)
    told = write_card(str(tmp_path / "made" / "best"), tmp_path / "card", runs=8, seed=3).read_text()
    assert "| tiny-jumps-3: changes=3, T=30, d=4, 4 fixed arms |" in told
    assert "--runs 8 --seed 3 --out FOLDER" in told


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_card_belongs_to_the_shipped_weights(name: str) -> None:
    from driftformer.policies import folder_of

    card = json.loads((folder_of(name) / "card.json").read_text())
    assert card["weights"] == InContext(name).weights
    assert card["policy"] == name
    assert card["runs"] >= 192, "three chunks"
    card.pop("sha256", None)
    assert (folder_of(name) / "card.md").read_text() == render(card)


def test_the_card_of_the_generalist_names_the_best_rival_and_where_it_is_behind() -> None:
    from driftformer.policies import folder_of

    card = json.loads((folder_of("drift") / "card.json").read_text())
    rows = [
        {"title": title, "agents": {name: {"mean": mean, "stderr": 1.0} for name, mean in means.items()}}
        for title, means in {
            "Ahead": {"sampled": 20.0, "linucb": 80.0, "thompson": 40.0},
            "Behind": {"sampled": 50.0, "linucb": 40.0},
        }.items()
    ]
    training = {**card["training"], "before": card["training"]}  # in two stages
    told = render({**card, "regret": rows, "training": training})
    assert "| Ahead | 20.0 ± 1.0 | 40.0 ± 1.0 | `thompson` | 0.50 |" in told
    assert "on: Behind (1.25)." in told
    assert "Ahead (" not in told
    assert told.count("- Before that:") == 1


def test_a_query_policy_tells_its_stages(tmp_path: Path) -> None:
    sizes = {"worlds": "tiny", "layers": 1, "width": 8, "heads": 2, "tokens": 3840, "shards": 1, "steps": 1}
    with one_thread(), torch.inference_mode(False):
        first = recipe_of("drift", **sizes, tuning_steps=0)
        train(first, tmp_path / "first", evaluate_every=1, evaluate_problems=16)
        second = recipe_of("drift", **sizes, tuning_steps=0, start=str(tmp_path / "first" / "best"))
        train(second, tmp_path / "second", evaluate_every=1, evaluate_problems=16)
    told = write_card(str(tmp_path / "second" / "best"), tmp_path / "card", runs=8).read_text()
    assert told.count("1 steps on values") == 2
    assert "- Before that: 1 steps on values" in told
    assert "after 1 on values" in told


def test_shipped_policies_are_small_enough_to_ship() -> None:
    from driftformer.policies import folder_of

    total = sum(path.stat().st_size for name in shipped() for path in folder_of(name).iterdir())
    assert total <= 60e6


def test_a_policy_without_a_history_has_no_card(pupil: str, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((Path(pupil) / name).read_bytes())
    with pytest.raises(InputError, match="it is unknown how it was made"):
        write_card(str(tmp_path), tmp_path / "card")
    with pytest.raises(InputError, match="runs is 1"):
        write_card(pupil, tmp_path / "card", runs=1)
