"""The tutorials run from top to bottom, say what their text promises, and are stored with what they show."""

from __future__ import annotations

import runpy
import warnings
from pathlib import Path
from typing import Any

import nbformat
import pytest

DOCS = Path(__file__).parents[1] / "docs"
SAYS = {
    "tour.ipynb": ("policy:drift", "earned"),
    "own.ipynb": ("daily is ahead of", "service = df.make_agent", "minutes a parcel", "report.html"),
}
"""Words that the outputs of each must have."""


def shown(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def text(outputs: list[Any]) -> str:
    return "".join(output.get("text", "") for output in outputs)


def test_every_tutorial_is_tested() -> None:
    assert {path.name for path in (DOCS / "tutorials").glob("*.ipynb")} == set(SAYS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SAYS)
def test_a_tutorial_runs_from_top_to_bottom(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs = shown(runpy.run_path(str(DOCS / "run_tutorials.py"))["run"](DOCS / "tutorials" / name))
    for words in SAYS[name]:
        assert words in text(outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs), "a figure is drawn"


@pytest.mark.parametrize("name", SAYS)
def test_a_tutorial_is_stored_with_its_outputs_and_without_traces_of_a_machine(name: str) -> None:
    outputs = shown(nbformat.read(DOCS / "tutorials" / name, as_version=4))
    for words in SAYS[name]:
        assert words in text(outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert all(output.get("name") != "stderr" and output["output_type"] != "error" for output in outputs)
    assert "/tmp" not in text(outputs)
