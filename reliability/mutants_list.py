"""The faults of `mutants.txt`, and what must notice them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("mutants.txt")
PACKAGE = Path(__file__).resolve().parents[1] / "src" / "driftformer"

NOTICED_BY: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "theory/network.py": (("sigma1", "restart", "noncontinuous", "sizes"), ("theory/test_constructions.py",)),
    "theory/tokens.py": (("hold", "sigma1", "sums", "restart"), ("theory/test_constructions.py",)),
    "theory/scheduler.py": (
        ("indicator", "random", "hold", "bernoulli", "product", "sigma1", "sigma2", "compression", "coins"),
        ("theory/test_constructions.py",),
    ),
    "theory/testing.py": (("tests", "sums", "restart"), ("theory/test_constructions.py",)),
    "theory/regression.py": (("linucb", "noncontinuous"), ("theory/test_linucb.py",)),
    "theory/linucb.py": (("linucb", "noncontinuous"), ("theory/test_linucb.py",)),
    "theory/soft.py": (("noncontinuous",), ("theory/test_linucb.py",)),
    "theory/memory.py": (("noncontinuous",), ("theory/test_noncontinuous.py",)),
    "theory/noncontinuous.py": (("noncontinuous", "coins"), ("theory/test_noncontinuous.py",)),
    "theory/play.py": (("noncontinuous",), ("theory/test_noncontinuous.py",)),
    "theory/coins.py": (("coins",), ("theory/test_noncontinuous.py",)),
    "theory/feasible.py": (("sizes",), ("theory/test_noncontinuous.py",)),
    "theory/bounds.py": (("bounds", "experiments", "covering", "lemma"), ("theory/test_bounds.py",)),
    "theory/thompson.py": (("thompson",), ("theory/test_thompson.py",)),
    "theory/coverings.py": (("covering",), ("theory/test_bounds.py",)),
    "theory/experiments.py": (("experiments",), ("theory/test_bounds.py",)),
    "models/relu_transformer.py": (("sigma1", "linucb", "covering"), ("theory/test_bounds.py",)),
    "theory/assumptions.py": (("assumption",), ("theory/test_bounds.py",)),
    "theory/rank_tests.py": (("random",), ("theory/test_bounds.py",)),
    "agents/master.py": (("noncontinuous",), ("agents/test_master.py",)),
    "agents/schedule.py": (("noncontinuous",), ("agents/test_schedule.py", "agents/test_master.py")),
    "agents/rows.py": (("noncontinuous",), ("agents/test_master.py", "agents/test_equivalence.py")),
    "agents/restart.py": ((), ("agents/test_equivalence.py", "agents/test_oracle.py", "agents/test_forgetting.py")),
}
"""For every file, the checks of `driftformer theory` and the tests that look at it."""


@dataclass(frozen=True)
class Mutant:
    """One edit: a text that occurs once in a file of the package, and what replaces it."""

    file: str
    old: str
    new: str
    equivalent: str = ""  # why nothing can notice it, if so

    def source(self) -> str:
        """The file with the edit."""
        whole = (PACKAGE / self.file).read_text(encoding="utf-8")
        if (count := whole.count(self.old)) != 1:
            raise SystemExit(f"{self.file} has {self.old!r} {count} times; name a text that is there once")
        return whole.replace(self.old, self.new)

    @property
    def module(self) -> str:
        return "driftformer." + self.file.removesuffix(".py").replace("/", ".")

    def __str__(self) -> str:
        return f"{self.file}: {self.old} → {self.new}"


def mutants() -> list[Mutant]:
    """All of them, in the order of the list."""
    found: list[Mutant] = []
    file = old = ""
    for line in LIST.read_text(encoding="utf-8").splitlines():
        sign, text = line[:1], line[2:]
        if sign == "[":
            file = line.strip("[]")
        elif sign == "-":
            old = text
        elif sign == "+":
            found.append(Mutant(file, old, text))
        elif sign == "=":
            found[-1] = Mutant(file, old, found[-1].new, text)
    return found
