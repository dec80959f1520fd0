"""Pictures of MASTER at work, on demand from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

import driftformer as df
from driftformer.cli import main
from driftformer.simulation.changes import change_points


@pytest.mark.parametrize(
    "command",
    [
        "show schedule --n 4 --seed 3",
        "show equivalence --rounds 8 --window 2",
        "show run jumps --horizon 60 --dim 3 --arms 3 --agent master-linucb@test_scale=0.01",
        "show run jumps --horizon 60 --dim 3 --arms 3 --agent restart-linucb@every=20",
        "show run low --horizon 60 --dim 3 --arms 3 --agent random",
    ],
)
def test_each_picture_is_drawn_the_same_way_twice(command: str, tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        main([*command.split(), "--out", str(tmp_path / name)])
    page = (tmp_path / "one.svg").read_text()
    assert page == (tmp_path / "two.svg").read_text()
    assert "round" in page


def test_restarts_are_marked_by_the_test_that_fired(tmp_path: Path) -> None:
    command = "show run high --horizon 90 --agent master-linucb@test_scale=0.005 --out"
    main([*command.split(), str(tmp_path / "run.svg")])
    assert "restart by Test 2" in (tmp_path / "run.svg").read_text()
    assert "active order" in (tmp_path / "run.svg").read_text()


@pytest.mark.parametrize("command", ["show schedule --n 99", "show equivalence --window 0", "show run high --agent x"])
def test_bad_input_is_refused(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*command.split(), "--out", str(tmp_path / "x.png")])
    assert caught.value.code == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_rounds_in_which_the_world_changes_are_marked(tmp_path: Path) -> None:
    main(
        [
            *["show", "run", "jumps", "--horizon", "60", "--changes", "3", "--agent", "linucb", "--out"],
            str(tmp_path / "run.svg"),
        ]
    )
    assert "<!-- the world changes -->" in (tmp_path / "run.svg").read_text()
    environment = df.make_env("jumps", horizon=60, changes=3)
    seen = df.rollout(environment, "linucb", trajectories=True).trajectories
    assert seen is not None
    found = change_points(environment, seen.arms)
    changes = df.nonstationarity(environment).changes[0]  # [T-1]
    assert found == (changes.nonzero()[:, 0] + 2).tolist()
    assert len(found) == 3
    assert change_points(df.make_env("high", horizon=20), seen.arms[:, :20]) == [], "a cosine has no single rounds"


def test_the_probabilities_of_a_policy_have_an_axis_of_their_own(tmp_path: Path) -> None:
    for agent, own in (("policy:cosine", True), ("linucb", False)):
        main([*f"show run high --horizon 20 --agent {agent} --out".split(), str(tmp_path / "run.svg")])
        page = (tmp_path / "run.svg").read_text()
        assert ("<!-- probability -->" in page) == own
        assert ("reward expected" in page) == (not own)
