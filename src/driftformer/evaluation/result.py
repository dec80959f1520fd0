"""What an evaluation returns: a summary, tables to read and to compute with, and a figure to look at."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from rich.console import Console
from rich.table import Table

from driftformer.errors import InputError, require_choice
from driftformer.evaluation.comparison import Comparison, compare
from driftformer.evaluation.fitting import FittingTable
from driftformer.evaluation.frames import Library, Of, to_dataframe, write_parquet
from driftformer.simulation.numbers import number, with_error
from driftformer.simulation.rollout import Array
from driftformer.simulation.summary import Summary, read_summary

if TYPE_CHECKING:
    from driftformer.plots.style import Picture


_SHOWN = 4
"""Agents in a result's own line; the table has them all."""


@dataclass(frozen=True, repr=False)
class Result:
    """The outcome of `evaluate`. In a notebook it shows itself as a table, and `plot()` as a figure.

    >>> result = df.evaluate("high", ["linucb", "discounted-linucb@gamma=0.9"], runs=64, progress=False)
    >>> result.summary.ranking
    ['discounted-linucb@gamma=0.9', 'linucb']
    >>> round(result.summary.agents["linucb"].regret_mean, 1)
    285.4
    >>> result.compare("discounted-linucb@gamma=0.9", "linucb")
    discounted-linucb@gamma=0.9 − linucb: -112.7 regret [-131.5, -94.2], discounted-linucb@gamma=0.9 is ahead;
    discounted-linucb@gamma=0.9 wins 97% [92%, 100%] of 64 problems
    >>> list(result.to_dataframe("agents").columns)
    ['world', 'seed', 'agent', 'privileged', 'problems', 'regret', 'regret_std', 'regret_stderr']
    """

    summary: Summary
    timing: dict[str, dict[str, float]]  # of what this call computed

    @property
    def finals(self) -> dict[str, Array]:
        """Each agent's regret after the last round, run by run on the same problems, `[runs]`."""
        return {name: np.array(row.regret_runs) for name, row in self.summary.agents.items()}

    def __repr__(self) -> str:
        summary, ranking = self.summary, self.summary.ranking
        told = ", ".join(f"{name} {number(summary.agents[name].regret_mean)}" for name in ranking[:_SHOWN])
        more = f" and {len(ranking) - _SHOWN} more" if len(ranking) > _SHOWN else ""
        return f"Result({summary.title}; regret: {told}{more})"

    def _repr_html_(self) -> str:
        from driftformer.evaluation.notebook import as_html

        return as_html(self.summary)

    def table(self) -> str:
        """The summary as plain text, the best agent first; the same in a notebook."""
        page = io.StringIO()
        console = Console(file=page, width=110, force_jupyter=False, force_terminal=False)
        console.print(render(self.summary, self.timing), *notes(self.summary), sep="\n")
        return page.getvalue()

    def plot(self, path: Path | str | None = None, kind: Literal["regret", "suboptimality"] = "regret") -> Picture:
        """The curves as a figure of matplotlib, written to a path if one is given: its suffix is the format.

        The formats are .png, and .svg and .pdf for papers.
        """
        from driftformer.plots.curves import draw, figure_of

        require_choice("kind", kind, ("regret", "suboptimality"))
        return figure_of(self.summary, kind) if path is None else draw(self.summary, Path(path), kind)

    def compare(self, agent: str, rival: str) -> Comparison:
        """Two agents on the same problems: the difference of their regrets, its interval, and how often one wins."""
        return compare(self.summary, agent, rival)

    def to_dataframe(self, of: Of = "problems", library: Library | None = None) -> Any:
        """A tidy table of pandas or polars, with a row for each agent and problem, each agent and round, or each agent.

        See `evaluation/frames.py` for the columns.
        """
        return to_dataframe(self.summary, of, library)

    def to_parquet(self, path: Path | str, of: Of = "problems") -> None:
        """The same table as a Parquet file."""
        write_parquet(self.summary, Path(path), of)


def load_result(folder: Path | str) -> Result:
    """The result of the latest evaluation in a folder, without computing anything.

    >>> _ = df.evaluate("high", ["random", "linucb"], runs=64, out="runs/first", progress=False)
    >>> df.load_result("runs/first").summary.title
    'high: b=0.018, phase=0.0, T=200, d=32, 10 fixed arms, 64 runs, seed 0'
    """
    path = Path(folder) / "summary.json"
    if not path.exists():
        raise InputError(f"folder is '{folder}', which has no summary.json; name the --out of an evaluation")
    return Result(read_summary(path), {})


def render(summary: Summary, timing: Mapping[str, Mapping[str, float]]) -> Table:
    """A table, the best agent first, with paired differences to the best agent without privileges."""
    agents, ranking = summary.agents, summary.ranking
    reference = next((name for name in ranking if not agents[name].privileged), ranking[0])
    caption = {
        "dynamic regret": "± standard error",
        "std": "std between runs",
        "speed": "speed in rounds per CPU-second",
        "": "lower regret is better",
        "difference (95%)": f"difference from {reference} on the same problems" if len(agents) > 1 else "",
        "agent": "* knows what no real agent can" if any(row.privileged for row in agents.values()) else "",
    }
    notes = {heading: note for heading, note in caption.items() if note}
    table = FittingTable(f"\n{summary.title}", spared=("speed", "std", "difference (95%)"), notes=notes)
    table.add_column("agent")
    for heading in ("dynamic regret", "std", "difference (95%)", "speed"):
        table.add_column(heading, justify="right")
    for name in ranking:
        row = agents[name]
        table.add_row(
            name + (" *" if row.privileged else ""),
            with_error(row.regret_mean, row.regret_stderr),
            "–" if row.regret_std is None else number(row.regret_std),
            "" if name == reference else summary.difference(name, reference).text,
            _speed(timing.get(name, {}).get("rounds_per_cpu_second")),
            style="dim" if row.privileged else "",
        )
    return table


def notes(summary: Summary) -> list[str]:
    """What agents report about themselves, one line per agent."""
    lines = []
    for name, row in summary.agents.items():
        reported = row.diagnostics
        parts = [f"{number(reported['restarts']['mean'])} restarts per run"] if "restarts" in reported else []
        ratios = [key for key in reported if key.endswith("_closest_ratio")]
        if ratios:
            closest = ", ".join(f"{key.removesuffix('_closest_ratio')} {reported[key]['max']:.2g}" for key in ratios)
            parts.append(f"closest a test came to firing, as a fraction of its threshold: {closest}")
        lines += [f"{name}: {'; '.join(parts)}"] if parts else []
    return lines


def _speed(rounds: float | None) -> str:
    if not rounds:
        return "stored"
    return f"{rounds / 1000:,.0f}k/s" if rounds >= 1000 else f"{rounds:.0f}/s"
