"""The documentation site: `make docs`. Notebooks are shown with the outputs that they are stored with."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from _site.pages import setup as setup  # noqa: E402

import driftformer  # noqa: E402

project = "driftformer"
author = "the driftformer authors"
version = release = driftformer.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["_build", "_site", "jupyter_execute", "**.ipynb_checkpoints"]
suppress_warnings = ["mystnb.unknown_mime_type"]

nb_execution_mode = "off"
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

default_role = "literal"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 90
highlight_language = "none"
autodoc_preserve_defaults = True
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"
html_title = "driftformer"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

RUNS = Path(os.environ.get("DRIFTFORMER_RUNS", HERE.parent / "runs"))
"""Where `make docs` computes what pages show: the report of the demo and the playground's recording."""
html_extra_path = [str(RUNS / "demo" / "report.html"), str(RUNS / "playground.js")]
