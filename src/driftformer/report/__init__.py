"""One page that shows what was measured, for any folder of `evaluate`, `sweep` or `reproduce`.

It answers first who wins and by how much; then come interactive plots, tables, and how to get every number again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from driftformer.errors import InputError
from driftformer.evaluation.leaderboard import SUMMARY
from driftformer.experiments.reproduce import ABOUT as REPRODUCTION
from driftformer.report import reproduction
from driftformer.report.content import Content
from driftformer.report.evaluation import evaluation_page
from driftformer.report.markup import plain
from driftformer.report.page import Page
from driftformer.report.reproduction import reproduction_page
from driftformer.report.sweep import sweep_page
from driftformer.simulation.results import CONFIG
from driftformer.storage.files import read_json
from driftformer.sweeps.sweep import ABOUT as SWEEP

REPORT = "report.html"

_PAGES: dict[str, Callable[[Path], tuple[Page, str]]] = {
    REPRODUCTION: reproduction_page,
    SWEEP: sweep_page,
    SUMMARY: evaluation_page,
}
"""The page of a folder, by a file that is in it."""


def write_report(folder: Path) -> Path:
    """The page of a folder, next to its results."""
    return _page_of(folder)[0].write(folder / REPORT)


def headlines(folder: Path) -> list[tuple[str, str]]:
    """A title and a line of numbers for each of the paper's worlds of a reproduction; of others, who wins."""
    if (folder / REPRODUCTION).exists():
        return reproduction.headlines(Content(folder))
    return [("", plain(_page_of(folder)[1]))]


def _page_of(folder: Path) -> tuple[Page, str]:
    make = _maker(folder)
    try:
        return make(folder)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"folder {folder} holds results that no version of driftformer writes ({type(error).__name__}: {error}); "
            "name another --out and compute them again"
        ) from error


def _maker(folder: Path) -> Callable[[Path], tuple[Page, str]]:
    """What makes the page of a folder, or a line about what is wrong with it."""
    ours = "name the --out of `driftformer evaluate`, `sweep` or `reproduce`"
    if not folder.is_dir():
        raise InputError(f"folder is '{folder}', which is {'a file' if folder.exists() else 'not there'}; {ours}")
    for name, make in _PAGES.items():
        if (folder / name).exists():
            if name == SUMMARY:
                _check_seed(folder)
            return make
    if (folder / CONFIG).exists() or (folder / "chunks").exists():
        raise InputError(
            f"folder '{folder}' holds an evaluation that is not finished; run the same command again: it resumes"
        )
    raise InputError(f"folder '{folder}' {'holds no results' if any(folder.iterdir()) else 'is empty'}; {ours}")


def _check_seed(folder: Path) -> None:
    """Refuse a summary that was copied to the results of another seed or world."""
    if not (folder / CONFIG).exists():
        return  # a summary alone, as one shares it
    config, summary = read_json(folder / CONFIG), read_json(folder / SUMMARY, 2**30)
    for key in ("seed", "environment"):
        if config.get(key) != summary.get(key):
            told = f"{key} {config.get(key)!r:.40} and a summary of {key} {summary.get(key)!r:.40}"
            raise InputError(
                f"folder '{folder}' holds results of {told}; run the evaluation again in a folder of its own"
            )
