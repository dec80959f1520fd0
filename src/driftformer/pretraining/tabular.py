"""Play MDPs with a policy of the form `tabular`, and keep what it knew in every step."""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.models.ledger import Read, empty, learn, read, unit
from driftformer.models.tabular import TabularPolicy
from driftformer.pretraining.query import Watched
from driftformer.problem import traits_of
from driftformer.simulation.tape import Problems, Unfolding
from driftformer.simulation.trajectories import Trajectories, played


class TabularPlayer:
    """Plays batches of problems with a policy's latest weights, step after step."""

    def __init__(self, policy: TabularPolicy) -> None:
        self.policy = policy

    def play(self, problems: Problems, gumbel: Tensor) -> Trajectories:
        """Actions and rewards of all steps; the action is the argmax of logits + `gumbel` `[B, T, A]`."""
        return self.watch(problems, gumbel).trajectories

    @torch.no_grad()
    def watch(self, problems: Problems, gumbel: Tensor, stray: Tensor | None = None) -> Watched:
        """The same, with what was known; `stray` `[T, B, D]` is added to what it dares."""
        assert isinstance(problems, Unfolding), "where one comes depends on what is played"
        traits, course = traits_of(problems.environment), problems.begin()
        steps = traits.stages if traits.stages_differ else 1
        ledger = empty(len(gumbel), traits.states, problems.environment.arms, traits.stages, steps, course.values)
        arms, rewards, known, units = [], [], list[Read](), []
        for t in range(problems.environment.horizon):
            observation, stage = course.observation, t % traits.stages
            state = observation.state
            assert state is not None, "an MDP has states"
            known.append(read(ledger, state, stage))
            units.append(unit(ledger, stage))
            verdict = self.policy(known[-1], None, 0.0 if stray is None else stray[t])
            arm = observation.best(verdict.logits + gumbel[:, t])
            reward = course.pay(arm)
            learn(ledger, state, stage, arm, reward)
            arms.append(arm)
            rewards.append(reward)
        kept = Read(*(torch.stack(steps) for steps in zip(*known, strict=True)))
        trajectories = played(course.laid(), torch.stack(arms, dim=1), torch.stack(rewards, dim=1))
        return Watched(trajectories, kept, torch.stack(units))
