"""The page of a reproduction: the board of all worlds, the claims, then a section for each experiment."""

from __future__ import annotations

from pathlib import Path

from driftformer.errors import InputError
from driftformer.evaluation.leaderboard import Leaderboard, evidence, leaderboard, verdict, worlds_of
from driftformer.evaluation.verdict import verdict as verdict_on
from driftformer.experiments import EXPERIMENTS
from driftformer.experiments.readings import READINGS
from driftformer.report.agents import agents_section
from driftformer.report.claims import claims_section
from driftformer.report.content import Content
from driftformer.report.evaluation import REGRET
from driftformer.report.experiments import bakeoff_section, experiment_section, rates_section, training_section
from driftformer.report.leaderboard import BOARD, BOARD_NOTE, board_figures, board_section
from driftformer.report.markup import escaped, figure, prose
from driftformer.report.page import Figures, Page, Section
from driftformer.report.single_runs import single_runs_section
from driftformer.report.theory import theory_section
from driftformer.report.worlds import privileged_in
from driftformer.simulation.numbers import with_error


def reproduction_page(folder: Path) -> tuple[Page, str]:
    """The page, and its sentence."""
    content = Content(folder)
    board = board_of(content)
    said = verdict(board) if board else "Nothing that was played here can be compared over worlds."
    figures: Figures = board_figures(board) if board else {}
    sections = [claims_section(content)]
    sections += [board_section(board)] if board else []
    sections += [experiment_section(EXPERIMENTS[name], content, figures) for name in content.summaries]
    sections += [training_section(one, figures) for one in content.trainings]
    sections += [rates_section(content.rates, content.rates_are_kept, figures)] if content.rates else []
    sections += [bakeoff_section(content.bakeoff)] if content.bakeoff else []
    sections += [theory_section(content.theory, folder)] if content.theory else []
    sections += [single_runs_section(content.single_runs, figures)] if content.single_runs else []
    summaries = [summary for cases in content.summaries.values() for summary in cases.values()]
    sections.append(agents_section(content.agents, privileged_in(summaries)))
    return Page("Decisions in a changing world", _first(content, said, board), sections, figures, _drawn(content)), said


def _drawn(content: Content) -> list[str]:
    """All agents that have a line somewhere."""
    rates = (agent for found in content.rates.values() for agent in found["agents"])
    references = (agent for one in content.trainings for agent in one["references"])
    return list(dict.fromkeys([*content.agents, *references, *rates]))


def board_of(content: Content) -> Leaderboard | None:
    """All worlds of the folder on one board, but for sweeps, whose many similar worlds would outvote the others."""
    found = [
        (case.title if len(experiment.cases) > 1 else experiment.title, content.summaries[name][case.name])
        for name in content.summaries
        for experiment in [EXPERIMENTS[name]]
        if not experiment.axis and name != READINGS.name
        for case in experiment.cases
    ]
    try:
        return leaderboard(worlds_of(found))
    except InputError:  # no world in common, or none with random play
        return None


def headlines(content: Content) -> list[tuple[str, str]]:
    """For each of the paper's worlds the best policy there, LinUCB and the oracle."""
    lines = []
    for name, cases in content.summaries.items():
        if EXPERIMENTS[name].paper:
            summary = next(iter(cases.values()))
            best = next((agent for agent in summary.ranking if "policy:" in agent), None)
            shown = [agent for agent in (best, "linucb", "oracle") if agent in summary.agents]
            rows = {agent: summary.agents[agent] for agent in shown if agent}
            numbers = ", ".join(
                f"{agent} {with_error(row.regret_mean, row.regret_stderr)}" for agent, row in rows.items()
            )
            lines.append((EXPERIMENTS[name].title, f"{numbers} ({summary.runs} problems)"))
    return lines


def _first(content: Content, said: str, board: Leaderboard | None) -> str:
    wins, told = [], dict(headlines(content))
    for name, cases in content.summaries.items():
        if EXPERIMENTS[name].paper:
            summary = next(iter(cases.values()))
            numbers = f'<span class="quiet">{escaped(told[EXPERIMENTS[name].title])}</span>'
            wins.append(f"<li><b>{escaped(EXPERIMENTS[name].title)}.</b> {prose(verdict_on(summary))} {numbers}</li>")
    return f"""<p class="quiet">Decisions in a changing world: in each round an agent plays one of the arms on
offer; how their rewards depend on their features changes over time. Scale <code>{escaped(content.scale)}</code>, seed
{content.seed}.</p>
<h1>{prose(said)}</h1>
<p>{prose(evidence(board)) if board else ""}</p>
{figure(BOARD, "hero") if board else ""}
<p class="quiet">{BOARD_NOTE if board else ""} {REGRET}</p>
<ul class="headlines">{"".join(wins)}</ul>"""


__all__ = ["Section", "board_of", "headlines", "reproduction_page"]
