"""The checks, checked: small faults are put into the theory and into MASTER, and each must be noticed.

    python -m reliability.mutants                          # all of them, on two processes
    python -m reliability.mutants --only theory/coins.py   # those of one file

A mutant is one edit of one file (`mutants.txt`). It is imported in a process of its own, forked before anything of
driftformer is loaded, with the edited source in place of the file's; nothing on disk changes. There the checks of
`driftformer theory` that concern the file are run, then its tests, until something differs or fails. A mutant that
nothing notices survives, and the command exits with 1; so does one whose text is no longer in its file.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest
import torch
from rich.console import Console

from reliability.mutants_list import NOTICED_BY, PACKAGE, Mutant, mutants

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 300.0
"""Seconds after which a mutant counts as noticed: it does not end."""
SURVIVES = "survives"


class _Edited(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from other source."""

    def __init__(self, module: str, source: str, path: Path) -> None:
        self._module, self._source, self._path = module, source, path

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._module:
            return None
        return importlib.util.spec_from_file_location(fullname, self._path, loader=self)  # type: ignore[arg-type]

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._source, str(self._path), "exec"), module.__dict__)


class _FirstFailure:
    """Remembers which test failed first."""

    name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid.rsplit("::", 1)[-1].split("[")[0]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.name:
            self.name = f"import of {report.nodeid}"


def noticed(mutant: Mutant) -> str:
    """What notices a mutant; to be called in a process of its own."""
    torch.set_num_threads(1)
    sys.meta_path.insert(0, _Edited(mutant.module, mutant.source(), PACKAGE / mutant.file))
    sys.path.insert(0, str(PACKAGE.parent))
    checks, tests = NOTICED_BY[mutant.file]
    try:
        from driftformer.theory.checks import Scale, run_checks

        for name in checks:
            if run_checks([name], Scale(2, problems=4))[name].verdict == "differs":
                return f"theory: {name}"
    except Exception as error:
        return f"theory: {type(error).__name__}"
    failure = _FirstFailure()
    arguments = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={ROOT}"]
    code = pytest.main([*arguments, *(str(ROOT / "tests" / test) for test in tests)], plugins=[failure])
    return SURVIVES if code == 0 else f"test: {failure.name or code}"


def _report(mutant: Mutant, answers: multiprocessing.Queue[str]) -> None:
    with Path("/dev/null").open("w") as nowhere:
        sys.stdout = sys.stderr = nowhere
        answers.put(noticed(mutant))


def run(chosen: Sequence[Mutant], workers: int) -> Iterator[tuple[Mutant, str, float]]:
    """Each mutant with what noticed it and the seconds that took, as they end."""
    context = multiprocessing.get_context("fork")
    waiting, working = list(chosen), dict[Mutant, tuple[multiprocessing.process.BaseProcess, object, float]]()
    while waiting or working:
        while waiting and len(working) < workers:
            mutant, answers = waiting.pop(0), context.Queue()
            process = context.Process(target=_report, args=(mutant, answers))
            process.start()
            working[mutant] = (process, answers, time.monotonic())
        for mutant, (process, answers, began) in list(working.items()):
            spent = time.monotonic() - began
            if process.is_alive() and spent < PATIENCE:
                continue
            ended = not process.is_alive()
            process.kill()
            answer = answers.get() if ended and not answers.empty() else "does not end"  # type: ignore[attr-defined]
            del working[mutant]
            yield mutant, answer, spent
        time.sleep(0.05)


def table(found: dict[Mutant, str], equivalent: Sequence[Mutant]) -> str:
    """By file: how many mutants, noticed by what."""

    def line(name: str, answers: list[str], same: int) -> str:
        ways = Counter(answer.split(":")[0] for answer in answers)
        tested = len(answers) - ways["theory"] - ways[SURVIVES]
        return f"| {name} | {len(answers)} | {ways['theory']} | {tested} | {ways[SURVIVES]} | {same} |"

    heads = "| file | mutants | noticed by `driftformer theory` | by a test | by nothing | equivalent |"
    lines = [heads, "|---|---|---|---|---|---|"]
    for file in dict.fromkeys(mutant.file for mutant in found):
        answers = [answer for mutant, answer in found.items() if mutant.file == file]
        lines.append(line(f"`{file}`", answers, sum(mutant.file == file for mutant in equivalent)))
    return "\n".join([*lines, line("all", list(found.values()), len(equivalent))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="a file of the package, such as theory/coins.py")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    chosen = [mutant for mutant in mutants() if options.only in (None, mutant.file)]
    for mutant in chosen:
        mutant.source()
    console, found = Console(soft_wrap=True), dict[Mutant, str]()
    faulty = [mutant for mutant in chosen if not mutant.equivalent]
    for mutant, answer, seconds in run(faulty, options.workers):
        found[mutant] = answer
        console.print(f"{len(found)}/{len(faulty)} {mutant}\n    {answer} ({seconds:.0f} s)", markup=False)
    ordered = {mutant: found[mutant] for mutant in faulty}
    console.print(table(ordered, [mutant for mutant in chosen if mutant.equivalent]), markup=False)
    sys.exit(SURVIVES in found.values())


if __name__ == "__main__":
    main()
