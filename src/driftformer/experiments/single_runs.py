"""Single runs to look at: which of MASTER's instances acts, and how a policy's choices follow a drifting world."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from driftformer.agents.incontext import InContext
from driftformer.agents.registry import make_agent
from driftformer.environments.presets import High, Preset, build
from driftformer.pretraining.imitation import policy_distribution
from driftformer.randomness import Randomness
from driftformer.simulation.rollout import rollout
from driftformer.storage.files import read_json, write_json
from driftformer.threads import one_thread


@dataclass(frozen=True)
class Story:
    """One agent on the first problem of a world."""

    name: str
    title: str
    kind: Literal["master", "policy"]
    preset: Preset
    agent: str


STORIES = (
    Story("master", "MASTER+LinUCB with the paper's constants", "master", High(b=0.018), "master-linucb"),
    Story(
        "master-eager",
        "MASTER+LinUCB whose tests fire at a hundredth of the paper's threshold",
        "master",
        High(b=0.018),
        "master@base=linucb,test_scale=0.01",
    ),
    Story("policy-high", "policy:high, trained at four other frequencies", "policy", High(b=0.018), "policy:high"),
    Story("policy-drift", "policy:drift, trained on many kinds of change", "policy", High(b=0.018), "policy:drift"),
    Story("policy-cosine", "policy:cosine, trained on a range of them", "policy", High(b=0.018), "policy:cosine"),
)


def tell(story: Story, path: Path, seed: int) -> None:
    """Play it and keep what is to be shown."""
    agent = make_agent(story.agent)
    key = {"agent": story.agent, "seed": seed, "weights": agent.weights if isinstance(agent, InContext) else None}
    if path.exists() and _is_of(path, key):
        return
    shown = _policy(story, agent, seed) if isinstance(agent, InContext) else _master(story, seed)
    write_json(path, {**key, "title": story.title, "kind": story.kind, **shown})


def _is_of(path: Path, key: dict[str, Any]) -> bool:
    found = read_json(path)
    return all(found.get(name) == value for name, value in key.items())


def _master(story: Story, seed: int) -> dict[str, Any]:
    seen = rollout(build(story.preset), story.agent, seed=seed, trajectories=True).trajectories
    assert seen is not None
    arrays = {name: value[0].numpy() for name, value in seen.tensors().items()}
    restarts = np.flatnonzero(arrays["failed_test"]) + 1
    return {
        "active_order": arrays["active_order"].tolist(),
        "restarts": restarts.tolist(),
        "regret": _rounded(np.cumsum(arrays["suboptimality"])),
    }


def _policy(story: Story, agent: InContext, seed: int) -> dict[str, Any]:
    """The probabilities that it gave all arms in each round of its own run, beside their true mean rewards."""
    environment = build(story.preset)
    with one_thread():
        seen = rollout(environment, agent, seed=seed, trajectories=True).trajectories
        assert seen is not None
        problems = unroll(environment, Randomness(seed, (0,))).rows(slice(0, 1))
        played = Trajectories(seen.arms[:1].long(), seen.rewards[:1])
        chances = policy_distribution(agent.model(torch.device("cpu")), problems, played).exp()
    order = problems.means[0, 0].argsort(descending=True)  # the best arm of the first round first
    return {
        "means": [_rounded(row) for row in problems.means[0][:, order].T.numpy()],
        "chances": [_rounded(row) for row in chances[0][:, order].T.numpy()],
        "arms": order.argsort()[played.arms[0]].tolist(),
        "regret": _rounded(np.cumsum(seen.suboptimality[0].numpy())),
    }


def _rounded(values: Any) -> list[float]:
    """Four digits are enough to draw."""
    return [float(f"{float(value):.4g}") for value in values]
