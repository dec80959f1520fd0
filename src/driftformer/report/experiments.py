"""A section for each experiment: agents that play, policies that were trained, rates, and the bake-off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from driftformer.evaluation.verdict import evidence, verdict
from driftformer.experiments.base import Experiment
from driftformer.experiments.read_claims import COLUMNS, read_claims
from driftformer.experiments.readings import READINGS
from driftformer.experiments.trainings import world_in_words
from driftformer.report.content import Content
from driftformer.report.markup import escaped, figure, prose, table
from driftformer.report.page import Figures, Section
from driftformer.report.worlds import about, curves, rounded, table_of
from driftformer.simulation.numbers import number, share
from driftformer.simulation.summary import Summary

_NUMBERS = "Numbers, and how to reproduce them"
_NINETY_FIVE = 1.96


def experiment_section(experiment: Experiment, content: Content, figures: Figures) -> Section:
    """An experiment in which agents play: its question, its answer in a sentence, its curves, its numbers."""
    name, summaries = experiment.name, content.summaries[experiment.name]
    panels = [{"title": panel.title, "agents": list(panel.agents)} for panel in experiment.panels]
    cases = [(case.title, summaries[case.name]) for case in experiment.cases]
    swept = bool(experiment.axis)
    figures[name] = _sweep(experiment, summaries) if swept else curves(cases, panels)
    answers = "" if swept else "".join(_answer(title, summary, len(cases)) for title, summary in cases)
    if len(cases) > 1 and answers:
        answers = f"<details><summary>Who wins, world by world</summary>{answers}</details>"
    paper = f'<p class="quiet">In the paper: {escaped(experiment.paper)}.</p>' if experiment.paper else ""
    paper += _readings(content) if name == READINGS.name else ""
    tables = "".join(
        table_of(
            summaries[case.name], _caption(case.title, summaries[case.name], content.nonstationarity[name][case.name])
        )
        for case in experiment.cases
    )
    text = f"""<p>{prose(experiment.question)}</p>{answers}{paper}
{figure(name)}
<details><summary>{_NUMBERS}</summary>{tables}
<p>Command: <code>{escaped(f"driftformer reproduce {name} {content.options}")}</code>. {_files(name)}</p></details>"""
    return Section(name, experiment.title, text, short(name))


def short(name: str) -> str:
    """A name as the words of a link."""
    return name.replace("-", " ").capitalize()


def _answer(title: str, summary: Summary, cases: int) -> str:
    heading = f"<b>{escaped(title)}.</b> " if cases > 1 else ""
    return f"<p>{heading}{prose(verdict(summary))} {prose(evidence(summary))}</p>"


def _caption(title: str, summary: Summary, changes: Mapping[str, Any]) -> str:
    text = f"<b>{escaped(title)}.</b> {escaped(about(summary))}"
    if changes["amount"] is not None:  # where they could be measured
        amount, count = f"{changes['amount']:.4g}", f"{changes['count']:.4g}"
        text += f" Non-stationarity (Definition 1): Δ = {amount}, J = {count}."
    return text


def _sweep(experiment: Experiment, summaries: Mapping[str, Summary]) -> dict[str, Any]:
    """Regret along the axis, with 95% intervals."""
    values = [case.value for case in experiment.cases]
    found = [summaries[case.name] for case in experiment.cases]
    names = [name for name in found[0].agents if all(name in one.agents for one in found)]
    lines = {}
    for name in names:
        rows = [one.agents[name] for one in found]
        reach = [_NINETY_FIVE * (row.regret_stderr or 0.0) for row in rows]
        lines[name] = {
            "mean": [rounded(row.regret_mean) for row in rows],
            "low": [rounded(row.regret_mean - far) for row, far in zip(rows, reach, strict=True)],
            "high": [rounded(row.regret_mean + far) for row, far in zip(rows, reach, strict=True)],
            "text": [number(row.regret_mean) for row in rows],
        }
    panel = {"title": "", "lines": lines}
    y = "dynamic regret after the last round"
    return {"kind": "lines", "axis": experiment.axis, "y": y, "values": values, "total": 1, "panels": [panel]}


def _readings(content: Content) -> str:
    """How the paper's claims fare in each reading."""
    readings = read_claims(content.summaries[READINGS.name])
    return table(COLUMNS, [[escaped(cell) for cell in reading.cells] for reading in readings])


