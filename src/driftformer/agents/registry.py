"""The named agents and their options. Nothing here imports torch, so that `driftformer list` answers at once.

An agent is written as its name, or as its name with options behind an @: `linucb@alpha=2,ridge=0.5`. An option that is
itself an agent takes its options behind plus signs: `master@base=linucb+alpha=2,test_scale=0.03`, and one sign more for
each level further in: `master@base=restart+base=linucb++alpha=2+every=9`. To add one of ours, write its file and one
entry here; the contract tests pick it up by themselves. Other packages call `df.register_agent(MyAgent)`, or name such
classes as entry points of the group `driftformer.agents`.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from driftformer.errors import InputError, unknown_name
from driftformer.plugins import load_plugins
from driftformer.policies import PREFIX

if TYPE_CHECKING:
    from driftformer.agents.base import Agent, NamedAgent


class BaseAgent(str):
    """The name of an agent that another one wraps, as an option."""

    __slots__ = ()


@dataclass(frozen=True)
class Entry:
    """Where an agent lives and what a reader of the list should know."""

    where: str | type[Any]  # module.Class in this room, or the class itself where another package brought it
    summary: str
    options: dict[str, Any]  # with their defaults, shown by `list`; a test holds them to the class itself
    privileged: bool = False

    def load(self) -> type[Any]:
        found: Any = self.where
        if isinstance(found, str):
            module, _, kind = found.partition(".")
            found = getattr(importlib.import_module(f"driftformer.agents.{module}"), kind)
        if not hasattr(found, "online"):  # whatever has a name can be put to work
            found.online = _online
        return cast(type[Any], found)


def _online(agent: Agent, **options: Any) -> Any:
    """Put the agent to work in a service: see `agents.services.online`."""
    from driftformer.agents.services.online import online

    return online(agent, **options)


LINUCB = BaseAgent("linucb")
FADING = {"gamma": 0.95, "alpha": 1.0, "ridge": 1.0}

AGENTS: dict[str, Entry] = {
    "random": Entry("reference.Random", "uniform over the offered arms", {}),
    "linucb": Entry("linucb.LinUCB", "optimism over ridge regression", {"alpha": 1.0, "ridge": 1.0}),
    "thompson": Entry("thompson.Thompson", "posterior sampling over ridge regression", {"variance": 0.3, "ridge": 1.0}),
    "greedy": Entry("greedy.Greedy", "ridge regression without exploration", {"ridge": 1.0}),
    "epsilon-greedy": Entry(
        "greedy.EpsilonGreedy", "ridge regression, and a random arm now and then", {"epsilon": 0.1, "ridge": 1.0}
    ),
    "ucb": Entry("ucb.UCB", "K arms: optimism over each arm's mean (UCB1)", {"alpha": 2.0}),
    "kl-ucb": Entry("ucb.KLUCB", "K arms: optimism for rewards in [0, 1], tighter than ucb", {"c": 0.0}),
    "discounted-ucb": Entry("ucb.DiscountedUCB", "K arms: UCB whose old observations fade", {"gamma": 0.99, "xi": 0.5}),
    "sliding-window-ucb": Entry(
        "ucb.SlidingWindowUCB", "K arms: UCB on the last rounds only", {"window": 50, "xi": 0.5}
    ),
    "glr-kl-ucb": Entry(
        "glr_kl_ucb.GLRKLUCB",
        "K arms: kl-UCB that begins again on arms whose rewards change",
        {"restarts": "local", "exploration": 0.1, "delta": 1.0, "c": 1.0, "every": 10},
    ),
    "beta-thompson": Entry(
        "beta_thompson.BetaThompson", "K arms: posterior sampling for rewards in [0, 1], may fade", {"gamma": 1.0}
    ),
    "discounted-linucb": Entry("discounted.DiscountedLinUCB", "D-LinUCB: old observations fade, two matrices", FADING),
    "weighted-linucb": Entry("discounted.WeightedLinUCB", "LB-WeightUCB: old observations fade, one matrix", FADING),
    "discounted-thompson": Entry(
        "discounted.DiscountedThompson",
        "D-LinTS: posterior sampling, old observations fade",
        {"gamma": 0.95, "variance": 0.3, "ridge": 1.0},
    ),
    "sliding-window-linucb": Entry(
        "sliding_window.SlidingWindowLinUCB",
        "LinUCB on the last rounds only",
        {"window": 50, "alpha": 1.0, "ridge": 1.0},
    ),
    "adaptive-linucb": Entry(
        "adaptive.AdaptiveLinUCB",
        "linear regressions with several memories, believed as far as they predict",
        {"alpha": 1.0, "signal": 3.0},
    ),
    "restart": Entry(
        "restart.PeriodicRestart", "a base agent that begins again every so many rounds", {"base": LINUCB, "every": 50}
    ),
    "detection": Entry(
        "detection.Detection",
        "DAL: a base agent that begins again when forced rounds show a change",
        {"base": LINUCB, "detector": "glr", "watch": "all", "exploration": 0.1, "noise": 1.5},
    ),
    "master": Entry(
        "master.Master",
        "instances of a base agent at many scales, tests and restarts",
        {"base": LINUCB, "c1": 1.0, "c2": 0.0, "test_scale": 1.0},
    ),
    "ucb-vi": Entry(
        "ucb_vi.UCBVI", "MDPs: optimistic value iteration over what was counted", {"bonus": "hoeffding", "scale": 0.4}
    ),
    "q-ucb": Entry("q_ucb.QUCB", "MDPs: optimistic Q-learning", {"scale": 0.05}),
    "restart-q-ucb": Entry(
        "restart_q_ucb.RestartQUCB",
        "MDPs: optimistic Q-learning that begins anew in each of so many epochs",
        {"epochs": 5, "scale": 0.05},
    ),
    "double-restart-q-ucb": Entry(
        "double_restart_q_ucb.DoubleRestartQUCB",
        "MDPs: restart-q-ucb that learns how often to begin anew",
        {"phase": 0, "scale": 0.05},
    ),
    "sliding-window-ucb-vi": Entry(
        "sliding_window_ucb_vi.SlidingWindowUCBVI",
        "MDPs: UCB-VI on the last episodes only",
        {"window": 500, "bonus": "hoeffding", "scale": 0.4},
    ),
    "psrl": Entry("psrl.PSRL", "MDPs: plays the best policy of a draw from the posterior", {"prior": 1.0}),
    "q-learning": Entry(
        "q_learning.QLearning",
        "MDPs: Q-learning, and a random arm now and then",
        {"epsilon": 0.1, "rate": 0.1},
    ),
    "oracle": Entry(
        "oracle.Oracle", "knows drift, noise and prior, not w*: a reference", {"alpha": 1.0, "explore": "ucb"}, True
    ),
    "change-point-oracle": Entry(
        "restart.ChangePointOracle", "a base agent that begins again where rewards truly change", {"base": LINUCB}, True
    ),
    "prior": Entry(
        "prior.Prior", "plays what the prior's mean calls best and never learns: a reference", {"knows": "prior"}, True
    ),
    "clock-posterior": Entry(
        "clock_posterior.ClockPosterior",
        "the Bayes optimum of training on the paper's four frequencies: a reference",
        {"optimum": "round"},
        True,
    ),
    "optimal": Entry("reference.Optimal", "knows every mean reward: regret zero", {}, True),
}


POLICY = PREFIX
"""Agents whose names begin so are pretrained transformers: shipped ones, or folders."""

POLICY_OPTIONS: dict[str, Any] = {"mode": "sample", "temperature": 1.0}


ALIASES: dict[str, str] = {
    "restart-linucb": "restart@base=linucb",
    "detection-linucb": "detection@base=linucb",
    "master-linucb": "master@base=linucb",
    "master-thompson": "master@base=thompson",
    "master-ucb-vi": "master@base=ucb-vi",
    "master-q-ucb": "master@base=q-ucb",
}
"""Other names; options may follow them too."""


def register_agent(kind: type[Any]) -> type[Any]:
    """Make an agent's class known by its `name`, to `make_agent` and the command line; usable as a decorator.

    Its fields are its options; the first line of its docstring is its summary.

    >>> from dataclasses import dataclass
    >>> from types import SimpleNamespace
    >>> from typing import ClassVar
    >>> @df.register_agent
    ... @dataclass(frozen=True)
    ... class Turns:
    ...     "Plays the arms in turn."
    ...
    ...     name: ClassVar[str] = "turns"
    ...     learns: ClassVar[bool] = False
    ...
    ...     def init(self, shape):
    ...         return torch.zeros(shape.batch, dtype=torch.long)
    ...
    ...     def act(self, state, observation, rng):
    ...         return state % observation.action_set.shape[1], SimpleNamespace(auxiliary_value=None)
    ...
    ...     def update(self, state, observation, arm, reward, info):
    ...         return state + 1
    >>> df.evaluate("high", ["random", "turns"], runs=64, progress=False)
    Result(high: b=0.018, phase=0.0, T=200, d=32, 10 fixed arms, 64 runs, seed 0; regret: random 382.6, turns 384.7)
    """
    agent = check_agent(kind()) if isinstance(kind, type) and dataclasses.is_dataclass(kind) else check_agent(kind)
    known = AGENTS.get(agent.name)
    if (known is not None and known.where is not kind) or agent.name in ALIASES:
        raise InputError(f"agent '{agent.name}' is registered already; choose another name")
    summary = (kind.__doc__ or "an agent of another package").strip().splitlines()[0].rstrip(".")
    options = {field.name: _default(field) for field in dataclasses.fields(kind)}
    for option, value in options.items():
        if dataclasses.is_dataclass(value):
            options[option] = BaseAgent(label(cast("Agent", value)))
    AGENTS[agent.name] = Entry(kind, summary, options, hasattr(kind, "inform"))
    return kind


def _default(field: dataclasses.Field[Any]) -> Any:
    factory: Any = field.default_factory
    return field.default if factory is dataclasses.MISSING else factory()


def make_agent(spec: str, **options: Any) -> NamedAgent:
    """An agent from its name, with options behind an @ or as keywords.

    >>> df.make_agent("linucb@alpha=2") == df.make_agent("linucb", alpha=2)
    True
    >>> df.make_agent("linucd")
    Traceback (most recent call last):
    driftformer.errors.InputError: agent: there is no 'linucd'; did you mean 'linucb'?
    """
    name, at, written = spec.partition("@")
    if name.startswith(POLICY):
        return _make_policy(spec, name.removeprefix(POLICY), (_parse(spec, written) if at else {}) | options)
    if name in ALIASES:
        return make_agent(ALIASES[name] + ("," + written if at else ""), **options)
    if name not in AGENTS:
        load_plugins("driftformer.agents", register_agent)
    if name not in AGENTS:
        raise unknown_name("agent", name, [*AGENTS, *ALIASES])
    entry = AGENTS[name]
    if at:
        options = _parse(spec, written) | options
    agent: NamedAgent = entry.load()(**_checked(name, options, entry.options))
    return agent


def _make_policy(spec: str, source: str, options: dict[str, Any]) -> NamedAgent:
    """A pretrained transformer; `weights=…` demands those with that checksum."""
    from driftformer.agents.incontext import InContext

    weights = options.pop("weights", None)
    agent = InContext(source, **policy_options(spec, options))
    if weights is not None and weights != agent.weights:
        raise InputError(f"agent '{spec}': its weights are {agent.weights} now; leave weights out, or get those")
    return agent


def policy_options(spec: str, options: dict[str, Any]) -> dict[str, Any]:
    """A policy's options in their types, or an error that names the nearest one."""
    return _checked(spec, options, POLICY_OPTIONS, "weights")


