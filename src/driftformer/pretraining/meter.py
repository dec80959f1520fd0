"""How fast a training goes: tokens and floating-point operations per second."""

from __future__ import annotations

from driftformer.models.configuration import PolicyConfig


def training_flops_per_token(config: PolicyConfig, tokens: int) -> float:
    """Operations of the model for one token of a trajectory, forward and backward, recomputation not counted.

    Six for each weight of the blocks, and twelve for each pair of a token with one that it sees, of which causality
    leaves half. Embeddings and heads, a few percent, are left out.
    """
    weights = 12 * config.layers * config.width**2
    pairs = config.layers * config.width * tokens / 2
    return 6 * weights + 12 * pairs


class Meter:
    """Counts what was done since it was last read."""

    def __init__(self) -> None:
        self._tokens, self._flops, self._seconds = 0, 0.0, 0.0

    def add(self, tokens: int, flops: float, seconds: float) -> None:
        self._tokens += tokens
        self._flops += flops
        self._seconds += seconds

    def read(self) -> tuple[float, float]:
        """Tokens per second and TFLOP/s, and begin anew."""
        seconds = max(self._seconds, 1e-9)
        speed = self._tokens / seconds, self._flops / seconds / 1e12
        self._tokens, self._flops, self._seconds = 0, 0.0, 0.0
        return speed
