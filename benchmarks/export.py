"""An exported policy in onnxruntime beside torch: how far their probabilities are apart, and what a round costs.

    python -m benchmarks.export [--policy drift] [--rounds 1000]

Two replies to the same history, round by round, in a world that turns over halfway: that of the graph, and that of
torch, in double precision and as `online()` computes. Milliseconds are medians of CPU time, with one thread each.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch

from driftformer.agents.base import ProblemShape
from driftformer.agents.incontext import load_policy
from driftformer.models.export import export_policy
from driftformer.problem import Observation
from driftformer.randomness import Randomness

DIM = 16


class Graph:
    """One problem, played by an exported policy of the query form."""

    def __init__(self, policy: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            export_policy(policy, Path(folder) / "policy.onnx", DIM)
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            self._session = onnxruntime.InferenceSession(Path(folder) / "policy.onnx", options)
        self._state = np.zeros((1, self._session.get_inputs()[3].shape[1]))
        self.news: dict[str, Any] = {"played": np.zeros((1, DIM)), "reward": np.full(1, np.nan)}

    def probabilities(self, features: Any) -> Any:
        given = {"features": features[np.newaxis], "state": self._state, **self.news}
        (likely,), self._state = self._session.run(None, given)
        return likely


def compare(policy: str, rounds: int) -> dict[torch.dtype, np.ndarray[Any, Any]]:
    """The largest difference of each round, for both precisions of torch; arms are drawn by the graph."""
    agent, graph, rng, found = load_policy(policy), Graph(policy), np.random.default_rng(0), {}
    kinds = (torch.float64, torch.float32)
    states = {kind: agent.init(ProblemShape(1, rounds, 12, DIM, torch.device("cpu"), kind)) for kind in kinds}
    weights = rng.normal(size=DIM)
    found = {kind: np.zeros(rounds) for kind in kinds}
    for t in range(rounds):
        features = rng.uniform(-1, 1, (rng.integers(1, 13), DIM)).astype(np.float32).astype(np.float64)
        likely = graph.probabilities(features)
        arm = int(rng.choice(len(likely), p=likely))
        weights = -weights if t == rounds // 2 else weights
        reward = float(np.float32(features[arm] @ weights + 0.5 * rng.normal()))
        graph.news = {"played": features[arm, np.newaxis], "reward": np.array([reward])}
        for kind in kinds:
            seen = Observation(torch.from_numpy(features).to(kind).unsqueeze(0))
            with torch.inference_mode():
                _, info = agent.act(states[kind], seen, Randomness(0, size=1, dtype=kind).stream("agent"))
                found[kind][t] = np.abs(agent.probabilities(seen, info)[0].numpy() - likely).max()
                paid = torch.tensor([reward], dtype=kind)
                states[kind] = agent.update(states[kind], seen, torch.tensor([arm]), paid, info)
    return found


def latency(policy: str, rounds: int) -> tuple[float, float]:
    """Milliseconds a round: of the graph, and of `online()`."""
    graph, service, rng = Graph(policy), load_policy(policy).online(), np.random.default_rng(0)
    spent = np.zeros((rounds, 2))
    for t in range(rounds):
        features, reward = rng.uniform(-1, 1, (10, DIM)), float(rng.normal())
        began = time.process_time()
        likely = graph.probabilities(features)
        spent[t, 0] = time.process_time() - began
        graph.news = {"played": features[likely.argmax(), np.newaxis], "reward": np.array([reward])}
        began = time.process_time()
        service.act(features)
        service.update(reward)
        spent[t, 1] = time.process_time() - began
    of_graph, of_service = 1000 * np.median(spent[20:], axis=0)
    return float(of_graph), float(of_service)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", default="drift", help="of the query form")
    parser.add_argument("--rounds", type=int, default=1000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for kind, apart in compare(options.policy, options.rounds).items():
        beyond = f"{(apart > 1e-5).sum()} of {len(apart):,} rounds beyond 1e-5"
        print(f"probabilities, onnxruntime against torch in {kind}: at most {apart.max():.1e} apart, {beyond}")
    graph, service = latency(options.policy, options.rounds)
    print(f"CPU time of a round with 10 arms and {DIM} features: onnxruntime {graph:.2f} ms, online() {service:.2f} ms")


if __name__ == "__main__":
    main()