def _checked(name: str, options: dict[str, Any], known: dict[str, Any], *also: str) -> dict[str, Any]:
    for option in options:
        if option not in known:
            raise unknown_name(f"agent '{name}', option", option, [*known, *also] or ["(none)"])
    return {option: _convert(name, option, value, known[option]) for option, value in options.items()}


def summary_of(spec: str) -> str:
    """A few words on an agent, by the name it was asked for by."""
    name = spec.partition("@")[0]
    if name.startswith(POLICY):
        return f"a pretrained transformer, {name.removeprefix(POLICY)}"
    return AGENTS[ALIASES.get(name, name).partition("@")[0]].summary


def check_agent(agent: Any) -> Agent:
    """Refuse what could not be played or stored: an agent is a dataclass of options with a plain name."""
    usable = dataclasses.is_dataclass(agent) and not isinstance(agent, type)
    name = getattr(agent, "name", None)
    if not usable or not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9-]*|policy:[^@,=+]+", name):
        raise InputError(
            f"agents: {agent!r:.60} cannot be played; give a name, or an object of a frozen dataclass with a `name` "
            "in small letters"
        )
    for field in dataclasses.fields(agent):
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise InputError(f"agent '{name}': its option {field.name} has no default; give it one")
    return cast("Agent", agent)


