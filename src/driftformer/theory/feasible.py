"""How large the one network over LinUCB is, told without building it: all steps of its recurrence are alike."""

from __future__ import annotations

from dataclasses import dataclass, replace

from driftformer.theory.linucb import PIECES, SoftLinUCB
from driftformer.theory.network import Layer, Shape, shape
from driftformer.theory.noncontinuous import NonContinuous
from driftformer.theory.regression import Seat, steps_for


@dataclass(frozen=True)
class FewSteps(SoftLinUCB):
    """The base network with so many steps, whatever its error is."""

    steps: int = 1

    def network(self, seat: Seat, error: float) -> list[Layer]:
        return self.layers(seat, self.steps, PIECES)


@dataclass(frozen=True)
class Whole:
    """What a network takes."""

    shape: Shape
    weights: int  # those that several layers share count once

    def __str__(self) -> str:
        return f"{self.shape}, {self.weights / 1e6:.0f} million weights ({8 * self.weights / 1e9:.2g} GB)"


def measured(network: NonContinuous) -> Whole:
    """Of a network that can be built."""
    weights = {one.data_ptr(): one.numel() for one in network.transformer.parameters()}
    return Whole(shape(network.layers), sum(weights.values()))


def foretold(rounds: int, d: int, arms: int) -> Whole:
    """Of the one network over LinUCB: with one step, and for every further step what the second one adds."""
    networks = (NonContinuous(FewSteps(d=d, arms=arms, steps=steps), rounds) for steps in (1, 2))
    first, second = map(measured, networks)  # one at a time in memory
    plain = NonContinuous(SoftLinUCB(d=d, arms=arms), rounds)
    more = steps_for(plain.error, plain.base.ridge, d, plain.memory.sizes.tokens) - 1
    grown = replace(first.shape, layers=first.shape.layers + more)
    return Whole(grown, first.weights + more * (second.weights - first.weights))
