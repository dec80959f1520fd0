"""The text of the page: all of it is there without the script."""

from __future__ import annotations

import base64
import html
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import driftformer
from driftformer.agents.registry import summary_of
from driftformer.experiments import EXPERIMENTS
from driftformer.experiments.base import Case, Experiment
from driftformer.experiments.claims import Finding, Verdict
from driftformer.report.content import Content
from driftformer.simulation.numbers import share, signed, with_error
from driftformer.simulation.summary import AgentSummary, Summary

_DOCS = Path(driftformer.__file__).parents[2] / "docs"


def body(content: Content, out: Path) -> str:
    """All sections, in reading order."""
    parts = [_intro(content), _claims(content.verdicts)]
    parts += [_experiment(EXPERIMENTS[name], content) for name in content.summaries]
    parts += [_training(training) for training in content.trainings]
    parts += [_rates(content.rates, content.rates_are_kept)]
    parts += [_theory(content.theory, out)] if content.theory else []
    parts += [_single_runs(content.single_runs), _agents(content.agents, out)]
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
    links = [("claims", "Claims"), *((name, EXPERIMENTS[name].title) for name in content.summaries)]
    links += [(one["name"], one["title"]) for one in content.trainings]
    links += [("rates", "Rates")]
    links += [("theory", "The proof, run")] if content.theory else []
    links += [("single-runs", "Single runs"), ("agents", "Agents")]
    nav = "".join(f'<li><a href="#{_e(anchor)}">{_e(text)}</a></li>' for anchor, text in links)
    return f"""<header>
<h1>Decisions in a changing world</h1>
<p>In each round an agent is offered ten arms with 32 features each, plays one and receives a reward. How the reward
depends on the features changes over time. <b>Dynamic regret</b> is the total reward lost relative to the best arm of
each round: zero is perfect, and <code>random</code> shows what chance loses. The <code>oracle</code> knows how the
world changes but not which arms are good; its regret is the price of finding out.</p>
<ul class="headlines">{items}</ul>
<p class="quiet">Mean dynamic regret ± standard error; scale <code>{_e(content.scale)}</code>, seed {content.seed}. In
each comparison all agents play the same problems with the same noise.</p>
</header>
<nav aria-label="Sections"><ul>{nav}</ul></nav>"""


def _claims(verdicts: Iterable[Verdict]) -> str:
    rows = "".join(map(_claim, verdicts))
    return f"""<section id="claims"><h2>Claims</h2>
<p>What the paper claims about its experiments, and what we claim beyond it. Verdicts follow from 95% intervals of
differences on the same problems: an agent is <i>ahead</i> if the whole interval lies below zero.</p>
<div class="wide"><table><thead><tr><th scope="col">Claim</th><th scope="col">Source</th><th scope="col">Measured</th>
<th scope="col">Verdict</th></tr></thead><tbody>{rows}</tbody></table></div></section>"""


def _claim(verdict: Verdict) -> str:
    measured = _findings(verdict)
    if verdict.missing:
        command = f"driftformer reproduce {' '.join(verdict.missing)}"
        measured = f"not run: <code>{_e(command)}</code>"
    kind = verdict.verdict.replace(" ", "-")
    return (
        f"<tr><td>{_prose(verdict.claim.text)}</td><td>{_e(verdict.claim.where) or 'ours'}</td><td>{measured}</td>"
        f'<td><span class="verdict {kind}">{_e(verdict.verdict)}</span></td></tr>'
    )


def _findings(verdict: Verdict) -> str:
    lines = "".join(f"<li>{_e(_finding(verdict.claim.rule, one))}</li>" for one in verdict.findings)
    listed = f'<ul class="findings">{lines}</ul>'
    if len(verdict.findings) <= 4:
        return listed
    held = sum(finding.holds for finding in verdict.findings)
    return f"<details><summary>{held} of {len(verdict.findings)} comparisons hold</summary>{listed}</details>"


def _finding(rule: str, found: Finding) -> str:
    one = found.comparison
    place = one.experiment if one.experiment != "rivals" else one.case
    if rule == "near":
        text = f"{found.value:.0%} [{found.low:.0%}, {found.high:.0%}] of the way"
    else:
        text = f"{one.agent} − {one.rival}: {signed(found.value)} [{signed(found.low)}, {signed(found.high)}]"
    return f"{'✓' if found.holds else '✗'} {place}: {text}, {found.runs} problems"


