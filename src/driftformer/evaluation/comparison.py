"""Two agents on the same problems: by how much one is ahead, how sure that is, and how often."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driftformer.errors import unknown_name
from driftformer.evaluation.paired import Interval, bootstrapped
from driftformer.simulation.numbers import signed
from driftformer.simulation.summary import Summary


@dataclass(frozen=True, repr=False)
class Comparison:
    """How much more regret `agent` has than `rival` on the same problems, and how often it has less."""

    agent: str
    rival: str
    problems: int
    difference: Interval
    """Of regrets, the agent's less its rival's, with a 95% bootstrap interval: below zero where the agent is better."""
    win_rate: Interval
    """The share of problems on which the agent has less regret, a tie being half."""

    @property
    def ahead(self) -> str | None:
        """Who is ahead; None where the interval holds zero."""
        if self.difference.low <= 0 <= self.difference.high:
            return None
        return self.agent if self.difference.high < 0 else self.rival

    def __repr__(self) -> str:
        gap, won = self.difference, self.win_rate
        verdict = f"{self.ahead} is ahead" if self.ahead else "level"
        interval = f"[{signed(gap.low)}, {signed(gap.high)}]"
        return (
            f"{self.agent} − {self.rival}: {signed(gap.mean)} regret {interval}, {verdict}; "
            f"{self.agent} wins {won.mean:.0%} [{won.low:.0%}, {won.high:.0%}] of {self.problems} problems"
        )


def compare(summary: Summary, agent: str, rival: str) -> Comparison:
    """Two different agents of an evaluation."""
    for name in (agent, rival):
        if name not in summary.agents:
            raise unknown_name("agent", name, summary.agents)
    others = [name for name in summary.agents if name != agent]
    if agent == rival:
        raise unknown_name("rival", rival, others)
    ours, theirs = (np.array(summary.agents[name].regret_runs) for name in (agent, rival))
    pair = summary.difference(agent, rival)
    return Comparison(
        agent,
        rival,
        pair.runs,
        Interval(pair.mean, pair.low, pair.high),
        bootstrapped(np.heaviside(theirs - ours, 0.5), summary.seed),
    )
