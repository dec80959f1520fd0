"""Whoever plays a policy of some form while it is trained."""

from __future__ import annotations

from driftformer.models.checkpoints import Policy
from driftformer.models.query import QueryPolicy
from driftformer.models.tabular import TabularPolicy
from driftformer.pretraining.play import Player
from driftformer.pretraining.query import QueryPlayer
from driftformer.pretraining.tabular import TabularPlayer

AnyPlayer = Player | QueryPlayer | TabularPlayer


def player_of(policy: Policy) -> AnyPlayer:
    if isinstance(policy, QueryPolicy):
        return QueryPlayer(policy)
    return TabularPlayer(policy) if isinstance(policy, TabularPolicy) else Player(policy)
