"""Agents along a log: which choices they would have made, and what those are worth.

An agent goes through a log twice. *Beside it* it learns from every round, whatever it would have chosen: its
probabilities π_t, which depend on earlier rounds alone, are weighed against the propensities. *In replay*, where arms
were drawn uniformly, it learns only from rounds in which its own choice was the logged one, as it would in service.
docs/logs.md says what each means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from driftformer.agents.base import Agent, Privileged, ProblemShape
from driftformer.agents.linucb import Ridge, absorb, identity, predict, vector
from driftformer.agents.registry import check_agent, label, make_agent
from driftformer.agents.rows import put_rows, take_rows
from driftformer.agents.services.propensity import Coins, counted, stated
from driftformer.errors import InputError, require_count
from driftformer.evaluation.progress import Progress
from driftformer.logs.estimators import NOT_UNIFORM, Estimate, estimates, mean_of
from driftformer.logs.read import Log, Round, read_log
from driftformer.logs.result import Replay
from driftformer.problem import why_not
from driftformer.randomness import one_thread

Array = NDArray[Any]

AGENTS = ("random", "linucb", "discounted-linucb")
"""Those that are asked about if none are named: the floor, and two that play every log."""
DRAWS = 100
"""Draws whose shares stand for probabilities that an agent cannot state. Estimates stay unbiased with any number."""
_SAY_EVERY = 256


def replay(
    log: Any,
    agents: Sequence[str | Agent] = AGENTS,
    *,
    uniform: bool = False,
    scale: bool = False,
    seed: int = 0,
    progress: bool | None = None,
) -> Replay:
    """What agents would have earned in the rounds of a log, each by four estimates.

    `log` is a .parquet or .csv file, a pyarrow table, a data frame or a mapping of columns, as docs/logs.md describes.
    With `uniform`, it needs no propensities: all arms on offer were equally likely. With `scale`, features and contexts
    may be raw columns in any units, with missing values.

    >>> rng = np.random.default_rng(0)
    >>> arms = rng.integers(0, 2, 500)  # a log of two arms, drawn evenly; the second one pays more
    >>> log = {"round": np.arange(500), "arm": arms, "reward": rng.normal(arms, 1.0)}
    >>> found = df.replay(log, ["ucb"], uniform=True, progress=False)
    >>> [round(float(one.value), 2) for one in (found.itself, found.agents["ucb"]["ips"])]
    [0.51, 0.95]
    """
    require_count("seed", seed, 0, 2**63)
    chosen = _agents(agents)
    read = read_log(log, uniform=uniform, scale=scale)
    for name, agent in chosen.items():
        if reason := why_not(agent, read.traits):
            raise InputError(f"agent '{name}' cannot play log {read.label}: {reason}; choose another")
    work = len(read) * (1 + (2 if read.uniform else 1) * len(chosen))  # the model, then each agent once or twice
    with one_thread(), Progress(work, f"replaying {read.label}", progress) as bar:
        steps = partial(_counted_out, say=bar.advance)
        model = np.concatenate([each.numpy() for each in steps(expectations(read.shape, read.rounds()))])  # [T, A]
        found = {name: _estimates(agent, read, model, seed, steps) for name, agent in chosen.items()}
    if any(of["replay"].refused == NOT_UNIFORM for of in found.values()):  # of one agent, so of the log
        for of in found.values():
            of["replay"] = Estimate(None, None, of["replay"].samples, NOT_UNIFORM)
    return Replay(
        label=read.label,
        rounds=len(read),
        arms=read.arms,
        known_by=read.known_by,
        ignored=read.ignored,
        uniform=read.uniform,
        itself=mean_of(read.reward, len(read)),
        agents=found,
    )


def _agents(agents: Sequence[str | Agent]) -> dict[str, Agent]:
    """Agents by name, or an error in words."""
    if isinstance(agents, str) or not agents:
        raise InputError(f"agents is {agents!r:.60}; give a list of at least one")
    chosen: dict[str, Agent] = {}
    for asked in agents:
        agent = make_agent(asked) if isinstance(asked, str) else check_agent(asked)
        if isinstance(agent, Privileged):
            raise InputError(f"agent '{label(agent)}' must be told the truth, which no log has; choose another")
        if label(agent) in chosen:
            raise InputError(f"agent '{label(agent)}' is named twice; name it once")
        chosen[label(agent)] = agent
    return chosen


def _estimates(
    agent: Agent, log: Log, model: Array, seed: int, steps: Callable[[Iterable[Tensor]], Iterator[Tensor]]
) -> dict[str, Estimate]:
    """The four estimates of an agent."""
    weight, expected = np.empty(len(log)), np.empty(len(log))
    for t, shares in enumerate(steps(beside(agent, log.shape, log.rounds(), seed))):
        own = shares[0].numpy().astype(np.float64)  # [A]
        if not np.isfinite(own).all():
            raise InputError(f"agent '{label(agent)}' lost its numbers in row {t + 1}; give scale, or smaller features")
        weight[t] = own[log.arm[t]] / log.propensity[t]
        expected[t] = own @ model[t]
    matched: Array | str = f"arms were not drawn uniformly ({log.not_uniform})"
    if log.uniform:
        matched = np.array([bool(each) for each in steps(in_replay(agent, log.shape, log.rounds(), seed))])
    played = model[np.arange(len(log)), log.arm]
    return estimates(log.reward, weight, played, expected, matched)


def beside(agent: Agent, shape: ProblemShape, rounds: Iterable[Round], seed: int) -> Iterator[Tensor]:
    """The probabilities `[B, A]` of an agent in each round; it learns from the logged arm of every one."""
    state = agent.init(shape)
    for t, now in enumerate(rounds):
        coins = Coins(seed, t, shape.batch, shape.dtype, "beside a log")
        arm, info = agent.act(state, now.observation, coins)
        shares = stated(agent, now.observation, arm, info, coins)
        yield counted(agent, state, now.observation, seed, t, DRAWS) if shares is None else shares
        state = agent.update(state, now.observation, now.arm, now.reward, info)


def in_replay(agent: Agent, shape: ProblemShape, rounds: Iterable[Round], seed: int) -> Iterator[Tensor]:
    """Whether an agent's own choice was the logged one in each round, `[B]`; it learns from these alone."""
    state = agent.init(shape)
    for t, now in enumerate(rounds):
        arm, info = agent.act(state, now.observation, Coins(seed, t, shape.batch, shape.dtype, "replay of a log"))
        matched = arm == now.arm
        rows = matched.nonzero().squeeze(1)
        if len(rows) == shape.batch:
            state = agent.update(state, now.observation, now.arm, now.reward, info)
        elif len(rows):
            learned = agent.update(*take_rows((state, now.observation, now.arm, now.reward, info), rows))
            state = put_rows(state, rows, learned)
        yield matched


def expectations(shape: ProblemShape, rounds: Iterable[Round]) -> Iterator[Tensor]:
    """The rewards `[B, A]` that ridge regression on all earlier rounds, and on no later one, expects: q̂_t."""
    shape = ProblemShape(shape.batch, shape.horizon, shape.arms, shape.dim + 1, shape.device, torch.float64)
    state = Ridge(inverse=identity(shape, 1.0), theta=vector(shape, 0.0))
    for now in rounds:
        prediction = predict(state, functional.pad(now.observation.action_set, (0, 1), value=1.0))
        yield prediction.mean
        state = absorb(state, prediction, now.arm, now.reward.double())


def _counted_out(rounds: Iterable[Tensor], say: Callable[[int], None]) -> Iterator[Tensor]:
    """The same, with a word now and then on how many there were."""
    waiting = 0
    for each in rounds:
        yield each
        waiting += 1
        if waiting == _SAY_EVERY:
            say(waiting)
            waiting = 0
    say(waiting)
