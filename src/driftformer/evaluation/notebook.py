"""A result in a notebook: its table, without scripts or styles of its own that a page could lose."""

from __future__ import annotations

import html

from driftformer.evaluation.verdict import evidence, verdict
from driftformer.simulation.numbers import number, with_error
from driftformer.simulation.summary import Summary

_LEFT, _RIGHT = 'style="text-align:left"', 'style="text-align:right"'


def as_html(summary: Summary) -> str:
    """Who wins, and the agents with the best one first."""
    best = next(iter(summary.contenders), summary.ranking[0])
    heads = ("agent", "dynamic regret", "std", f"difference to {best} (95%)")
    head = "".join(f"<th {_RIGHT if place else _LEFT}>{html.escape(name)}</th>" for place, name in enumerate(heads))
    rows = ""
    for name in summary.ranking:
        row = summary.agents[name]
        label = f"<code>{html.escape(name)}</code>{' *' if row.privileged else ''}"
        std = "–" if row.regret_std is None else number(row.regret_std)
        cells = (
            with_error(row.regret_mean, row.regret_stderr),
            std,
            "" if name == best else summary.difference(name, best).text,
        )
        rows += f"<tr><td {_LEFT}>{label}</td>{''.join(f'<td {_RIGHT}>{cell}</td>' for cell in cells)}</tr>"
    star = "<br>* knows what no real agent can" if any(row.privileged for row in summary.agents.values()) else ""
    said = html.escape(f"{verdict(summary)} {evidence(summary)}".replace("`", ""))
    return (
        f"<p><b>{html.escape(summary.title)}</b><br>{said}</p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
        f"</table><p><small>mean ± standard error; lower is better{star}</small></p>"
    )
