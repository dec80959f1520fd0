"""Run the notebooks of the tutorials and store their outputs: `make tutorials`.

What goes to standard error (warnings that name folders of this machine, say) is left out.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

TUTORIALS = sorted((Path(__file__).parent / "tutorials").glob("*.ipynb"))


def run(path: Path) -> nbformat.NotebookNode:
    """The notebook with fresh outputs."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(path.parent)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


if __name__ == "__main__":
    for path in TUTORIALS:
        nbformat.write(run(path), path)
        print(path.name)