def training_section(experiment: Mapping[str, Any], figures: Figures) -> Section:
    """An experiment that trained policies: its plot, and its numbers as a table."""
    name, where, worlds = experiment["name"], experiment["kept_from"], list(experiment["rows"][0]["worlds"])
    kept = f"<p>These results come with the package; they were computed on one {escaped(where)}.</p>" if where else ""
    matrix = experiment["view"] == "matrix"
    lines = [(row["label"], row["worlds"]) for row in experiment["rows"]] + list(experiment["references"].items())
    rows = [(escaped(label), *(_cell(found.get(world), matrix) for world in worlds)) for label, found in lines]
    heads = ["", *(escaped(f"played in {world_in_words(world)}") for world in worlds)]
    numbers = table(heads, rows, "Dynamic regret as a share of chance's in the same world, ± standard error.")
    shown = f'<div class="matrix">{numbers}</div>' if matrix else figure(name)
    if not matrix:
        figures[name] = {"kind": "trained", **{key: experiment[key] for key in ("title", "view", "axis")}}
        figures[name] |= _trained(experiment, worlds[0])
    details = "" if matrix else numbers
    return Section(
        name,
        experiment["title"],
        f"""{kept}
<p>{prose(experiment["question"])}</p><p class="quiet">In the paper: {escaped(experiment["paper"])}.</p>
{shown}
<details><summary>{"How to reproduce it" if matrix else _NUMBERS}</summary>{details}
<p>Command: <code>{escaped(experiment["command"])}</code>. {"" if where else _files(name)}</p></details>""",
        short(name.removesuffix("-kept")) + (" at scale" if where else ""),
    )


def _trained(experiment: Mapping[str, Any], world: str) -> dict[str, Any]:
    found = [row["worlds"][world] for row in experiment["rows"]]
    return {
        "labels": [row["label"] for row in experiment["rows"]],
        "values": [row.get("value") for row in experiment["rows"]],
        "mean": [rounded(one["mean"]) for one in found],
        "reach": [rounded(_NINETY_FIVE * one["stderr"]) for one in found],
        "references": {agent: rounded(held[world]["mean"]) for agent, held in experiment["references"].items()},
    }


def _cell(found: Mapping[str, float] | None, shaded: bool) -> str:
    if found is None:
        return "–"
    text = f"{share(found['mean'])} ± {share(found['stderr'])}"
    depth = round(100 * max(0.0, min(1.0, found["mean"])))
    return f'<span class="shade" style="--depth:{depth}%">{text}</span>' if shaded else text


def _files(name: str) -> str:
    return f"Figures: <code>figures/{escaped(name)}.png</code> and <code>.svg</code>."


def rates_section(rates: Mapping[str, Any], are_kept: bool, figures: Figures) -> Section:
    """Power laws as lines, and the fitted exponents beside those of the paper's table."""
    figures["rates"] = {"kind": "rates", "panels": [_rate(name, found) for name, found in rates.items()]}
    rows = (
        (escaped(_RATES.get(sweep, sweep)), escaped(agent), _exponent(one), escaped(found["expected"]))
        for sweep, found in rates.items()
        for agent, one in found["agents"].items()
    )
    source = "Figure: <code>rates/rates.png</code>."
    if are_kept:
        source = "These results come with the package (<code>driftformer reproduce rates --scale paper</code>)."
    paths = next((found for found in rates.values() if "amounts" in found), None)
    definition = f" {_definition_1(paths)}" if paths else ""
    text = f"""<p>How dynamic regret grows with the horizon T, the number J of segments and the path length Δ. Both axes
are logarithmic, so that a power law is a line and its exponent the slope. In the paper: Table 1. More: docs/master.md.
{source}{definition}</p>
{figure("rates")}
{table(("Sweep", "Agent", "Exponent (95%)", "In the paper"), rows)}"""
    return Section("rates", "How regret grows: the rates of Table 1", text, "Rates")


def _definition_1(found: Mapping[str, Any]) -> str:
    """The paper's Δ beside the path of w*, with which it is proportional here."""
    pairs = ", ".join(
        f"{value:g}: {amount:.1f}" for value, amount in zip(found["values"], found["amounts"], strict=True)
    )
    return f"The path is that of w*; Definition 1's Δ, the sum of an offered arm's largest changes, is ({pairs})."


_RATES = {
    "horizon-jumps": "More rounds T, four jumps",
    "changes": "More segments J",
    "horizon-turn": "More rounds T, a steady turn",
    "path": "A longer path Δ",
}
"""The sweeps in words."""


def _exponent(found: Mapping[str, float]) -> str:
    return f"{found['slope']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"


def _rate(name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "title": _RATES.get(name, name),
        "expected": found["expected"],
        "axis": found["axis"],
        "values": found["values"],
        "lines": {
            agent: {"y": [rounded(value) for value in one["regret"]], "slope": f"{one['slope']:.2f}"}
            for agent, one in found["agents"].items()
        },
    }


def bakeoff_section(kept: Mapping[str, Any]) -> Section:
    """The bake-off that comes with the package."""
    tables = "".join(
        table(("Agent", "Items", "Values", "Blocks", "Interquartile mean"), _escaped(rows), escaped(title))
        for title, rows in kept["tables"].items()
    )
    text = f"""<p>Scores on streams made of real tables: 0 is random play, 100 the best arm of every round;
interquartile means over all problems with 95% intervals. These results come with the package
(<code>driftformer bakeoff</code>). More: docs/bakeoff.md.</p>
{tables}"""
    return Section("bakeoff", "Real tables", text)


def _escaped(rows: Iterable[Iterable[str]]) -> list[list[str]]:
    return [[escaped(cell) for cell in row] for row in rows]