def _experiment(experiment: Experiment, content: Content) -> str:
    name = experiment.name
    paper = f'<p class="quiet">In the paper: {_e(experiment.paper)}</p>' if experiment.paper else ""
    summaries, changes = content.summaries[name], content.nonstationarity[name]
    tables = "".join(_table(case, summaries[case.name], changes[case.name]) for case in experiment.cases)
    return f"""<section id="{_e(name)}" class="experiment"><h2>{_e(experiment.title)}</h2>
<p>{_prose(experiment.question)}</p>{paper}
<div class="controls" data-experiment="{_e(name)}"></div>
<div class="plots" data-experiment="{_e(name)}"></div>
<details><summary>Numbers, and how to reproduce them</summary>{tables}
<p>Command: <code>{_e(f"driftformer reproduce {name} {content.options}")}</code>. Figures:
<code>figures/{_e(name)}.png</code> and <code>.svg</code>.</p></details>
</section>"""


def _training(experiment: Mapping[str, Any]) -> str:
    """An experiment that trained policies: its plot, and its numbers as a table."""
    name, rows = experiment["name"], experiment["rows"]
    worlds = list(rows[0]["worlds"])
    lines = [(row["label"], row["worlds"]) for row in rows] + list(experiment["references"].items())
    head = "".join(f'<th scope="col">{_e(world)}</th>' for world in worlds)
    body = "".join(
        f"<tr><td>{_e(label)}</td>{''.join(f'<td>{_share(found.get(world))}</td>' for world in worlds)}</tr>"
        for label, found in lines
    )
    where = experiment["kept_from"]
    kept = f"<p>These results come with the package; they were computed on one {_e(where)}.</p>" if where else ""
    figures = "" if where else f" Figures: <code>figures/{_e(name)}.png</code> and <code>.svg</code>."
    return f"""<section id="{_e(name)}" class="experiment"><h2>{_e(experiment["title"])}</h2>{kept}
<p>{_prose(experiment["question"])}</p><p class="quiet">In the paper: {_e(experiment["paper"])}</p>
<div class="plots"><div class="plot trained" data-training="{_e(name)}" role="img"></div></div>
<details><summary>Numbers, and how to reproduce them</summary>
<div class="wide"><table><caption>Dynamic regret as a share of chance's in the same world, ± standard error.
</caption><thead><tr><th scope="col"></th>{head}</tr></thead><tbody>{body}</tbody></table></div>
<p>Command: <code>{_e(experiment["command"])}</code>.{figures}</p></details></section>"""


def _share(found: Mapping[str, float] | None) -> str:
    return "–" if found is None else f"{share(found['mean'])} ± {share(found['stderr'])}"


def _rates(rates: Mapping[str, Any], are_kept: bool) -> str:
    """Fitted exponents beside those of the paper's table."""
    rows = "".join(
        f"<tr><td>{_e(sweep)}</td><td>{_e(agent)}</td><td>{one['slope']:.2f} [{one['low']:.2f}, {one['high']:.2f}]</td>"
        f"<td>{_e(found['expected'])}</td></tr>"
        for sweep, found in rates.items()
        for agent, one in found["agents"].items()
    )
    source = (
        "These results come with the package (<code>driftformer reproduce rates --scale paper</code>)."
        if are_kept
        else "Figure: <code>rates/rates.png</code>."
    )
    return f"""<section id="rates"><h2>Rates</h2>
<p>How dynamic regret grows with the horizon T, the number J of segments and the path length Δ: fitted exponents with
95% intervals. In the paper: tab:rate. More: docs/master.md. {source}</p>
<div class="wide"><table><thead><tr><th scope="col">Sweep</th><th scope="col">Agent</th><th scope="col">Exponent</th>
<th scope="col">In the paper</th></tr></thead><tbody>{rows}</tbody></table></div></section>"""