def label(agent: Agent) -> str:
    """An agent's name with those of its options that differ from the defaults: what `make_agent` would read."""
    return _written(agent, everything=False)


def full_label(agent: Agent) -> str:
    """An agent's name with all its options, and a policy's weights: what its stored results are known by."""
    return _written(agent, everything=True)


def _written(agent: Agent, everything: bool) -> str:
    parts = []
    for field in dataclasses.fields(cast(Any, agent)):
        if field.metadata.get("named"):  # it is part of the name already
            continue
        default, value = _default(field), getattr(agent, field.name)
        if everything or value != default:
            wrapped = dataclasses.is_dataclass(default)
            # alpha=2 and alpha=2.0 are one agent; a wrapped one's options stand behind plus signs
            plain = isinstance(default, (bool, int, float, str))
            text = _plus(_written(value, everything)) if wrapped else str(type(default)(value) if plain else value)
            parts.append(f"{field.name}={text}")
    if everything and hasattr(agent, "weights"):
        parts.append(f"weights={agent.weights}")
    return agent.name + ("@" + ",".join(parts) if parts else "")


def _plus(written: str) -> str:
    """A wrapped agent's options: behind plus signs, and one sign more for each level further in."""
    return re.sub(r"\++", lambda signs: signs[0] + "+", written).replace("@", "+").replace(",", "+")


def _unplus(written: str) -> str:
    """The other way round."""
    name, *options = re.split(r"(?<!\+)\+(?!\+)", written)
    outer = name + ("@" + ",".join(options) if options else "")
    return re.sub(r"\++", lambda signs: signs[0][1:], outer)


def _parse(spec: str, written: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in written.split(","):
        key, equals, value = part.partition("=")
        if not equals or not key or not value:
            raise InputError(f"agent '{spec}': '{part}' is not an option; write name@option=value,option=value")
        if key in options:
            raise InputError(f"agent '{spec}': option {key} is given twice; give it once")
        options[key] = value
    return options


def _convert(name: str, option: str, value: Any, default: Any) -> Any:
    """A value, perhaps text from a command line, in the type of the option's default."""
    if isinstance(default, BaseAgent):
        return make_agent(_unplus(value)) if isinstance(value, str) else value
    try:
        return type(default)(value)
    except (TypeError, ValueError):
        raise InputError(f"agent '{name}': {option} is {value!r}; give a {type(default).__name__}") from None


load_plugins("driftformer.agents", register_agent)
