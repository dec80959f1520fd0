"""Every public name has an example in its documentation, and the example is right."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import driftformer as df
from driftformer.agents.registry import AGENTS
from driftformer.environments.registry import PRESETS

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "python.md"


@pytest.fixture
def untouched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What an example registers is forgotten, and what it writes is somewhere else."""
    agents, presets = dict(AGENTS), dict(PRESETS)
    monkeypatch.chdir(tmp_path)
    yield
    for registry, before in ((AGENTS, agents), (PRESETS, presets)):
        registry.clear()
        registry.update(before)  # type: ignore[arg-type]


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("name", df.__all__)
def test_a_public_name_has_an_example_that_is_right(name: str) -> None:
    known = {"df": df, "np": np, "torch": torch}
    (found,) = doctest.DocTestFinder(recurse=False).find(getattr(df, name), name, globs=known)
    assert found.examples, "it has no example"
    told: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(found, out=told.append)
    assert not told, "".join(told)


@pytest.mark.parametrize("name", df.__all__)
def test_a_public_name_is_on_the_page(name: str) -> None:
    assert f":: driftformer.{name}\n" in PAGE.read_text()
