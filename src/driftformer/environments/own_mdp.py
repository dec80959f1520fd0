"""An MDP of one's own, from arrays: `df.mdp(rewards, transitions, stages=…, episodes=…)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from driftformer.environments.mdp import TabularMDP
from driftformer.environments.mdp_drift import MDPDrift, Same, Walk, as_mdp_drift
from driftformer.environments.mdp_families import Given
from driftformer.errors import InputError, require_count


def mdp(
    rewards: Any,
    transitions: Any,
    *,
    stages: int,
    episodes: int,
    drift: MDPDrift | Any = None,
    first: int = 0,
    law: str = "exact",
    name: str = "mdp",
) -> TabularMDP:
    """Rewards `[S, A]` and transitions `[S, A, S]` as an environment whose episodes have `stages` steps.

    With arrays `[H, S, A]` and `[H, S, A, S]` the steps of an episode differ. Lists of arrays are several MDPs: each
    becomes the next one, steadily, over all episodes, unless `drift` says otherwise: one of `environments.mdp_drift`,
    or a function (episode, rewards, transitions) → (rewards, transitions) on tensors `[B, H or 1, S, A]` and `[…, S]`.
    An episode begins in state `first`. Rewards are paid as they stand, or with `law="bernoulli"` as 1 with that
    probability, else 0.

    >>> rewards = np.array([[0.0, 0.2], [1.0, 0.0]])  # [S, A]
    >>> moves = np.array([[[1, 0], [0, 1]], [[0, 1], [1, 0]]])  # [S, A, S]: the second action changes the state
    >>> env = df.mdp(rewards, moves, stages=5, episodes=50)
    >>> df.evaluate(env, ["random", "ucb-vi"], runs=64, progress=False)
    Result(mdp: at rest, 2 states, 2 actions, H=5, 50 episodes, 64 runs, seed 0; regret: ucb-vi 5.2, random 144.1)
    """
    pays, moves = _stacked("rewards", rewards, 2), _stacked("transitions", transitions, 3)
    if moves.shape != (*pays.shape, pays.shape[2]):
        raise InputError(
            f"rewards are {list(pays.shape[1:])} and transitions {list(moves.shape[1:])}; give [S, A] and [S, A, S], "
            "or [H, S, A] and [H, S, A, S], and as many of one as of the other"
        )
    if pays.shape[1] not in (1, stages):
        raise InputError(f"rewards have {pays.shape[1]} steps, but stages is {stages}; give one, or as many as stages")
    require_count("first", first, 0, most=pays.shape[2] - 1)
    if drift is None:
        drift = Same() if len(pays) == 1 else Walk(max(1, (episodes - 1) // (len(pays) - 1)))
    return TabularMDP(
        name=name,
        family=Given(pays, moves, first),
        stages=stages,
        episodes=episodes,
        drift=as_mdp_drift(drift),
        law=law,
    )


def _stacked(what: str, arrays: Any, least: int) -> Tensor:
    """One or several arrays with their MDP and their step in front."""
    several = arrays if isinstance(arrays, Sequence) and np.ndim(arrays[0]) >= least else [arrays]
    try:
        tensors = [torch.as_tensor(np.asarray(array, dtype=np.float64)) for array in several]
        whole = torch.stack([tensor.unsqueeze(0) if tensor.ndim == least else tensor for tensor in tensors])
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{what} are no arrays of numbers of one shape ({error}); see help(df.mdp)") from None
    if whole.ndim != least + 2:
        raise InputError(f"{what} have {tensors[0].ndim} dimensions; give {least}, or {least + 1} where steps differ")
    return whole
