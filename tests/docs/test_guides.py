"""The code of the guides to one's own environment and agent runs, in the order of the pages."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from driftformer.agents.registry import AGENTS
from driftformer.environments.registry import PRESETS

PAGES = Path(__file__).parents[2] / "docs" / "how-to"


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
        for code in re.findall(r"```python\n(.*?)```", (PAGES / page).read_text(), flags=re.DOTALL):
            exec(compile(code, page, "exec"), vars(module))
    printed = capsys.readouterr().out
    for title, agents in (
        ("shop", ["ucb", "change-point-oracle"]),
        ("bernoulli", ["win-stay"]),
        ("high", ["win-stay"]),
    ):
        assert title in printed
        assert all(agent in printed for agent in agents)
