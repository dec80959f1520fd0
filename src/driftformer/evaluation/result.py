"""What an evaluation found: a summary that can be stored, a table to read, a figure to look at."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from driftformer.errors import InputError, require_choice
from driftformer.evaluation.statistics import AgentRegret, paired_differences
from driftformer.evaluation.summary import read_summary
from driftformer.simulation.regret import Array


@dataclass(frozen=True)
class Result:
    """The outcome of `evaluate`."""

    summary: dict[str, Any]
    timing: dict[str, dict[str, float]]  # of what this call computed
    finals: dict[str, Array]  # [runs] cumulative dynamic regret of each agent, run by run on the same problems

    def table(self) -> str:
        """The summary as text, best agent first."""
        page = io.StringIO()
        console = Console(
            file=page, width=110, force_jupyter=False, force_terminal=False
        )  # plain text, in notebooks too
        console.print(render(self.summary, self.timing), *notes(self.summary), sep="\n")
        return page.getvalue()

    def plot(self, path: Path | str, kind: Literal["regret", "suboptimality"] = "regret") -> None:
        """Draw the curves; the ending of the path (.png, .svg, .pdf) is the format."""
        from driftformer.plots.curves import draw

        require_choice("kind", kind, ("regret", "suboptimality"))
        draw(self.summary, Path(path), kind)


def summarize(
    environment: dict[str, Any], regrets: Mapping[str, AgentRegret], runs: int, seed: int, privileged: Sequence[str]
) -> dict[str, Any]:
    """Results only, no times: equal runs give equal summaries."""
    return {
        "environment": environment,
        "horizon": environment["horizon"],
        "runs": runs,
        "seed": seed,
        "agents": {
            name: {
                "privileged": name in privileged,
                "runs": len(regret.final),
                "regret_mean": float(regret.regret.mean[-1]),
                "regret_stderr": float(regret.regret.stderr[-1]) if len(regret.final) > 1 else None,
                "regret_std": float(regret.regret.std[-1]) if len(regret.final) > 1 else None,
                "regret_runs": regret.final.tolist(),
                "regret_curve": regret.regret.mean.tolist(),
                "regret_curve_std": regret.regret.std.tolist(),
                "regret_curve_stderr": regret.regret.stderr.tolist(),
                "suboptimality_curve": regret.suboptimality.mean.tolist(),
                "suboptimality_curve_std": regret.suboptimality.std.tolist(),
                "suboptimality_curve_stderr": regret.suboptimality.stderr.tolist(),
                "diagnostics": {
                    key: {"mean": float(value.mean()), "max": float(value.max())}
                    for key, value in regret.diagnostics.items()
                },
            }
            for name, regret in regrets.items()
        },
        "paired_differences": [
            asdict(pair) for pair in paired_differences({name: r.final for name, r in regrets.items()}, seed)
        ],
    }


def load_result(folder: Path | str) -> Result:
    """What the latest evaluation in a results folder found, without computing anything."""
    path = Path(folder) / "summary.json"
    if not path.exists():
        raise InputError(f"folder is '{folder}', which has no summary.json; name the --out of an evaluation")
    summary = read_summary(path)
    finals = {name: np.array(row["regret_runs"], float) for name, row in summary["agents"].items()}
    return Result(summary, {}, finals)


def render(summary: Mapping[str, Any], timing: Mapping[str, Mapping[str, float]]) -> Table:
    """A table, best agent first, with paired differences to the best agent that has no privileges."""
    agents = summary["agents"]
    ranking = sorted(agents, key=lambda name: agents[name]["regret_mean"])
    reference = next((name for name in ranking if not agents[name]["privileged"]), ranking[0])
    table = Table(
        title=f"\n{describe(summary)}",
        caption=_caption(agents, reference),
        title_justify="left",
        caption_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("agent", overflow="fold")
    uneven = len({row["runs"] for row in agents.values()}) > 1
    for heading in (*(["runs"] if uneven else []), "dynamic regret", "std", "difference (95%)", "speed"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name in ranking:
        row = agents[name]
        speed = timing.get(name, {}).get("rounds_per_cpu_second")
        table.add_row(
            name + (" *" if row["privileged"] else ""),
            *([str(row["runs"])] if uneven else []),
            _number(row["regret_mean"]) + (f" ± {_number(row['regret_stderr'])}" if row["runs"] > 1 else ""),
            _number(row["regret_std"]) if row["runs"] > 1 else "–",
            "" if name == reference else _paired(summary, name, reference),
            _speed(speed) if speed else "stored",
            style="dim" if row["privileged"] else "",
        )
    return table


def notes(summary: Mapping[str, Any]) -> list[str]:
    """What agents told of themselves, a line each."""
    lines = []
    for name, row in summary["agents"].items():
        told = row["diagnostics"]
        parts = [f"{_number(told['restarts']['mean'])} restarts a run"] if "restarts" in told else []
        ratios = [key for key in told if key.endswith("_closest_ratio")]
        if ratios:
            closest = ", ".join(f"{key.removesuffix('_closest_ratio')} {told[key]['max']:.2g}" for key in ratios)
            parts.append(f"closest that a test came to firing, as a share of its threshold: {closest}")
        lines += [f"{name}: {'; '.join(parts)}"] if parts else []
    return lines


def describe(summary: Mapping[str, Any]) -> str:
    """The setting of a summary in a few words."""
    environment = summary["environment"]
    drift = environment["drift"]
    told = drift.items() if isinstance(drift, dict) else ()
    settings = [f"{key}={value}" for key, value in told if isinstance(value, (int, float)) and value is not False]
    settings += [f"T={summary['horizon']}", f"d={environment['dim']}"]
    settings += [f"{environment['arms']} {environment['arm_mode']} arms", f"{summary['runs']} runs"]
    return f"{environment['name']}: {', '.join(settings)}, seed {summary['seed']}"


def _caption(agents: Mapping[str, Any], reference: str) -> str:
    notes = ["± standard error, std between runs, speed in rounds per CPU-second; less regret is better"]
    notes += [f"difference: to {reference} on the same problems"] if len(agents) > 1 else []
    notes += ["* is told what no agent can know"] if any(row["privileged"] for row in agents.values()) else []
    return "; ".join(notes)


def _paired(summary: Mapping[str, Any], agent: str, reference: str) -> str:
    """A paired difference in words, whichever way round it is stored."""
    for pair in summary["paired_differences"]:
        if {pair["agent"], pair["reference"]} == {agent, reference}:
            sign = 1 if pair["agent"] == agent else -1
            low, high = sorted((sign * pair["low"], sign * pair["high"]))
            interval = f" [{_signed(low)}, {_signed(high)}]" if pair["runs"] > 1 else ""
            return _signed(sign * pair["mean"]) + interval
    return ""


def _number(value: float) -> str:
    """One decimal, or two digits where that would hide a small number."""
    return format(value, ".2g" if 0 < abs(value) < 1 else ".1f")


def _signed(value: float) -> str:
    """With its sign, and no decimals that nobody reads."""
    return format(value + 0.0, "+.2g" if 0 < abs(value) < 1 else "+.1f" if abs(value) < 100 else "+.0f")


def _speed(rounds: float) -> str:
    return f"{rounds / 1000:,.0f}k/s" if rounds >= 1000 else f"{rounds:.0f}/s"
