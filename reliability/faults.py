"""Does a run survive what can happen to it? Kills, full disks, lost permissions and damaged files, many of each.

    python -m reliability.faults --rounds 200

Each episode takes a folder, empty or finished, lets one to four faults happen to it, and runs the same command again
until it has finished. Then the results must be those of an undisturbed run, bit for bit. A command may refuse a damaged
file, with exit code 2 and one line that names it; then what the line says is done, and the command is run again. After
any other fault it must simply finish. The exit code is 1 if a result was lost or wrong, or a traceback was shown.
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from reliability.command import Command, Ended
from reliability.injection import DAMAGE, KINDS, Lab, damage, laboratory, strike
from reliability.sabotage import SABOTAGE
from reliability.scenarios import SCENARIOS, SERVICE, Contents, Scenario, make_small

_WEIGHTS = {"full disk": 4.0, "kill a worker": 2.0}
"""How often a fault is drawn where it is possible at all, which for these is not everywhere."""
_GOES_ON = "a worker was lost; attempt"
"""What a command says that does not need to be run again."""
_OF_THE_DISK = "check the disk and the permissions"
"""What a command says where it cannot write, be it a file that was damaged before."""
GOOD = ("recovered", "refused")
BAD = ("lost", "wrong", "tracebacks")


@dataclass
class Fault:
    """One fault and what came of it."""

    kind: str
    verdict: str = "recovered"


@dataclass(frozen=True)
class Reference:
    """An undisturbed run."""

    scenario: Scenario
    folder: Path
    results: Contents
    seconds: float
    size: int  # bytes


@dataclass
class Episode:
    """A folder, what has happened to it, and what went wrong."""

    reference: Reference
    folder: Path
    lab: Lab
    rng: np.random.Generator
    faults: list[Fault] = field(default_factory=list)
    damaged: dict[Path, Fault] = field(default_factory=dict)  # files that no run has met yet
    log_is_gone: bool = False
    notes: list[str] = field(default_factory=list)

    def suffer(self, kind: str) -> None:
        """Let one fault happen."""
        if kind in DAMAGE:
            self._damage(kind)
        else:
            self._strike(kind)

    def _damage(self, kind: str) -> None:
        victims = [path for path in self.reference.scenario.victims(self.folder) if path not in self.damaged]
        victims = [path for path in victims if path.stat().st_size]
        if victims:
            path = victims[int(self.rng.integers(len(victims)))]
            damage(kind, path, self.rng)
            self.damaged[path] = self._add(kind)

    def _strike(self, kind: str) -> None:
        scenario = self.reference.scenario
        commands = scenario.arguments(self.folder)
        which = int(self.rng.integers(len(commands)))
        for arguments in commands[:which]:  # a later command rests on the earlier ones
            if not self._finish(arguments):
                return
        before = self._treasures()
        seconds = self.reference.seconds / len(commands)
        room = max(65_536, self.reference.size - _size(self.folder))
        done = strike(kind, commands[which], self.folder, self.lab, seconds, room, scenario.workers, self.rng)
        if done.struck:
            fault = self._add(kind)
            if not done.ended.was_killed:
                self._judge(done.ended, fault, kind)
        elif done.ended.code != 0:
            self._judge(done.ended, self.faults[-1] if self.faults else self._add(kind), kind)
        self._compare_treasures(before)

    def _add(self, kind: str) -> Fault:
        self.faults.append(Fault(kind))
        return self.faults[-1]

    def _judge(self, ended: Ended, fault: Fault, kind: str = "") -> bool:
        """What a command that has not finished may say: one line that names a damaged file, or the trouble it is in."""
        lines = ended.said.strip().splitlines()
        if kind == "kill a worker" and ended.code == 0 and all(line.startswith(_GOES_ON) for line in lines):
            return True
        if ended.code != 2 or len(lines) != 1 or not lines[0].startswith("driftformer: error: "):
            return self._fail(fault, "tracebacks", f"exit code {ended.code}: {ended.said[-1500:]}")
        if kind in ("full disk", "no permission") and str(self.folder) in lines[0] and _OF_THE_DISK in lines[0]:
            return True
        named = [path for path in self.damaged if str(path) in lines[0]]
        if named:
            self.damaged.pop(named[0]).verdict = "refused"
            return self._remedy(lines[0], named[0])
        return self._fail(fault, "lost", f"refused without a damaged file: {lines[0]}")

    def _fail(self, fault: Fault, verdict: str, note: str) -> bool:
        fault.verdict = verdict
        history = ", ".join(one.kind for one in self.faults)
        self.notes.append(f"{self.reference.scenario.name} ({history}): {note}")
        return False

    def _remedy(self, line: str, path: Path) -> bool:
        """Do what a message says."""
        folder = re.search(r"delete (\S+) and train again", line)
        if folder:
            shutil.rmtree(folder[1])
        elif "delete its folder" in line:
            shutil.rmtree(path.parent)
        elif "delete it" in line:
            path.unlink(missing_ok=True)
            self.log_is_gone |= path.name == "log.jsonl"
        if "collect command" in line:
            return self._finish(self.reference.scenario.arguments(self.folder)[0])
        if not re.search("delete|run", line):
            return self._fail(self._last(), "tracebacks", f"it does not say what to do: {line}")
        return True

    def _last(self) -> Fault:
        return self.faults[-1]

    def recover(self) -> None:
        """Run everything again until it has finished, and compare."""
        if any(map(_is_bad, self.faults)) or not self.faults:
            return
        before = self._treasures()
        for arguments in self.reference.scenario.arguments(self.folder):
            if not self._finish(arguments):
                return
        self._compare_treasures(before)
        expected, found = dict(self.reference.results), self.reference.scenario.results(self.folder)
        if self.log_is_gone:
            expected, found = ({k: v for k, v in one.items() if "log.jsonl" not in k} for one in (expected, found))
        other = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
        left = [str(path) for path in self.folder.rglob("*.partial")]
        if other or left:
            self._fail(self._last(), "wrong", f"not as in the undisturbed run: {', '.join(other + left)}")

    def _finish(self, arguments: list[str]) -> bool:
        """Run one command until it finishes, with a remedy for each damaged file that it refuses."""
        for _ in range(2 + len(self.damaged)):
            ended = Command(arguments, fresh=bool(self.reference.scenario.workers)).wait()
            if ended.code == 0 and not ended.said:
                return True
            if not self._judge(ended, self._last() if self.faults else self._add("kill")):
                return False
        return self._fail(self._last(), "lost", f"it never finishes: {ended.said}")

    def _treasures(self) -> Contents:
        """Finished results that are whole."""
        whole = self.reference.scenario.treasures(self.folder)
        return {name: held for name, held in whole.items() if self.reference.results.get(name) == held}

    def _compare_treasures(self, before: Contents) -> None:
        after = self.reference.scenario.treasures(self.folder)
        gone = [name for name, held in before.items() if after.get(name) != held]
        if gone and self.faults:
            self._fail(self._last(), "lost", f"no longer there: {', '.join(gone)}")


def _is_bad(fault: Fault) -> bool:
    return fault.verdict in BAD


def undisturbed(scenario: Scenario, folder: Path) -> Reference:
    began = time.monotonic()
    for arguments in scenario.arguments(folder):
        ended = Command(arguments, fresh=bool(scenario.workers)).wait()
        if ended.code or ended.said:
            sys.exit(f"{scenario.name} fails without any fault: {ended.said}")
    return Reference(scenario, folder, scenario.results(folder), time.monotonic() - began, _size(folder))


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _possible(kinds: tuple[str, ...], scenario: Scenario, on_disk: bool, lab: Lab) -> list[str]:
    if scenario.workers:  # it starts slowly, so it is struck by what is its own
        return [kind for kind in kinds if kind in ("kill", "kill a worker")]
    left_out = {"kill a worker"} | ({"kill before an update"} if scenario.name != SERVICE else set())
    left_out |= set() if on_disk or lab.disk is None else {"full disk"}
    left_out |= set() if lab.can_lock and not on_disk else {"no permission"}
    return [kind for kind in kinds if kind not in left_out]


def episode(references: list[Reference], lab: Lab, kinds: tuple[str, ...], rng: np.random.Generator) -> Episode | None:
    """One folder, one to four faults; None where none of the kinds can strike."""
    weights = np.array([2.0 if reference.scenario.workers else 4.0 for reference in references])
    reference = references[int(rng.choice(len(references), p=weights / weights.sum()))]
    on_disk = lab.disk is not None and bool(rng.random() < 0.3)
    folder = (lab.disk if on_disk and lab.disk is not None else lab.plain) / "folder"
    possible = _possible(kinds, reference.scenario, on_disk, lab)
    if not possible:
        return None
    weights = np.array([_WEIGHTS.get(kind, 1.0) for kind in possible])
    if rng.random() < 0.5 and not reference.scenario.workers:  # where all is done, none would start
        shutil.copytree(reference.folder, folder)
    found = Episode(reference, folder, lab, rng)
    for _ in range(int(rng.integers(1, 5))):
        found.suffer(str(rng.choice(possible, p=weights / weights.sum())))
        if any(map(_is_bad, found.faults)):
            break
    found.recover()
    shutil.rmtree(folder, ignore_errors=True)
    return found


def report(faults: list[Fault], lab: Lab, seconds: float) -> Table:
    table = Table(title=f"{len(faults)} faults in {seconds / 60:.1f} minutes", caption=lab.means, box=SIMPLE_HEAD)
    names = ("fault", "injected", "recovered identically", "refused, then identical", "lost", "wrong", "tracebacks")
    for name in names:
        table.add_column(name, justify="left" if name == "fault" else "right")
    for kind in (*KINDS, "all"):
        of_kind = [fault for fault in faults if kind in (fault.kind, "all")]
        verdicts = collections.Counter(fault.verdict for fault in of_kind)
        table.add_row(kind, str(len(of_kind)), *(str(verdicts[verdict]) for verdict in (*GOOD, *BAD)))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200, help="faults to inject")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--scenarios", nargs="+", default=[one.name for one in SCENARIOS])
    parser.add_argument("--sabotage", choices=SABOTAGE, help="break the product on purpose: the harness must see it")
    options = parser.parse_args()
    _warm_up()
    if options.sabotage:
        SABOTAGE[options.sabotage]()
    faults: list[Fault] = []
    notes: list[str] = []
    rng, began = np.random.default_rng(options.seed), time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with (
        tempfile.TemporaryDirectory(prefix="faults-") as place,
        laboratory(Path(place)) as lab,
        # no refreshing thread: this process forks
        Progress(*columns, console=console, auto_refresh=False, disable=not console.is_terminal) as bar,
    ):
        task = bar.add_task("undisturbed runs", total=options.rounds)
        bar.refresh()
        chosen = [one for one in SCENARIOS if one.name in options.scenarios]
        references = [undisturbed(one, Path(place) / f"reference-{number}") for number, one in enumerate(chosen)]
        bar.update(task, description="faults")
        while len(faults) < options.rounds:
            found = episode(references, lab, tuple(options.kinds), rng)
            if found is not None:
                faults += found.faults
                notes += found.notes
            bar.update(task, completed=min(len(faults), options.rounds))
            bar.refresh()
            if not console.is_terminal and found is not None:
                print(f"{len(faults)} of {options.rounds} faults, {sum(map(_is_bad, faults))} bad", file=sys.stderr)
    Console(width=120).print(report(faults, lab, time.monotonic() - began))
    for note in notes:
        print(note)
    sys.exit(1 if any(map(_is_bad, faults)) else 0)


def _warm_up() -> None:
    """Import all that the commands import, so that forked ones need not; and compute with one thread, as they do."""
    os.environ |= {"OMP_NUM_THREADS": "1"}
    torch.set_num_threads(1)
    import matplotlib.pyplot as _pyplot
    import torch.utils.tensorboard as _tensorboard

    import driftformer.agents.services.online
    import driftformer.cli
    import driftformer.evaluation.evaluate
    import driftformer.plots.curves
    import driftformer.pretraining.run

    assert _pyplot
    assert _tensorboard
    assert driftformer
    make_small()


if __name__ == "__main__":
    main()
