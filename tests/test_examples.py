"""The notebook runs from top to bottom, and says what its text promises."""

from __future__ import annotations

import warnings
from pathlib import Path

import nbformat
import pytest


@pytest.mark.filterwarnings("ignore")
def test_the_tour_runs_from_top_to_bottom() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from nbclient import NotebookClient

        path = Path(__file__).parents[1] / "examples" / "tour.ipynb"
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    text = "".join(output.get("text", "") for output in shown)
    assert "policy:drift" in text
    assert "earned" in text
    assert any("image/png" in output.get("data", {}) for output in shown), "a figure is drawn"
