"""Gradient steps. On one GPU they are captured as CUDA graphs and replayed: launching their kernels one by one from
Python would take longer than the kernels do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn

from driftformer.errors import brought_by

with brought_by("train"):
    from accelerate import Accelerator

Result = TypeVar("Result")

Loss = Callable[..., tuple[Tensor, Tensor]]
"""From the model and inputs to what is descended on and what is reported."""

_WARM = 3
"""Plain steps of one kind before they are captured: they compile, and set up libraries."""


class Stepper:
    """Takes gradients, then descends along them."""

    def __init__(
        self, accelerator: Accelerator, model: nn.Module, optimizer: torch.optim.Optimizer, captures: bool = True
    ) -> None:
        self._accelerator, self._model, self._optimizer = accelerator, model, optimizer
        self._captures = captures and accelerator.device.type == "cuda" and accelerator.num_processes == 1
        self._pieces: dict[object, _Piece] = {}
        self._finish: dict[float, _Finish] = {}
        self._trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if self._captures:
            for parameter in self._trained:
                parameter.grad = torch.zeros_like(parameter)
            for group in optimizer.param_groups:
                group["lr"] = torch.tensor(0.0, device=accelerator.device)

    def accumulate(self, loss: Loss, inputs: tuple[Tensor, ...]) -> Tensor:
        """Add the gradient of loss(model, *inputs); what the loss reports, a tensor on the device."""
        if not self._captures:
            return self._plain(loss, inputs)
        key = (loss, tuple(tuple(value.shape) for value in inputs))
        piece = self._pieces.setdefault(key, _Piece())
        if piece.uses < _WARM:
            piece.uses += 1
            return _aside(lambda: self._plain(loss, inputs))
        if piece.graph is None:
            piece.inputs = tuple(value.clone() for value in inputs)
            piece.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(piece.graph):
                piece.reported = self._plain(loss, piece.inputs)
        for mine, given in zip(piece.inputs, inputs, strict=True):
            mine.copy_(given)
        piece.graph.replay()
        return piece.reported.clone()

    def descend(self, rate: float, clip: float) -> None:
        """One step of the optimizer along the accumulated gradient, shortened to `clip`."""
        if not self._captures:
            for group in self._optimizer.param_groups:
                group["lr"] = rate
            self._plain_descent(clip)
            return
        for group in self._optimizer.param_groups:
            group["lr"].fill_(rate)
        finish = self._finish.setdefault(clip, _Finish())
        if finish.uses < _WARM:
            finish.uses += 1
            _aside(lambda: self._plain_descent(clip))
            return
        if finish.graph is None:
            finish.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(finish.graph):
                self._plain_descent(clip)
        finish.graph.replay()

    def _plain(self, loss: Loss, inputs: tuple[Tensor, ...]) -> Tensor:
        value, reported = loss(self._model, *inputs)
        self._accelerator.backward(value)
        return reported.detach()

    def _plain_descent(self, clip: float) -> None:
        nn.utils.clip_grad_norm_(self._trained, clip)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=not self._captures)


class _Piece:
    def __init__(self) -> None:
        self.uses = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.inputs: tuple[Tensor, ...] = ()
        self.reported = torch.empty(0)


class _Finish:
    def __init__(self) -> None:
        self.uses = 0
        self.graph: torch.cuda.CUDAGraph | None = None


def _aside(work: Callable[[], Result]) -> Result:
    """Work on another stream than the default one, as a capture will."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        result = work()
    torch.cuda.current_stream().wait_stream(stream)
    return result
