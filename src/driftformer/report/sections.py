"""The parts of the page that are text: they stand there without any script."""

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

_DOCS = Path(driftformer.__file__).parents[2] / "docs"


def body(payload: Mapping[str, Any], out: Path) -> str:
    """All sections, in reading order."""
    parts = [_intro(payload), _claims(payload["claims"])]
    parts += [_experiment(experiment, payload) for experiment in payload["experiments"]]
    parts += [_trained(training) for training in payload["trainings"]]
    parts += [_rates(payload["rates"], payload["rates_are_kept"])]
    parts += [_theory(payload["theory"], out)] if payload["theory"] else []
    parts += [_stories(payload["stories"]), _agents(payload, out)]
    return "\n".join(parts)


def headlines(payload: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A line for each of the paper's worlds: the best policy there, LinUCB, and the oracle."""
    lines = []
    for experiment in payload["experiments"]:
        if not experiment["paper"]:
            continue
        case = experiment["cases"][0]
        agents = case["agents"]
        policies = [name for name in agents if "policy:" in name]
        shown = [min(policies, key=lambda name: agents[name]["mean"])] if policies else []
        shown += [name for name in ("linucb", "oracle") if name in agents]
        lines.append((experiment["title"], ", ".join(f"{name} {_pm(agents[name])}" for name in shown)))
    return lines


def _intro(payload: Mapping[str, Any]) -> str:
    items = "".join(f"<li><b>{_e(title)}:</b> {_e(text)}</li>" for title, text in headlines(payload))
    links = [("claims", "Claims"), *((one["name"], one["title"]) for one in payload["experiments"])]
    links += [(one["name"], one["title"]) for one in payload["trainings"]]
    links += [("rates", "Rates")]
    links += [("theory", "The proof, run")] if payload["theory"] else []
    links += [("stories", "Single runs"), ("agents", "Agents")]
    nav = "".join(f'<li><a href="#{_e(anchor)}">{_e(text)}</a></li>' for anchor, text in links)
    return f"""<header>
<h1>Deciding in a changing world</h1>
<p>In every round an agent sees ten arms, each with 32 features, chooses one and is paid for it. How features turn into
pay changes while it plays. <b>Dynamic regret</b> is how much pay it lost, in all, against the best arm of each single
round: none at all is perfect, and <code>random</code> shows what chance loses. The <code>oracle</code> is told how the
world changes, though not which arms are good: what it still loses is the price of finding out.</p>
<ul class="headlines">{items}</ul>
<p class="quiet">Mean dynamic regret ± standard error. Scale <code>{_e(payload["scale"])}</code>, seed
{payload["seed"]}. Every agent meets the same problems and the same noise.</p>
</header>
<nav aria-label="Sections"><ul>{nav}</ul></nav>"""


def _claims(claims: Iterable[Mapping[str, Any]]) -> str:
    rows = "".join(_claim(claim) for claim in claims)
    return f"""<section id="claims"><h2>Claims</h2>
<p>What the paper says of its experiments, and what goes beyond it. Verdicts follow from 95% intervals of differences on
the same problems: <i>ahead</i> means that the whole interval lies below zero.</p>
<div class="wide"><table><thead><tr><th scope="col">Claim</th><th scope="col">Where</th><th scope="col">Measured</th>
<th scope="col">Verdict</th></tr></thead><tbody>{rows}</tbody></table></div></section>"""


def _claim(claim: Mapping[str, Any]) -> str:
    if claim["missing"]:
        command = f"driftformer reproduce {' '.join(claim['missing'])}"
        measured = f"not run: <code>{_e(command)}</code>"
    else:
        measured = _findings(claim)
    kind = claim["verdict"].replace(" ", "-")
    return (
        f"<tr><td>{_prose(claim['text'])}</td><td>{_e(claim['where']) or 'ours'}</td><td>{measured}</td>"
        f'<td><span class="verdict {kind}">{_e(claim["verdict"])}</span></td></tr>'
    )


def _findings(claim: Mapping[str, Any]) -> str:
    lines = []
    for one in claim["findings"]:
        mark = "✓" if one["holds"] else "✗"
        place = one["experiment"] if one["experiment"] != "rivals" else one["case"]
        if claim["rule"] == "near":
            text = f"{one['value']:.0%} [{one['low']:.0%}, {one['high']:.0%}] of the way"
        else:
            text = f"{one['agent']} − {one['rival']}: {one['value']:+.3g} [{one['low']:+.3g}, {one['high']:+.3g}]"
        lines.append(f"<li>{mark} {_e(place)}: {_e(text)}, {one['runs']} runs</li>")
    listed = f'<ul class="findings">{"".join(lines)}</ul>'
    if len(lines) <= 4:
        return listed
    held = sum(one["holds"] for one in claim["findings"])
    return f"<details><summary>{held} of {len(lines)} comparisons</summary>{listed}</details>"


def _experiment(experiment: Mapping[str, Any], payload: Mapping[str, Any]) -> str:
    name = experiment["name"]
    paper = f'<p class="quiet">In the paper: {_e(experiment["paper"])}</p>' if experiment["paper"] else ""
    command = f"driftformer reproduce {name} {payload['asked']}"
    return f"""<section id="{_e(name)}" class="experiment"><h2>{_e(experiment["title"])}</h2>
<p>{_prose(experiment["question"])}</p>{paper}
<div class="controls" data-experiment="{_e(name)}"></div>
<div class="plots" data-experiment="{_e(name)}"></div>
<details><summary>The numbers, and how to get them again</summary>
{"".join(_table(case) for case in experiment["cases"])}
<p>Again: <code>{_e(command)}</code>. As pictures: <code>figures/{_e(name)}.png</code> and
<code>.svg</code>.</p></details>
</section>"""


def _trained(experiment: Mapping[str, Any]) -> str:
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
    kept = f"<p>Computed beforehand, on one {_e(where)}: these results come with the package.</p>" if where else ""
    pictures = "" if where else f" As pictures: <code>figures/{_e(name)}.png</code> and <code>.svg</code>."
    return f"""<section id="{_e(name)}" class="experiment"><h2>{_e(experiment["title"])}</h2>{kept}
<p>{_prose(experiment["question"])}</p><p class="quiet">In the paper: {_e(experiment["paper"])}</p>
<div class="plots"><div class="plot trained" data-training="{_e(name)}" role="img"></div></div>
<details><summary>The numbers, and how to get them again</summary>
<div class="wide"><table><caption>Dynamic regret as a share of what chance loses in the same world, ± standard error.
</caption><thead><tr><th scope="col"></th>{head}</tr></thead><tbody>{body}</tbody></table></div>
<p>Again: <code>{_e(experiment["command"])}</code>.{pictures}</p></details></section>"""


def _share(found: Mapping[str, float] | None) -> str:
    return "–" if found is None else f"{found['mean']:.3f} ± {found['stderr']:.3f}"


def _rates(rates: Mapping[str, Any], are_kept: bool) -> str:
    """Fitted exponents beside those of the paper's table."""
    rows = "".join(
        f"<tr><td>{_e(sweep)}</td><td>{_e(agent)}</td><td>{one['slope']:.2f} [{one['low']:.2f}, {one['high']:.2f}]</td>"
        f"<td>{_e(found['expected'])}</td></tr>"
        for sweep, found in rates.items()
        for agent, one in found["agents"].items()
    )
    source = (
        "Computed beforehand: these come with the package (<code>driftformer reproduce rates --scale paper</code>)."
        if are_kept
        else "As a picture: <code>rates/rates.png</code>."
    )
    return f"""<section id="rates"><h2>Rates</h2>
<p>How dynamic regret grows with the horizon T, the number J of stretches and the path length Δ: fitted exponents with
95% intervals. In the paper: tab:rate. More: docs/master.md. {source}</p>
<div class="wide"><table><thead><tr><th scope="col">Sweep</th><th scope="col">Agent</th><th scope="col">Exponent</th>
<th scope="col">In the paper</th></tr></thead><tbody>{rows}</tbody></table></div></section>"""


def _theory(checks: Mapping[str, Mapping[str, str]], out: Path) -> str:
    """The constructions of the proof: pictures from the running objects, and a row for each check."""
    pictures = {
        "overview.svg": "Operations of MASTER and the layers of the network that do them",
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
is compared with the exact algorithm. Again: <code>driftformer theory</code>; more: docs/theory.md.</p>{images}
<div class="wide"><table><thead><tr><th scope="col">Statement: built</th><th scope="col">Size: claimed / built</th>
<th scope="col">Error: claimed / measured</th><th scope="col">Verdict</th></tr></thead><tbody>{rows}</tbody></table>
</div></section>"""


def _picture(path: Path, text: str) -> str:
    """A picture that stands in the page itself."""
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img class="picture" alt="{_e(text)}" src="data:image/svg+xml;base64,{data}">'


def _table(case: Mapping[str, Any]) -> str:
    ranking = sorted(case["agents"], key=lambda name: case["agents"][name]["mean"])
    rows = "".join(
        f'<tr><td><a href="#agent-{_anchor(name)}">{_e(name)}</a></td><td>{_pm(case["agents"][name])}</td>'
        f"<td>{case['agents'][name]['runs']}</td></tr>"
        for name in ranking
    )
    return f"""<div class="wide"><table><caption>{_e(case["title"])}. {_e(case["setting"])}. How much it changes
(Definition 1): Δ = {case["amount"]:g}, J = {case["count"]:g}.</caption><thead><tr><th scope="col">Agent</th>
<th scope="col">Dynamic regret</th><th scope="col">Runs</th></tr></thead><tbody>{rows}</tbody></table></div>"""


def _stories(stories: Mapping[str, Any]) -> str:
    options = "".join(f'<option value="{_e(name)}">{_e(story["title"])}</option>' for name, story in stories.items())
    return f"""<section id="stories"><h2>Single runs</h2>
<p>One problem of High at b = 0.018, from within. For a policy: above, what each arm would pay, a line each, with dots
where it played; below, the probability that it gives each arm, the best of the first round on top. It follows the
cosine where the dots stay on the highest line. For MASTER: which order of its instances acts (order m has a memory of
at most 2<sup>m</sup> rounds), and where a test made it begin again.</p>
<div class="controls"><label>Run <select id="story">{options}</select></label></div>
<div class="plots"><div id="story-plot" class="plot tall" role="img" aria-label="One run"></div></div></section>"""


def _agents(payload: Mapping[str, Any], out: Path) -> str:
    names = payload["agents"]
    items = "".join(
        f'<dt id="agent-{_anchor(name)}"><code>{_e(name)}</code></dt>'
        f"<dd>{_e(summary_of(name))}. {_docs(name, out)}</dd>"
        for name in names
    )
    return f'<section id="agents"><h2>Agents</h2><dl>{items}</dl></section>'


def _docs(agent: str, out: Path) -> str:
    """Where to read more, as a link where the project's docs lie on this disk."""
    page = "policies.md" if "policy:" in agent else "master.md"
    if not (_DOCS / page).exists():
        return f"More: docs/{page}."
    return f'More: <a href="{_e(os.path.relpath(_DOCS / page, out))}">docs/{page}</a>.'


def _pm(row: Mapping[str, float]) -> str:
    return f"{row['mean']:.1f} ± {row['stderr']:.1f}"


def _anchor(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def _prose(text: str) -> str:
    """A sentence, with what stands in backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", _e(text))


def _e(text: object) -> str:
    return html.escape(str(text))
