"""Single runs to look at: MASTER's instances, how a policy's choices follow a drifting world, ways through MDPs.

Shown is the run with the median regret among the first 64 problems of the evaluation with the same seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from driftformer.agents.incontext import InContext
from driftformer.agents.registry import make_agent
from driftformer.environments.mdp_presets import Lock
from driftformer.environments.presets import High, Preset
from driftformer.experiments.mdps import MDP_LOCK
from driftformer.problem import Observation
from driftformer.randomness import Randomness, one_thread
from driftformer.simulation.follow import follow
from driftformer.simulation.rollout import Live, rollout
from driftformer.simulation.tape import lay_out
from driftformer.simulation.trajectories import Laid, Trajectories, played
from driftformer.storage.files import read_json, write_json


@dataclass(frozen=True)
class SingleRun:
    """One agent on one problem of a world."""

    name: str
    title: str
    agent: str
    preset: Preset
    experiment: str = ""
    """Shown where this experiment was run; empty: always."""


_EAGER = "MASTER+LinUCB whose tests fire at a hundredth of the paper's threshold"
SINGLE_RUNS = tuple(
    SingleRun(name, title, agent, High(b=0.018))
    for name, title, agent in (
        ("policy-cosine", "policy:cosine, trained on a range of frequencies", "policy:cosine"),
        ("policy-drift", "policy:drift, the generalist", "policy:drift"),
        ("policy-high", "policy:high, trained at four other frequencies", "policy:high"),
        ("master", "MASTER+LinUCB with the paper's constants", "master-linucb"),
        ("master-eager", _EAGER, "master@base=linucb,test_scale=0.01"),
    )
) + tuple(
    SingleRun(f"{agent.split(':')[-1]}-lock", f"{agent} in the combination lock", agent, Lock(), MDP_LOCK.name)
    for agent in ("policy:mdp", "restart-q-ucb")
)


def play(run: SingleRun, path: Path, seed: int) -> None:
    """Play 64 problems and store what is to be shown of the median one, unless it is there already."""
    agent = make_agent(run.agent)
    key = {"agent": run.agent, "seed": seed, "weights": agent.weights if isinstance(agent, InContext) else None}
    if path.exists() and key.items() <= read_json(path).items():
        return
    environment = run.preset.build()
    seen = rollout(environment, agent, seed=seed, trajectories=True)
    assert seen.trajectories is not None
    finals = seen.regrets[0].regret  # [64]
    place = int(np.argsort(finals, kind="stable")[(len(finals) - 1) // 2])  # of the two in the middle, the lower one
    arrays = {name: value[place].numpy() for name, value in seen.trajectories.tensors().items()}
    shown = {
        "problem": place + 1,
        "regret": _rounded(np.cumsum(arrays["suboptimality"], dtype=np.float64)),
        "regret_final": float(finals[place]),
        "regret_median": float(np.median(finals)),
        "regret_mean": float(finals.mean()),
        "runs": len(finals),
        "best_arm_share": float((arrays["suboptimality"] <= 0).mean()),
    }
    if run.experiment:
        shown |= {"kind": "mdp"} | _show_mdp(environment, seen.trajectories, place, seed)
    elif isinstance(agent, InContext):
        shown |= {"kind": "policy"} | _show_policy(run, agent, arrays, place, seed)
    else:
        restarts = (np.flatnonzero(arrays["failed_test"]) + 1).tolist()
        shown |= {"kind": "master", "active_order": arrays["active_order"].tolist(), "restarts": restarts}
    write_json(path, {**key, "title": run.title, **shown})


def _show_policy(run: SingleRun, agent: InContext, arrays: dict[str, Any], place: int, seed: int) -> dict[str, Any]:
    """The probabilities of all arms in each round of the policy's own run, beside their true mean rewards."""
    with one_thread():
        tape = lay_out(run.preset.build(), Randomness(seed))
        features, values = tape.features[place : place + 1], tape.values[place : place + 1]
        observations = tuple(Observation(action_set) for action_set in features.unbind(1))
        history = played(
            Laid(features, values, None, observations, tape.truths),
            torch.from_numpy(arrays["arms"]).long().unsqueeze(0),
            torch.from_numpy(arrays["rewards"]).unsqueeze(0),
        )
        rounds = follow(agent, history, Randomness(seed, size=1).stream("shown"))
        chances = torch.stack([info.values.exp() for _, info in rounds], dim=1)
    order = values[0, 0].argsort(descending=True)  # the best arm of the first round first
    return {
        "means": [_rounded(row) for row in values[0][:, order].T.numpy()],
        "chances": [_rounded(row) for row in chances[0][:, order].T.numpy()],
        "arms": order.argsort()[history.arms[0]].tolist(),
    }


_PARTS = 200
"""Into how many parts the episodes of a run are put together."""
_PATH = 12
"""Episodes before and after the first change whose states are shown."""


def _show_mdp(environment: Any, played: Trajectories, place: int, seed: int) -> dict[str, Any]:
    """What episodes earned beside the optimum, when the MDP changed, and the states around its first change."""
    with one_thread():
        live, stages = Live(environment, Randomness(seed)), environment.traits.stages
        states, best, changes = [], [], []
        for t, arm in enumerate(played.arms.long().unbind(1)):
            state = live.observation.state
            assert state is not None, "an MDP has states"
            states.append(int(state[place]))
            if t % stages == 0:
                best.append(float(live.values[place].max()))
                changed = live.truth().changed
                changes += [t // stages + 1] if changed is not None and bool(changed[place]) else []
            live.pay(arm)
    earned = played.rewards[place].double().view(-1, stages).sum(dim=1).numpy()  # [M]
    parts = np.array_split(np.arange(len(earned)), min(_PARTS, len(earned)))
    middle = changes[0] if changes else _PATH + 1
    first, last = max(middle - _PATH, 1), min(middle + _PATH, len(earned))  # episodes, from 1
    return {
        "episodes": [float(part.mean() + 1) for part in parts],
        "earned": _rounded([earned[part].mean() for part in parts]),
        "optimum": _rounded([np.array(best)[part].mean() for part in parts]),
        "changes": changes if environment.traits.abrupt else [],
        "path": {"first": first, "stages": stages, "states": states[(first - 1) * stages : last * stages]},
    }


def _rounded(values: Any) -> list[float]:
    """Four digits are enough to draw."""
    return [float(f"{float(value):.4g}") for value in values]
