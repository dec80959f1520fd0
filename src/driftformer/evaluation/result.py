"""What an evaluation returns: a summary, a table to read and a figure to look at."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from rich.console import Console
from rich.table import Table

from driftformer.errors import InputError, require_choice
from driftformer.evaluation.fitting import FittingTable
from driftformer.simulation.numbers import number, signed, with_error
from driftformer.simulation.rollout import Array
from driftformer.simulation.summary import Summary, read_summary


@dataclass(frozen=True)
class Result:
    """The outcome of `evaluate`."""

    summary: Summary
    timing: dict[str, dict[str, float]]  # of what this call computed

    @property
    def finals(self) -> dict[str, Array]:
        """Each agent's regret after the last round, run by run on the same problems, `[runs]`."""
        return {name: np.array(row.regret_runs) for name, row in self.summary.agents.items()}

    def table(self) -> str:
        """The summary as plain text, the best agent first; the same in a notebook."""
        page = io.StringIO()
        console = Console(file=page, width=110, force_jupyter=False, force_terminal=False)
        console.print(render(self.summary, self.timing), *notes(self.summary), sep="\n")
        return page.getvalue()

    def plot(self, path: Path | str, kind: Literal["regret", "suboptimality"] = "regret") -> None:
        """Draw the curves; the suffix of the path (.png, .svg, .pdf) is the format."""
        from driftformer.plots.curves import draw

        require_choice("kind", kind, ("regret", "suboptimality"))
        draw(self.summary, Path(path), kind)


def load_result(folder: Path | str) -> Result:
    """The result of the latest evaluation in a folder, without computing anything."""
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
            "" if name == reference else _difference(summary, name, reference),
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


def _difference(summary: Summary, agent: str, reference: str) -> str:
    pair = summary.difference(agent, reference)
    return signed(pair.mean) + (f" [{signed(pair.low)}, {signed(pair.high)}]" if pair.runs > 1 else "")


def _speed(rounds: float | None) -> str:
    if not rounds:
        return "stored"
    return f"{rounds / 1000:,.0f}k/s" if rounds >= 1000 else f"{rounds:.0f}/s"
