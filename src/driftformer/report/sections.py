"""The text of the page: all of it is there without the script."""

from __future__ import annotations

import base64
import html
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import driftformer
from driftformer.agents.registry import summary_of
from driftformer.experiments import EXPERIMENTS
from driftformer.experiments.claims import Finding, Verdict
from driftformer.experiments.read_claims import COLUMNS, read_claims
from driftformer.experiments.readings import READINGS
from driftformer.report.content import Content
from driftformer.simulation.numbers import share, signed, with_error
from driftformer.simulation.summary import AgentSummary

_DOCS = Path(driftformer.__file__).parents[2] / "docs"
_PICTURES = {
    "overview.svg": "The operations of MASTER, and the layers of the network that perform them",
    "scheduler.svg": "Random numbers, flags and active orders of one block, and the scores of one head",
    "equivalence.svg": "Which rounds each round may learn from: adjacent windows, and a sliding window",
}
_NUMBERS = "Numbers, and how to reproduce them"


def body(content: Content, out: Path) -> str:
    """All sections, in reading order, below links to them."""
    sections = [("claims", "Claims", _claims(content.verdicts))]
    sections += [(name, EXPERIMENTS[name].title, _experiment(name, content)) for name in content.summaries]
    sections += [(one["name"], one["title"], _training(one)) for one in content.trainings]
    sections += [("rates", "Rates", _rates(content.rates, content.rates_are_kept))]
    sections += [("bakeoff", "Real tables", _bakeoff(content.bakeoff))] if content.bakeoff else []
    sections += [("theory", "The proof, run", _theory(content.theory, out))] if content.theory else []
    sections += [("single-runs", "Single runs", _single_runs(content.single_runs))]
    sections += [("agents", "Agents", _agents(content.agents, out))]
    links = "".join(f'<li><a href="#{_e(anchor)}">{_e(title)}</a></li>' for anchor, title, _ in sections)
    parts = [_intro(content), f'<nav aria-label="Sections"><ul>{links}</ul></nav>']
    parts += [f'<section id="{_e(name)}"><h2>{_e(title)}</h2>\n{text}</section>' for name, title, text in sections]
    return "\n".join(parts)


def headlines(content: Content) -> list[tuple[str, str]]:
    """For each of the paper's worlds the best policy there, LinUCB and the oracle."""
    lines = []
    for name, cases in content.summaries.items():
        if EXPERIMENTS[name].paper:
            summary = next(iter(cases.values()))
            best = next((agent for agent in summary.ranking if "policy:" in agent), None)
            shown = [agent for agent in (best, "linucb", "oracle") if agent in summary.agents]
            numbers = ", ".join(f"{agent} {_regret(summary.agents[agent])}" for agent in shown if agent)
            lines.append((EXPERIMENTS[name].title, f"{numbers} ({summary.runs} problems)"))
    return lines


def _intro(content: Content) -> str:
    items = "".join(f"<li><b>{_e(title)}:</b> {_e(text)}</li>" for title, text in headlines(content))
    return f"""<header>
<h1>Decisions in a changing world</h1>
<p>In each round an agent is offered ten arms with 32 features each, plays one and receives a reward. How the reward
depends on the features changes over time. <b>Dynamic regret</b> is the total reward lost relative to the best arm of
each round: zero is perfect, and <code>random</code> shows what chance loses. The <code>oracle</code> knows how the
world changes but not which arms are good; its regret is the price of finding out.</p>
<ul class="headlines">{items}</ul>
<p class="quiet">Mean dynamic regret ± standard error; scale <code>{_e(content.scale)}</code>, seed {content.seed}. In
each comparison all agents play the same problems with the same noise.</p>
</header>"""


def _claims(verdicts: Iterable[Verdict]) -> str:
    return f"""<p>What the paper claims about its experiments, and what we claim beyond it. Verdicts follow from 95%
intervals of differences on the same problems: an agent is <i>ahead</i> if the whole interval lies below zero.</p>
{_table(("Claim", "Source", "Measured", "Verdict"), map(_claim, verdicts))}"""


