"""The Python on the pages that one reads first runs, in the order in which it stands there."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from driftformer.agents.registry import AGENTS
from driftformer.environments.registry import PRESETS

ROOT = Path(__file__).parents[2]


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


@pytest.fixture
def forgotten() -> Iterator[None]:
    """What the pages register is theirs alone."""
    yield
    AGENTS.pop("win-stay", None)
    PRESETS.pop("shop", None)


@pytest.mark.usefixtures("forgotten")
def test_the_guides_code_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for page in ("environment.md", "agent.md"):
        module = ModuleType("shop")
        monkeypatch.setitem(sys.modules, "shop", module)
        for code in blocks(f"docs/how-to/{page}"):
            exec(compile(code, page, "exec"), vars(module))
    printed = capsys.readouterr().out
    for title, agents in (
        ("shop", ["ucb", "change-point-oracle"]),
        ("bernoulli", ["win-stay"]),
        ("high", ["win-stay"]),
    ):
        assert title in printed
        assert all(agent in printed for agent in agents)


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_the_first_lines_of_python_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    known = {"features": np.eye(3), "reward": 1.0}  # the reader's own
    for code in blocks(page):
        exec(compile(code, page, "exec"), known)
    assert Path("regret.png").exists()
