"""Other libraries' agents as ours, and only the first problems of a batch."""

from __future__ import annotations

import numpy as np
import pytest

import driftformer as df
from driftformer.agents import peers
from driftformer.agents.first import First
from driftformer.agents.peers import PEERS, MABWiserLinUCB, Peer, regressions
from driftformer.errors import InputError
from driftformer.simulation.rollout import rollout

RNG = np.random.default_rng(3)
Y = np.arange(60) % 3
X = np.eye(3)[Y] + 0.2 * RNG.normal(size=(60, 3))
WORLDS = {
    "blocks": df.make_env("table", data=(X, Y)),
    "items": df.make_env("items", data=(X, Y), horizon=60, arms=4),
    "arms that come and go": df.make_env("stationary", horizon=60, dim=3, arms=4, offered=0.6, noise=0.1),
}


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
@pytest.mark.parametrize("world", WORLDS)
def test_peers_learn_in_every_kind_of_world(peer: type[Peer], world: str) -> None:
    pytest.importorskip(peer.package)
    found = rollout(WORLDS[world], First(peer(), 4), counts=[4]).regrets[0].regret
    chance = rollout(WORLDS[world], "random").regrets[0].regret
    assert found.mean() < 0.75 * chance.mean()


@pytest.mark.parametrize("world", ["blocks", "items"])
def test_mabwisers_linucb_is_ours(world: str) -> None:
    """The same formula; where two arms are equal to the last bit, each library has its own first."""
    pytest.importorskip("mabwiser")
    theirs = rollout(WORLDS[world], First(MABWiserLinUCB(), 6), counts=[6]).regrets[0].regret
    ours = rollout(WORLDS[world], "linucb", counts=[6]).regrets[0].regret
    assert np.abs(theirs - ours).max() <= 2


def test_blocks_have_a_regression_each_and_items_share_one() -> None:
    context = np.array([0.5, 1.0])
    blocks = np.zeros((3, 6))
    for arm in range(3):
        blocks[arm, 2 * arm : 2 * arm + 2] = context
    assert [key for key, _ in regressions(blocks)] == [0, 1, 2]
    assert all(np.array_equal(x, context) for _, x in regressions(blocks))
    assert [key for key, _ in regressions(RNG.normal(size=(3, 6)))] == [0, 0, 0]


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(peers.importlib, "import_module", refuse)
    for peer in PEERS:
        with pytest.raises(InputError, match=rf"{peer.package} is not installed; pip install 'driftformer\[peers\]'"):
            rollout(WORLDS["items"], peer())


def test_the_first_problems_are_played_as_in_the_whole_batch() -> None:
    environment = WORLDS["arms that come and go"]
    for name in ("linucb", "thompson", "random"):
        whole = rollout(environment, name, counts=[9]).regrets[0].regret
        part = rollout(environment, First(df.make_agent(name), 9), counts=[9]).regrets[0].regret
        np.testing.assert_allclose(part, whole, rtol=1e-4)


def test_who_must_be_told_the_truth_cannot_play_a_part() -> None:
    with pytest.raises(InputError, match="base is 'optimal', which must be told the truth"):
        First(df.make_agent("optimal"))
    with pytest.raises(InputError, match="problems is 65"):
        First(df.make_agent("linucb"), 65)
