"""Agents for MDPs written plainly from their papers: one problem, dictionaries and loops."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Step:
    stage: int
    state: int
    arm: int
    reward: float
    following: int  # the next state, -1 after the last stage


@dataclass(frozen=True)
class Sizes:
    stages: int
    states: int
    arms: int
    episodes: int


class Plain(Protocol):
    def values(self, stage: int, state: int) -> list[float]:
        """What it compares."""
        ...

    def learn(self, step: Step) -> None: ...


class PlainUCBVI:
    """UCB-VI on the last `window` episodes, with everything counted anew before each episode."""

    def __init__(self, sizes: Sizes, bonus: str, scale: float, differ: bool, window: int = 10**9) -> None:
        self.sizes, self.bonus, self.scale, self.differ, self.window = sizes, bonus, scale, differ, window
        self.episodes: list[list[Step]] = [[]]
        self.q = {key: float(sizes.stages - key[0]) for key in self._keys()}

    def _keys(self) -> list[tuple[int, int, int]]:
        sizes = self.sizes
        return [(h, s, a) for h in range(sizes.stages) for s in range(sizes.states) for a in range(sizes.arms)]

    def values(self, stage: int, state: int) -> list[float]:
        return [self.q[stage, state, arm] for arm in range(self.sizes.arms)]

    def learn(self, step: Step) -> None:
        self.episodes[-1].append(step)
        if step.following < 0:
            self._plan()
            self.episodes.append([])

    def _plan(self) -> None:
        steps = [step for episode in self.episodes[-self.window :] for step in episode]
        stages = self.sizes.stages
        value = [0.0] * self.sizes.states
        for h in range(stages - 1, -1, -1):
            before = value
            for s in range(self.sizes.states):
                for a in range(self.sizes.arms):
                    here = [x for x in steps if (x.state, x.arm) == (s, a) and (not self.differ or x.stage == h)]
                    moved = [x for x in here if x.following >= 0]
                    counted = here if h == stages - 1 else moved
                    if not counted:
                        self.q[h, s, a] = stages - h
                        continue
                    n = len(counted)
                    reward = sum(x.reward for x in here) / len(here)
                    next_values = [before[x.following] for x in moved] if h < stages - 1 else [0.0]
                    mean = sum(next_values) / len(next_values)
                    variance = sum((v - mean) ** 2 for v in next_values) / len(next_values) + reward * (1 - reward)
                    if self.bonus == "hoeffding":
                        b = self.scale * (stages - h) / math.sqrt(n)
                    else:
                        b = self.scale * (math.sqrt(variance / n) + (stages - h) / n)
                    self.q[h, s, a] = min(stages - h, reward + mean + b)
            value = [max(self.values(h, s)) for s in range(self.sizes.states)]


class PlainQUCB:
    """Algorithm 1 of Jin et al. (2018)."""

    def __init__(self, sizes: Sizes, scale: float) -> None:
        self.sizes, self.scale = sizes, scale
        self.n: dict[tuple[int, int, int], int] = defaultdict(int)
        self.q: dict[tuple[int, int, int], float] = {}

    def values(self, stage: int, state: int) -> list[float]:
        return [self.q.get((stage, state, arm), self.sizes.stages - stage) for arm in range(self.sizes.arms)]

    def value(self, stage: int, state: int) -> float:
        return min(self.sizes.stages - stage, max(self.values(stage, state)))

    def learn(self, step: Step) -> None:
        length, key = self.sizes.stages, (step.stage, step.state, step.arm)
        self.n[key] += 1
        t = self.n[key]
        rate, bonus = (length + 1) / (length + t), self.scale * math.sqrt(length**3 / t)
        following = self.value(step.stage + 1, step.following) if step.following >= 0 else 0.0
        old = self.values(step.stage, step.state)[step.arm]
        self.q[key] = (1 - rate) * old + rate * (step.reward + following + bonus)


class PlainQLearning:
    """Q-learning with a constant rate, from zero."""

    def __init__(self, sizes: Sizes, rate: float) -> None:
        self.sizes, self.rate = sizes, rate
        self.q: dict[tuple[int, int, int], float] = defaultdict(float)

    def values(self, stage: int, state: int) -> list[float]:
        return [self.q[stage, state, arm] for arm in range(self.sizes.arms)]

    def learn(self, step: Step) -> None:
        key = (step.stage, step.state, step.arm)
        following = max(self.values(step.stage + 1, step.following)) if step.following >= 0 else 0.0
        self.q[key] += self.rate * (step.reward + following - self.q[key])


class PlainRestartQUCB:
    """Algorithm 1 of Mao et al. (2021) with the Hoeffding bonus and no b_Δ, in epochs of so many episodes."""

    def __init__(self, sizes: Sizes, epoch: int, scale: float) -> None:
        self.sizes, self.epoch, self.scale = sizes, epoch, scale
        self.ends, end, length = set(), 0, sizes.stages
        while end <= sizes.episodes * sizes.stages:
            end += length
            self.ends.add(end)
            length += length // sizes.stages
        self.played = 0
        self._restart()

    def _restart(self) -> None:
        sizes = self.sizes
        self.q = {
            (h, s, a): float(sizes.stages - h)
            for h in range(sizes.stages)
            for s in range(sizes.states)
            for a in range(sizes.arms)
        }
        self.n: dict[tuple[int, int, int], int] = defaultdict(int)  # N_h(s, a)
        self.recent: dict[tuple[int, int, int], list[float]] = defaultdict(list)  # r + V of this round of updates

    def values(self, stage: int, state: int) -> list[float]:
        return [self.q[stage, state, arm] for arm in range(self.sizes.arms)]

    def learn(self, step: Step) -> None:
        key = (step.stage, step.state, step.arm)
        following = max(self.values(step.stage + 1, step.following)) if step.following >= 0 else 0.0
        self.n[key] += 1
        self.recent[key].append(step.reward + following)
        if self.n[key] in self.ends:
            found = self.recent.pop(key)
            bonus = self.scale * math.sqrt(self.sizes.stages**2 / len(found))
            self.q[key] = min(self.q[key], sum(found) / len(found) + bonus)
        if step.following < 0:
            self.played += 1
            if self.played % self.epoch == 0:
                self._restart()


class PlainDoubleRestart:
    """Double-Restart Q-UCB: EXP3.P chooses the number of epochs of each phase, from Unif[0, 1) numbers."""

    def __init__(self, sizes: Sizes, phase: int, scale: float, uniforms: list[float]) -> None:
        self.sizes, self.phase, self.scale, self.uniforms = sizes, phase, scale, uniforms
        last = max(math.ceil(math.log(phase)), 1)
        self.epochs = [math.floor(phase ** (j / last) + 1e-9) for j in range(last + 1)]
        n, k = math.ceil(sizes.episodes / phase), last + 1
        self.beta = math.sqrt(math.log(k) / (n * k))
        self.eta = 0.95 * math.sqrt(math.log(k) / (n * k))
        self.gamma = min(1.05 * math.sqrt(k * math.log(k) / n), 1.0)
        self.gains, self.played = [0.0] * k, 0
        self._begin()

    def likely(self) -> list[float]:
        weights = [math.exp(self.eta * gain) for gain in self.gains]
        return [(1 - self.gamma) * weight / sum(weights) + self.gamma / len(weights) for weight in weights]

    def _begin(self) -> None:
        u, likely = self.uniforms[self.played], self.likely()
        self.chosen = next((j for j in range(len(likely)) if u < sum(likely[: j + 1])), len(likely) - 1)
        self.earned = 0.0
        self.agent = PlainRestartQUCB(self.sizes, math.ceil(self.phase / self.epochs[self.chosen]), self.scale)

    def values(self, stage: int, state: int) -> list[float]:
        return self.agent.values(stage, state)

    def learn(self, step: Step) -> None:
        self.agent.learn(step)
        self.earned += step.reward
        if step.following >= 0:
            return
        self.played += 1
        if self.played % self.phase == 0 and self.played < self.sizes.episodes:
            share = self.earned / (self.phase * self.sizes.stages)
            likely = self.likely()
            for j in range(len(likely)):
                self.gains[j] += (share * (j == self.chosen) + self.beta) / likely[j]
            self._begin()
