"""What a replay returns: estimates by agent, and a table to read."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from driftformer.errors import shown
from driftformer.evaluation.fitting import FittingTable
from driftformer.logs.estimators import Estimate

_NAMED = 8
"""Ignored columns that are named."""
_NOTES = (
    "value: mean reward of a round; samples: matches for replay, effective samples for the others",
    "replay: the agent learns only from its own choices, as in service. It skips other rounds: changes come faster.",
    "ips, snips, dr: the agent learns from every round of the log. Changes come as fast as they did in the log.",
)


@dataclass(frozen=True)
class Replay:
    """The outcome of `replay`."""

    label: str
    rounds: int
    arms: int
    known_by: str
    """What agents know of arms."""
    ignored: tuple[str, ...]
    """Columns that mean nothing here."""
    uniform: bool
    """Whether the log drew its arms uniformly."""
    itself: Estimate
    """What the log's own choices earned."""
    agents: dict[str, dict[str, Estimate]]
    """By agent, then replay, ips, snips or dr."""

    def table(self) -> str:
        """All estimates as plain text; the same in a notebook."""
        page = io.StringIO()
        console = Console(file=page, width=110, force_jupyter=False, force_terminal=False)
        console.print(render(self), *notes(self), sep="\n")
        return page.getvalue()


def render(found: Replay) -> Table:
    """A table with a row for each agent and estimate, the best agent by dr first, then those without a value."""
    how = "equal propensities" if found.uniform else "unequal propensities"
    known = f"arms are known by {found.known_by}"
    if found.ignored:
        more = ", …" if len(found.ignored) > _NAMED else ""
        known += f"; ignored columns: {', '.join(map(shown, found.ignored[:_NAMED]))}{more}"
    title = escape(f"\n{found.label}: {found.rounds:,} rounds, {found.arms} arms, {how}\n{known}")
    table = FittingTable(title, spared=("samples", "95% interval"))
    for heading in ("agent", "estimate"):
        table.add_column(heading)
    for heading in ("value", "95% interval", "samples"):
        table.add_column(heading, justify="right")
    everything = {"the log itself": {"mean": found.itself}}
    everything |= dict(sorted(found.agents.items(), key=lambda item: -_worth(item[1])))
    errors = [of.stderr for estimates in everything.values() for of in estimates.values() if of.stderr is not None]
    digits = _decimals(max(errors))
    for name, estimates in everything.items():
        for place, (kind, of) in enumerate(estimates.items()):
            value = "–" if of.value is None else f"{of.value:.{digits}f}"
            low_high = "" if of.interval is None else "[{:.{d}f}, {:.{d}f}]".format(*of.interval, d=digits)
            samples = f"{of.samples:,.0f}" if of.samples else "–"
            table.add_row("" if place else name, kind, value, low_high, samples)
        table.add_section()
    return table


def notes(found: Replay) -> list[str]:
    """What the estimates mean, and why some are missing, a line for each reason."""
    missing: dict[str, dict[str, list[str]]] = {}  # reason, agent, estimates
    for name, estimates in found.agents.items():
        for kind, of in estimates.items():
            if of.refused:
                missing.setdefault(of.refused, {}).setdefault(name, []).append(kind)
    lines = list(_NOTES)
    for reason, agents in missing.items():
        kinds, who = ", ".join(next(iter(agents.values()))), ", ".join(agents)
        lines.append(f"no {kinds}{'' if len(agents) == len(found.agents) else f' of {who}'}: {reason}")
    return lines


def _worth(estimates: dict[str, Estimate]) -> float:
    known = [estimates[kind].value for kind in ("dr", "replay") if estimates[kind].value is not None]
    return -math.inf if not known or known[0] is None else known[0]


def _decimals(stderr: float) -> int:
    """As many decimals as show two digits of a standard error."""
    return 3 if not 0 < stderr < math.inf else max(0, 1 - math.floor(math.log10(stderr)))
