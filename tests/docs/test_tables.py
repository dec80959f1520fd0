"""The tables that results are put into on pages of the docs."""

from benchmarks.beyond import POLICY, table

import driftformer as df


def test_a_row_has_the_best_rival_and_intervals_are_counted_by_side() -> None:
    world = df.make_env("high", horizon=40, dim=4, arms=4, noise=0.3)
    agents = ["random", "linucb", "thompson", "prior@knows=drift", "oracle", POLICY]
    result = df.evaluate(world, agents, runs=16, progress=False)
    heads, _, row, _, verdict = table([result.summary], ["a small world"], ["oracle", "policy:cosine"])
    means = {name: agent.regret_mean for name, agent in result.summary.agents.items()}
    best = min(("linucb", "thompson"), key=means.__getitem__)
    assert heads == f"|  | `{POLICY}` | the best that is told nothing | the oracle | `policy:cosine` |"
    assert f"| `{best}`: {means[best]:.1f} ±" in row
    assert row.startswith(f"| a small world | {means[POLICY]:.1f} ±")
    assert row.endswith("| – |")
    won = [result.compare(POLICY, rival).ahead for rival in ("linucb", "thompson")]
    assert verdict == (
        f"Of 2 paired intervals {won.count(POLICY)} lie below zero, where the policy is ahead, "
        f"and {2 - won.count(POLICY) - won.count(None)} above."
    )