def _claim(found: Verdict) -> tuple[str, ...]:
    command = _e(f"driftformer reproduce {' '.join(found.missing)}")
    lines = "".join(f"<li>{_e(_finding(found.claim.rule, one))}</li>" for one in found.findings)
    measured = f"not run: <code>{command}</code>" if found.missing else f'<ul class="findings">{lines}</ul>'
    if len(found.findings) > 4:
        held = f"{sum(one.holds for one in found.findings)} of {len(found.findings)} comparisons hold"
        measured = f"<details><summary>{held}</summary>{measured}</details>"
    verdict = f'<span class="verdict {found.verdict.replace(" ", "-")}">{_e(found.verdict)}</span>'
    return _prose(found.claim.text), _e(found.claim.where) or "ours", measured, verdict


def _finding(rule: str, found: Finding) -> str:
    one = found.comparison
    place = one.experiment if one.experiment != "rivals" else one.case
    if rule == "near":
        text = f"{found.value:.0%} [{found.low:.0%}, {found.high:.0%}] of the way"
    else:
        text = f"{one.agent} − {one.rival}: {signed(found.value)} [{signed(found.low)}, {signed(found.high)}]"
    return f"{'✓' if found.holds else '✗'} {place}: {text}, {found.runs} problems"


def _experiment(name: str, content: Content) -> str:
    experiment, tables = EXPERIMENTS[name], ""
    for case in experiment.cases:
        summary, changes = content.summaries[name][case.name], content.nonstationarity[name][case.name]
        caption = f"{_e(case.title)}. {_e(summary.description)}; {summary.runs} problems."
        if changes["amount"] is not None:  # where they could be measured
            amount, count = f"{changes['amount']:.4g}", f"{changes['count']:.4g}"
            caption += f" Non-stationarity (Definition 1): Δ = {amount}, J = {count}."
        links = {agent: f'<a href="#agent-{_anchor(agent)}">{_e(agent)}</a>' for agent in summary.ranking}
        rows = ((link, _regret(summary.agents[agent])) for agent, link in links.items())
        tables += _table(("Agent", "Dynamic regret"), rows, caption)
    paper = f'<p class="quiet">In the paper: {_e(experiment.paper)}</p>' if experiment.paper else ""
    paper += _readings(content) if name == READINGS.name else ""
    return f"""<p>{_prose(experiment.question)}</p>{paper}
<div class="controls" data-experiment="{_e(name)}"></div>
<div class="plots" data-experiment="{_e(name)}"></div>
<details><summary>{_NUMBERS}</summary>{tables}
<p>Command: <code>{_e(f"driftformer reproduce {name} {content.options}")}</code>. {_figures(name)}</p></details>"""


def _readings(content: Content) -> str:
    """How the paper's claims fare in each reading."""
    readings = read_claims(content.summaries[READINGS.name])
    return _table(COLUMNS, [[_e(cell) for cell in reading.cells] for reading in readings])


def _training(experiment: Mapping[str, Any]) -> str:
    """An experiment that trained policies: its plot, and its numbers as a table."""
    name, where, worlds = experiment["name"], experiment["kept_from"], list(experiment["rows"][0]["worlds"])
    lines = [(row["label"], row["worlds"]) for row in experiment["rows"]] + list(experiment["references"].items())
    rows = ((_e(label), *(_share(found.get(world)) for world in worlds)) for label, found in lines)
    caption = "Dynamic regret as a share of chance's in the same world, ± standard error."
    kept = f"<p>These results come with the package; they were computed on one {_e(where)}.</p>" if where else ""
    return f"""{kept}
<p>{_prose(experiment["question"])}</p><p class="quiet">In the paper: {_e(experiment["paper"])}</p>
<div class="plots"><div class="plot trained" data-training="{_e(name)}" role="img"></div></div>
<details><summary>{_NUMBERS}</summary>{_table(["", *map(_e, worlds)], rows, caption)}
<p>Command: <code>{_e(experiment["command"])}</code>. {"" if where else _figures(name)}</p></details>"""


def _figures(name: str) -> str:
    return f"Figures: <code>figures/{_e(name)}.png</code> and <code>.svg</code>."


def _share(found: Mapping[str, float] | None) -> str:
    return "–" if found is None else f"{share(found['mean'])} ± {share(found['stderr'])}"


