"""Who wins, and by how much: the sentences that a report begins with, from a summary alone.

An agent wins if the whole 95% interval of its paired difference to the next best lies on one side of zero; otherwise
the two are level. Agents that know what no real agent can, and random play, are never called winners: they are the ends
of the scale.
"""

from __future__ import annotations

from driftformer.simulation.numbers import number
from driftformer.simulation.summary import CHANCE, Summary


def verdict(summary: Summary) -> str:
    """Who wins, in a sentence; names of agents are in backticks."""
    where = f"in {summary.horizon:,} round{'s' if summary.horizon > 1 else ''}"
    best, *others = summary.contenders or [""]
    if not best:
        return f"Nobody plays here who could win {where}."
    lost = f"{number(summary.agents[best].regret_mean)} of regret"
    if not others:
        return f"`{best}` has {lost} {where}."
    second, gap = summary.agents[others[0]].regret_mean, summary.difference(others[0], best)
    if gap.runs > 1 and gap.low > 0:
        much = percent(gap.mean / second) if second > 0 else number(gap.mean)
        return f"`{best}` wins: {lost} {where}, {much} less than the next best, `{others[0]}`."
    level = [name for name in others if not (gap := summary.difference(name, best)).runs > 1 or gap.low <= 0]
    names = ", ".join(f"`{name}`" for name in level[:3]) + (f" and {len(level) - 3} more" if len(level) > 3 else "")
    return (
        f"`{best}` has the least regret, {number(summary.agents[best].regret_mean)} {where}, but is level with {names}."
    )


def evidence(summary: Summary) -> str:
    """How sure that is, and the ends of the scale: what chance loses, and what those lose who know more."""
    means = {name: row.regret_mean for name, row in summary.agents.items()}
    best, *others = summary.contenders or [""]
    told = []
    if others and summary.runs == 1:
        told.append("A single problem decides nothing.")
    elif others:
        gap = summary.difference(others[0], best)
        interval = f"95% interval {number(gap.low)} to {number(gap.high)}"
        told.append(
            f"The difference to `{others[0]}` is {number(gap.mean)} on the same {gap.runs:,} problems ({interval})."
        )
    if CHANCE in means:
        won = (
            f", of which `{best}` wins {percent(1 - means[best] / means[CHANCE])} back"
            if best and means[CHANCE] > 0
            else ""
        )
        told.append(f"Random play loses {number(means[CHANCE])}{won}.")
    knowing = [name for name in summary.ranking if summary.agents[name].privileged and means[name] > 0]
    if knowing:
        told.append(f"`{knowing[0]}`, which knows what no real agent can, has {number(means[knowing[0]])}.")
    return " ".join(told)


def percent(value: float) -> str:
    return f"{value:.0%}"
