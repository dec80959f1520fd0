"""When labels change their meaning, and what they then mean, for worlds that are made of tables.

Each change is a random cycle through all classes, so every class becomes another one. A hand-over of width W that
begins in round τ plays the new labels in round t with probability (t − τ + 1) / (W + 1), the old ones otherwise; W = 0
is a change at once.
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.environments.drift import change_times
from driftformer.errors import InputError, require_count
from driftformer.randomness import Randomness, Stream


def check_changes(changes: int, times: tuple[int, ...], width: int, horizon: int) -> tuple[int, ...]:
    """The rounds of changes in order; refuses more changes than there is room for."""
    require_count("width", width, 0)
    require_count("changes", changes, 0)
    if changes > (room := max(0, horizon - 1 - width)):
        end = f" and end within {horizon}" if width else ""
        raise InputError(f"changes is {changes}; at most {room} can begin after round 1{end}")
    return tuple(sorted(change_times(times, horizon)))


def draw_times(rng: Stream, like: Tensor, changes: int, times: tuple[int, ...], width: int, horizon: int) -> Tensor:
    """Rounds in which new labels begin, in ascending order, `[B, J]`: `changes` random ones, or `times`."""
    if changes:
        return draw_orders(rng, horizon - 1 - width)[:, :changes].sort(dim=1).values + 2
    return torch.tensor(times, dtype=torch.long, device=like.device).expand(len(like), -1)


def draw_labels(rng: Stream, like: Tensor, classes: int, changes: int) -> Tensor:
    """What each class stands for before and after each change, `[B, J + 1, classes]`."""
    labels = [torch.arange(classes, device=like.device).expand(len(like), -1)]
    for _ in range(changes):
        cycle = draw_orders(rng, classes)  # [B, A]: the arm at each place takes the class of the next one's
        taken = labels[-1].gather(1, cycle.roll(-1, dims=1))
        labels.append(torch.empty_like(taken).scatter_(1, cycle, taken))
    return torch.stack(labels, dim=1)


def epoch_of(t: int, times: Tensor, width: int, randomness: Randomness) -> Tensor:
    """Which of the labels are in use in round t, `[B]`."""
    # One chance for all changes of a problem, so that later labels never come before earlier ones.
    chance = randomness.stream("drift").uniform().unsqueeze(1) if width else 0.0
    return ((t + 1 - times) / (width + 1) > chance).sum(dim=1)


def draw_orders(rng: Stream, size: int) -> Tensor:
    """A random order of 0..size-1 for each problem, `[B, size]`."""
    draws = [rng.uniform(min(size, 1024)) for _ in range(0, size, 1024)]  # in parts: a GPU draws some of them ahead
    return torch.cat(draws, dim=1)[:, :size].argsort(dim=1, stable=True)