def _rates(rates: Mapping[str, Any], are_kept: bool) -> str:
    """Fitted exponents beside those of the paper's table."""
    rows = (
        (_e(sweep), _e(agent), f"{one['slope']:.2f} [{one['low']:.2f}, {one['high']:.2f}]", _e(found["expected"]))
        for sweep, found in rates.items()
        for agent, one in found["agents"].items()
    )
    source = "Figure: <code>rates/rates.png</code>."
    if are_kept:
        source = "These results come with the package (<code>driftformer reproduce rates --scale paper</code>)."
    return f"""<p>How dynamic regret grows with the horizon T, the number J of segments and the path length Δ: fitted
exponents with 95% intervals. In the paper: tab:rate. More: docs/master.md. {source}</p>
{_table(("Sweep", "Agent", "Exponent", "In the paper"), rows)}"""


def _bakeoff(kept: Mapping[str, Any]) -> str:
    """The bake-off that comes with the package."""
    tables = "".join(
        _table(
            ("Agent", "Items", "Values", "Blocks", "Interquartile mean"),
            [[_e(cell) for cell in row] for row in rows],
            _e(title),
        )
        for title, rows in kept["tables"].items()
    )
    return f"""<p>Scores on streams made of real tables: 0 is random play, 100 the best arm of every round;
interquartile means over all problems with 95% intervals. These results come with the package
(<code>driftformer bakeoff</code>). More: docs/bakeoff.md.</p>
{tables}"""


def _theory(checks: Mapping[str, Mapping[str, str]], out: Path) -> str:
    """The constructions of the proof: pictures drawn from their weights, and a row for each check."""
    images = ""
    for name, text in _PICTURES.items():
        data = base64.b64encode((out / "theory" / name).read_bytes()).decode()
        images += f'<img class="picture" alt="{_e(text)}" src="data:image/svg+xml;base64,{data}">'
    columns = ("Statement: built", "Size: claimed / built", "Error: claimed / measured", "Verdict")
    written = "{statement}: {built}", "{size_claimed} / {size_built}", "{error_claimed} / {error_measured}", "{verdict}"
    rows = ([_e(cell.format(**row)) for cell in written] for row in checks.values())
    return f"""<p>The paper proves by construction that a transformer can run MASTER. Here each construction has
explicit weights and is compared with the exact algorithm. Command: <code>driftformer theory</code>; more:
docs/theory.md.</p>
{images}{_table(columns, rows)}"""


def _single_runs(runs: Mapping[str, Mapping[str, Any]]) -> str:
    options = "".join(f'<option value="{_e(name)}">{_e(run["title"])}</option>' for name, run in runs.items())
    first = next(iter(runs.values()), {"caption": ""})
    return f"""<p>One run on High at b = 0.018, from the inside. For a policy the upper plot shows the mean reward of
each arm as a line, with dots where the policy played; the lower one shows the probability it gave each arm, numbered by
their order in the first round. It tracks the cosine where its dots stay on the highest line. For MASTER the plots show
the order of the active instance (order m remembers at most 2<sup>m</sup> rounds), the regret, and where a test
triggered a restart.</p>
<div class="controls"><label>Run <select id="single-run">{options}</select></label></div>
<p id="single-run-caption">{_e(first["caption"])}</p>
<div class="plots"><div id="single-run-plot" class="plot tall" role="img" aria-label="One run"></div></div>"""


def _agents(names: Iterable[str], out: Path) -> str:
    """What each agent is and where to read more, as a link if the project's docs are on this disk."""
    items = ""
    for name in names:
        page = "policies.md" if "policy:" in name else "master.md"
        docs = f"docs/{page}"
        if (_DOCS / page).exists():
            docs = f'<a href="{_e(os.path.relpath(_DOCS / page, out))}">{docs}</a>'
        items += f'<dt id="agent-{_anchor(name)}"><code>{_e(name)}</code></dt>'
        items += f"<dd>{_e(summary_of(name))}. More: {docs}.</dd>"
    return f"<dl>{items}</dl>"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """A table of cells that are HTML already."""
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    title = f"<caption>{caption}</caption>" if caption else ""
    return f'<div class="wide"><table>{title}<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'


def _regret(row: AgentSummary) -> str:
    return with_error(row.regret_mean, row.regret_stderr)


def _anchor(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def _prose(text: str) -> str:
    """A sentence, with backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", _e(text))


def _e(text: object) -> str:
    return html.escape(str(text))
