"""The constructions of the proof: pictures drawn from their weights, and a row for each check."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from pathlib import Path

from driftformer.report.markup import escaped, table
from driftformer.report.page import Section

_PICTURES = {
    "overview.svg": "The operations of MASTER, and the layers of the network that perform them",
    "scheduler.svg": "Random numbers, flags and active orders of one block, and the scores of one head",
    "equivalence.svg": "Which rounds each round may learn from: adjacent windows, and a sliding window",
}
_PLACES = {
    "thm-regret-w-op": "Theorem 1",
    "cor-regret-bound": "Corollary 2",
    "prop-approx-ws": "Proposition 3",
    "prop-approx-rm": "Proposition 4",
    "thm-approx": "Theorem 5",
    "appx-lem-bound-multi": "Lemma 7",
    "asm-non-sta": "Assumption 1",
    "asm-tf-as-dm": "Assumption 2",
    "def-sig1": "Definition 4",
    "def-sig2": "Definition 5",
    "def-test": "Definition 6",
    "def-nctf": "Definition 7",
    "appx-motiv-non-cont-tf": "Appendix E.2",
    "appx-approx-rand-gen": "Appendix E.3.1",
    "appx-approx-sig1": "Appendix E.3.2",
    "appx-approx-sig2": "Appendix E.3.3",
}
"""Labels of the paper's source as the numbers that its readers see; others, such as equations', are left out."""
_LABEL = re.compile(r"(?:appx|def|prop|thm|cor|asm|eq|lem|fig|tab)[-:][a-z0-9-]+")


def theory_section(checks: Mapping[str, Mapping[str, str]], out: Path) -> Section:
    images = ""
    for name, text in _PICTURES.items():
        data = base64.b64encode((out / "theory" / name).read_bytes()).decode()
        images += f'<img class="picture" alt="{escaped(text)}" src="data:image/svg+xml;base64,{data}">'
    columns = ("Statement: built", "Size: claimed / built", "Error: claimed / measured", "Verdict")
    written = "{statement}: {built}", "{size_claimed} / {size_built}", "{error_claimed} / {error_measured}", "{verdict}"
    rows = ([escaped(in_words(cell.format(**row))) for cell in written] for row in checks.values())
    text = f"""<p>The paper proves by construction that a transformer can run MASTER. Here each construction has
explicit weights and is compared with the exact algorithm. Command: <code>driftformer theory</code>; more:
docs/theory.md.</p>
{images}{table(columns, rows)}"""
    return Section("theory", "The proof, run", text, "Theory")


def in_words(text: str) -> str:
    """A statement without the labels of the paper's source."""
    told = _LABEL.sub(lambda found: _PLACES.get(found[0], ""), text)
    told = re.sub(r"\(\s*(?:,\s*)+", "(", re.sub(r"(?:,\s*)+\)", ")", told))  # what a label without a place leaves
    return re.sub(r"\s*\(\s*\)", "", told).strip()