def _theory(checks: Mapping[str, Mapping[str, str]], out: Path) -> str:
    """The constructions of the proof: pictures drawn from their weights, and a row for each check."""
    pictures = {
        "overview.svg": "The operations of MASTER, and the layers of the network that perform them",
        "scheduler.svg": "Random numbers, flags and active orders of one block, and the scores of one head",
        "equivalence.svg": "Which rounds each round may learn from: adjacent windows, and a sliding window",
    }
    images = "".join(_picture(out / "theory" / name, text) for name, text in pictures.items())
    rows = "".join(
        f"<tr><td>{_e(row['statement'])}: {_e(row['built'])}</td>"
        f"<td>{_e(row['size_claimed'])} / {_e(row['size_built'])}</td>"
        f"<td>{_e(row['error_claimed'])} / {_e(row['error_measured'])}</td><td>{_e(row['verdict'])}</td></tr>"
        for row in checks.values()
    )
    return f"""<section id="theory"><h2>The proof, run</h2>
<p>The paper proves by construction that a transformer can run MASTER. Here each construction has explicit weights and
is compared with the exact algorithm. Command: <code>driftformer theory</code>; more: docs/theory.md.</p>{images}
<div class="wide"><table><thead><tr><th scope="col">Statement: built</th><th scope="col">Size: claimed / built</th>
<th scope="col">Error: claimed / measured</th><th scope="col">Verdict</th></tr></thead><tbody>{rows}</tbody></table>
</div></section>"""


def _picture(path: Path, text: str) -> str:
    """A picture embedded in the page."""
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img class="picture" alt="{_e(text)}" src="data:image/svg+xml;base64,{data}">'


def _change(changes: Mapping[str, Any]) -> str:
    """Δ and J of Definition 1, where they could be measured."""
    if changes["amount"] is None:
        return ""
    return f"Non-stationarity (Definition 1): Δ = {changes['amount']:.4g}, J = {changes['count']:.4g}."


def _table(case: Case, summary: Summary, changes: Mapping[str, Any]) -> str:
    rows = "".join(
        f'<tr><td><a href="#agent-{_anchor(name)}">{_e(name)}</a></td><td>{_regret(summary.agents[name])}</td></tr>'
        for name in summary.ranking
    )
    return f"""<div class="wide"><table><caption>{_e(case.title)}. {_e(summary.description)}; {summary.runs} problems.
{_change(changes)}</caption>
<thead><tr><th scope="col">Agent</th><th scope="col">Dynamic regret</th></tr></thead><tbody>{rows}</tbody></table>
</div>"""


def _single_runs(runs: Mapping[str, Mapping[str, Any]]) -> str:
    options = "".join(f'<option value="{_e(name)}">{_e(run["title"])}</option>' for name, run in runs.items())
    first = next(iter(runs.values()), {"caption": ""})
    return f"""<section id="single-runs"><h2>Single runs</h2>
<p>One run on High at b = 0.018, from the inside. For a policy the upper plot shows the mean reward of each arm as a
line, with dots where the policy played; the lower one shows the probability it gave each arm, numbered by their order
in the first round. It tracks the cosine where its dots stay on the highest line. For MASTER the plots show the order of
the active instance (order m remembers at most 2<sup>m</sup> rounds), the regret, and where a test triggered a
restart.</p>
<div class="controls"><label>Run <select id="single-run">{options}</select></label></div>
<p id="single-run-caption">{_e(first["caption"])}</p>
<div class="plots"><div id="single-run-plot" class="plot tall" role="img" aria-label="One run"></div></div></section>"""


def _agents(names: Iterable[str], out: Path) -> str:
    items = "".join(
        f'<dt id="agent-{_anchor(name)}"><code>{_e(name)}</code></dt>'
        f"<dd>{_e(summary_of(name))}. {_docs(name, out)}</dd>"
        for name in names
    )
    return f'<section id="agents"><h2>Agents</h2><dl>{items}</dl></section>'


def _docs(agent: str, out: Path) -> str:
    """Where to read more, as a link if the project's docs are on this disk."""
    page = "policies.md" if "policy:" in agent else "master.md"
    if not (_DOCS / page).exists():
        return f"More: docs/{page}."
    return f'More: <a href="{_e(os.path.relpath(_DOCS / page, out))}">docs/{page}</a>.'


def _regret(row: AgentSummary) -> str:
    return with_error(row.regret_mean, row.regret_stderr)


def _anchor(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def _prose(text: str) -> str:
    """A sentence, with backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", _e(text))


def _e(text: object) -> str:
    return html.escape(str(text))
