"""Single runs from the inside: what a policy is offered and believes, and MASTER's instances and restarts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driftformer.report.markup import escaped, figure
from driftformer.report.page import Figures, Section
from driftformer.simulation.numbers import number


def single_runs_section(runs: Mapping[str, Mapping[str, Any]], figures: Figures) -> Section:
    figures["single-runs"] = {"kind": "runs", "runs": runs}
    first = next(iter(runs.values()))
    text = f"""<p>One run on High at b = 0.018, or in the combination lock. For a policy the upper plot shows the mean
reward of each arm as a line, the best arm of the first round darkest, with dots where the policy played; below it the
same colours show how likely it was to play each arm. It tracks the cosine where its dots stay on the highest line. For
MASTER the plots show the order of the active instance (order m remembers at most 2<sup>m</sup> rounds), the regret,
and, dashed, where a test triggered a restart. In an MDP they show what episodes earned beside the optimum, dashed where
the MDP changed, and the states of the episodes around the first change.</p>
<p id="single-run-caption">{escaped(first["caption"])}</p>
{figure("single-runs", "tall")}"""
    return Section("single-runs", "Single runs from the inside", text, "Single runs")


def caption(run: Mapping[str, Any]) -> str:
    """What a single run shows, in words."""
    words = (
        f"Problem {run['problem']} of {run['runs']}, the one with the median regret: {number(run['regret_final'])}. "
        f"Over all {run['runs']} the median is {number(run['regret_median'])}, the mean {number(run['regret_mean'])}. "
        f"Here the agent played the best arm in {run['best_arm_share']:.0%} of the rounds"
    )
    if run["kind"] == "mdp":
        count = len(run["changes"])
        return f"{words.replace('best arm', 'best action').replace('rounds', 'steps')}; the MDP changed {count} times."
    if run["kind"] == "policy":
        return f"{words}."
    count = len(run["restarts"])
    return f"{words} and restarted {'once' if count == 1 else f'{count} times' if count else 'never'}."
