"""The table of checks: what a check is told, what it finds, and one row for each statement of the paper.

A check is registered with what the paper says (the statement, its size, its error) and returns what was found. Checks
compute with one thread, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from driftformer.errors import require_count, unknown_name
from driftformer.randomness import one_thread

MOST_N = 6


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    statement: str
    built: str
    size_claimed: str
    size_built: str
    error_claimed: str
    error_measured: str
    verdict: str


@dataclass(frozen=True)
class Found:
    """What a check found; the verdict is "differs" unless the statement holds."""

    built: str
    size: str
    error: str
    holds: bool
    verdict: str


@dataclass(frozen=True)
class Scale:
    """How large the checks are: blocks of 2^n rounds, and what whole networks play."""

    n: int = 4
    problems: int = 12
    rounds: int | None = None  # None: 2^(n+1) − 1, whole blocks up to order n
    dim: int = 3
    arms: int = 4

    def __post_init__(self) -> None:
        require_count("n", self.n, 1, most=MOST_N)
        require_count("problems", self.problems)
        require_count("rounds", self.horizon, 3)
        require_count("dim", self.dim)
        require_count("arms", self.arms, 2)

    @property
    def horizon(self) -> int:
        """Rounds that whole networks play."""
        return 2 ** (self.n + 1) - 1 if self.rounds is None else self.rounds


CHECKS: dict[str, Callable[[Scale], Row]] = {}
"""By name."""


def run_checks(
    names: Iterable[str], scale: Scale, on_check: Callable[[str], object] = lambda name: None
) -> dict[str, Row]:
    """Run checks; `on_check` is told the name of each before it runs."""
    rows = {}
    for name in names:
        if name not in CHECKS:
            raise unknown_name("check", name, CHECKS)
        on_check(name)
        rows[name] = CHECKS[name](scale)
    return rows


Claim = str | Callable[[Scale], str]
"""What the paper says, perhaps as a function of the scale."""


def checked(statement: str, size: Claim, error: Claim) -> Callable[[Callable[[Scale], Found]], Callable[[Scale], Row]]:
    """Make `check_…` a check of a statement of the paper, by that name."""

    def register(find: Callable[[Scale], Found]) -> Callable[[Scale], Row]:
        @one_thread()
        def check(scale: Scale) -> Row:
            found = find(scale)
            claims = [claim if isinstance(claim, str) else claim(scale) for claim in (size, error)]
            verdict = found.verdict if found.holds else "differs"
            return Row(statement, found.built, claims[0], found.size, claims[1], found.error, verdict)

        CHECKS[find.__name__.removeprefix("check_")] = check
        return check

    return register
