"""A policy's card: how it was made, how it performs, and what it should not be used for.

All numbers come from evaluations that are stored beside the card, on problems that no training has seen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from driftformer.agents.base import Agent
from driftformer.agents.incontext import InContext
from driftformer.agents.oracle import Oracle
from driftformer.agents.registry import make_agent
from driftformer.environments.base import Environment
from driftformer.environments.drift import Compose, Cosine, Drift, Jumps, PriorName, Stationary
from driftformer.environments.linear import ArmMode, LinearBandit
from driftformer.environments.per_problem import Units, WalkWithin
from driftformer.environments.registry import make_env
from driftformer.environments.unseen import Flips, Rising
from driftformer.errors import InputError, require_count
from driftformer.evaluation.evaluate import evaluate
from driftformer.evaluation.mdp_worlds import ON_CARD, UNTOLD
from driftformer.policies import TRAINING, folder_of
from driftformer.pretraining.imitation import TEACHER, measure_closeness
from driftformer.pretraining.labels import BEHAVIOUR, OPTIMAL
from driftformer.pretraining.recipes import RECIPES
from driftformer.pretraining.worlds import worlds_of
from driftformer.problem import traits_of, why_not
from driftformer.simulation.numbers import with_error
from driftformer.storage.files import read_json, tidy, write_atomically, write_json

PAPER_TOKENS = 200 * 400_000 * 399
"""200 epochs over 4 × 100,000 trajectories of 200 rounds, two tokens a round."""

_MODES: tuple[ArmMode, ...] = ("fixed", "resampled")
_TINY = {"horizon": 30, "dim": 4, "arms": 4, "noise": 0.3}

Setting = tuple[str, Environment]
"""A title and an environment."""


def _named(title: str, preset: str, **options: Any) -> Setting:
    return title, make_env(preset, **options)


def _cosines() -> list[Setting]:
    pairs = [(b, mode) for b in (0.018, 0.025) for mode in _MODES]
    return [_named(f"High, b={b:g}, {mode} arms", "high", b=b, arm_mode=mode) for b, mode in pairs]


def _any_world() -> list[Setting]:
    """Every kind of change, with the paper's prior and with weights of both signs; then other kinds of rewards."""
    kinds: dict[str, Drift] = {
        "High, b=0.018": Cosine(0.018),
        "High, b=0.025": Cosine(0.025),
        "At rest": Stationary(),
        "4 jumps": Jumps(4),
        "4 sign flips": Flips(4),
        "A walk of length 0 to 20": WalkWithin((0.0, 20.0)),
        "One arm rising by 8": Rising(8.0),
    }
    third = Units(scale=(1.0, 1.0), shift=(0.0, 0.0), signal=(3**-0.5, 3**-0.5))  # w ~ N(0, I/3)
    priors: tuple[PriorName, ...] = ("uniform", "normal")
    settings: list[Setting] = []
    for prior in priors:
        for title, kind in kinds.items():
            drift = kind if prior == "uniform" else Compose((kind, third) if isinstance(kind, Jumps) else (third, kind))
            for mode in _MODES:
                environment = LinearBandit(horizon=200, drift=drift, prior=prior, arm_mode=mode)
                settings.append((f"{title}, {mode} arms" + ", both signs" * (prior == "normal"), environment))
    settings += [_named(f"Low, {mode} arms", "low", arm_mode=mode) for mode in _MODES]
    return settings + [_named(f"`{name}`, T=500", name, horizon=500) for name in ("bernoulli", "disjoint", "logistic")]


_SETTINGS: dict[str, Callable[[], list[Setting]]] = {
    "high": lambda: [
        _named(f"High, b={b:g}, fixed arms", "high", b=b) for b in (0.005, 0.01, 0.015, 0.02, 0.018, 0.025)
    ],
    "low": lambda: [
        _named("Low, fixed arms", "low"),
        _named("Low without its windows, fixed arms", "low", lift=0.0),
    ],
    "cosine": _cosines,
    "broad": _any_world,
    "mdps": lambda: [(title, preset.build()) for _, title, preset in ON_CARD],
    "tiny": lambda: [_named(f"tiny High, {mode} arms", "high", **_TINY, arm_mode=mode) for mode in _MODES],
}
"""What a policy is measured on, by the worlds it was trained in."""

_RIVALS = (
    *("linucb", "thompson", *(f"discounted-linucb@gamma={gamma}" for gamma in (0.9, 0.97, 0.99))),
    *("sliding-window-linucb", "weighted-linucb"),
    *("ucb", "kl-ucb", "beta-thompson", "discounted-ucb", "sliding-window-ucb", "glr-kl-ucb"),
)
"""What the generalist is compared with, wherever they can play."""

_AGAINST: dict[str, tuple[str, ...]] = {"broad": _RIVALS, "mdps": (*UNTOLD, "restart-q-ucb")}
"""Rivals of policies that are compared with the best of them, by the worlds they were trained in."""

_USUAL = {"runs": 200, "seed": 0}


def write_card(
    source: str, out: Path, runs: int = _USUAL["runs"], seed: int = _USUAL["seed"], workers: int = 1
) -> Path:
    """Measure a policy and write card.json and card.md."""
    require_count("runs", runs, 2)
    require_count("seed", seed, 0, most=2**62)
    tidy(out)
    agent = InContext(source)
    path = folder_of(source) / TRAINING
    if not path.exists():
        raise InputError(f"policy {source} has no {TRAINING}, so it is unknown how it was made; train it here first")
    training = read_json(path)
    worlds, labels = training["recipe"]["worlds"], training["recipe"]["labels"]
    teacher = None if labels in (OPTIMAL, BEHAVIOUR) else labels
    closeness = None
    if teacher is not None:  # on new problems of the first of the policy's worlds
        try:
            first = worlds_of(worlds)[0].environment
            closeness = measure_closeness(agent, make_agent(teacher), first, runs=runs, seed=seed)
        except InputError as error:
            closeness = {"unmeasured": str(error)}
    card = {
        "policy": source,
        "weights": agent.weights,
        "runs": runs,
        "seed": seed,
        "training": training,
        "regret": list(_regrets(agent, worlds, teacher, out, runs, seed, workers)),
        "teacher": closeness,
    }
    write_json(out / "card.json", card)
    write_atomically(out / "card.md", render(card).encode())
    return out / "card.md"


def _regrets(
    agent: InContext, worlds: str, teacher: str | None, out: Path, runs: int, seed: int, workers: int
) -> Iterator[dict[str, Any]]:
    """In the environments of the table or, for policies of other worlds, in those worlds."""
    players: dict[str, Agent] = {"sampled": agent}
    if worlds in _AGAINST:
        players |= {name: make_agent(name) for name in _AGAINST[worlds]}
    else:
        players["greedy"] = InContext(agent.source, mode="greedy")
        players |= {name: make_agent(name) for name in ("linucb", "thompson", teacher) if name}
        players["oracle"] = Oracle()
    if worlds in _SETTINGS:
        measured_on = _SETTINGS[worlds]()
    else:
        measured_on = [(world.environment.describe(), world.environment) for world in worlds_of(worlds)]
    for place, (title, environment) in enumerate(measured_on):
        traits = traits_of(environment)
        able = {name: player for name, player in players.items() if why_not(player, traits) is None}
        folder = out / "evaluations" / f"{place:02d}"
        result = evaluate(environment, able, runs=runs, seed=seed, out=folder, workers=workers)
        regrets = {
            name: {"mean": row.regret_mean, "stderr": row.regret_stderr} for name, row in result.summary.agents.items()
        }
        yield {"title": title, "environment": environment.config(), "agents": regrets}


def render(card: dict[str, Any]) -> str:
    """The card as Markdown."""
    training, recipe = card["training"], card["training"]["recipe"]
    lines = [f"# {Path(card['policy']).name}", "", recipe["summary"][0].upper() + recipe["summary"][1:] + ".", ""]
    lines += ["## How it was made", "", *_made(training), ""]
    lines += ["## Dynamic regret", ""]
    lines += [f"Mean ± standard error over {card['runs']} problems that training never saw (seed {card['seed']})."]
    rivals = _AGAINST.get(recipe["worlds"])
    lines += ["", *(_against_the_best(card["regret"], rivals) if rivals else _regret_table(card["regret"])), ""]
    if card["teacher"]:
        lines += ["## How close it is to its teacher", "", *_teacher(card["teacher"], recipe["labels"]), ""]
    lines += ["## Limits", "", *_limits(card), ""]
    given = "".join(f" --{name} {card[name]}" for name, usual in _USUAL.items() if card[name] != usual)
    lines += [f"Figures from `driftformer card {card['policy']}{given} --out FOLDER`; weights {card['weights']}."]
    return "\n".join(lines) + "\n"


def _made(training: dict[str, Any]) -> list[str]:
    recipe, config, progress = training["recipe"], training["policy"], training["progress"]
    if config["form"] in _READS:
        return _made_query(training)
    alg_0 = ", ".join(f"{name} {share:g}" for name, share in recipe["behaviours"].items())
    own = f"; {recipe['own']:.0%} of trajectories by the policy itself" if recipe["own"] else ""
    steps = f"{progress['step']:,} steps on labels (learning rate {recipe['rate']:g})"
    if progress["tuning_step"]:
        steps += f", then {progress['tuning_step']:,} on its own regret (learning rate {recipe['tuning_rate']:g})"
    share = progress["tokens"] / PAPER_TOKENS
    kept = f"stored as dataset {training['data']}" if training.get("data") else "generated during training"
    imitates = recipe["labels"] != OPTIMAL and not progress["tuning_step"]
    why = "" if imitates else ", with the lowest regret during training"
    if recipe.get("start"):
        steps = f"from the weights of `{recipe['start']}`; {steps}"
    if recipe.get("short"):
        steps = f"the first {recipe['short']:.0%} of the steps on labels with fewer rounds; {steps}"
    return [
        f"- Model: {config['form']} form, {config['backbone']}, {config['layers']} layers, {config['heads']} heads, "
        f"D={config['width']}, {training['parameters']:,} weights, kept in bfloat16.",
        f"- Problems: `{recipe['worlds']}` of `pretraining/worlds.py`, {kept}. Behaviours: {alg_0}{own}. Labels: "
        f"{recipe['labels']}.",
        f"- Training: {steps}; {progress['seconds'] / 60:.1f} minutes on one {training['device']}, "
        f"{progress['tokens'] / 1e6:,.0f}M tokens, {share:.1%} of the paper's 3.2·10¹⁰. "
        f"Kept: the weights of step {progress['best_at']:,}{why}.",
        f"- Command: `{_command(training)}`.",
    ]


_READS = {"query": "the statistics of `models/statistics.py`", "tabular": "the ledger of `models/ledger.py`"}
"""What forms read that learn from what they play themselves."""


def _made_query(training: dict[str, Any]) -> list[str]:
    recipe, config = training["recipe"], training["policy"]
    lines = [
        f"- Model: {config['form']} form, {config['layers']} layers, {config['heads']} heads, D={config['width']}, "
        f"{training['parameters']:,} weights, kept in bfloat16. It reads {_READS[config['form']]}.",
        f"- Problems: `{recipe['worlds']}` of `pretraining/worlds.py`, generated and played by itself during training.",
        f"- Training: {_spent(training)} Kept: the weights of step {training['progress']['best_at']:,}, with the least "
        "regret during training.",
        f"- Command: `{_command(training)}`.",
    ]
    before = training.get("before")
    while before:
        lines.append(f"- Before that: {_spent(before)}")
        before = before.get("before")
    return lines


def _spent(training: dict[str, Any]) -> str:
    recipe, progress = training["recipe"], training["progress"]
    steps = f"{progress['step']:,} steps on values (learning rate {recipe['rate']:g})"
    if progress["tuning_step"]:
        steps += f", then {progress['tuning_step']:,} on regret too (learning rate {recipe['tuning_rate']:g})"
    elif recipe["tuning_steps"]:
        steps += f" and none of the recipe's {recipe['tuning_steps']:,} on regret"
    return (
        f"{steps}; {progress['seconds'] / 60:.1f} minutes on one "
        f"{training['device']}, {progress['tokens'] / 1e6:,.0f}M arms on offer." + _curve(training.get("curve", []))
    )


def _curve(points: list[tuple[str, int, float]]) -> str:
    """How regret fell."""
    names = {"labels": "values", "regret": "regret too"}
    told = [f"{regret:.3f} after {step:,} on {names[phase]}" for phase, step, regret in points]
    return f" Regret on problems set aside, as a share of chance's: {', '.join(told)}." if told else ""


def _command(training: dict[str, Any]) -> str:
    """The command that trains the policy: the recipe, and every setting that differs from it."""
    recipe = training["recipe"]
    base = json.loads(json.dumps(asdict(RECIPES[recipe["name"]]))) if recipe["name"] in RECIPES else {}
    idle = "tuning_" if not recipe["tuning_steps"] and not base.get("tuning_steps") else "-"  # settings of no effect
    differs = [key for key, value in recipe.items() if base.get(key, value) != value and not key.startswith(idle)]
    changed = [f"--{key.replace('_', '-')} {recipe[key]}" for key in differs]
    device = "" if training["device"] == "CPU core" else " --device cuda"
    data = " --data DATASET" if training.get("data") else ""
    return f"driftformer pretrain {recipe['name']}{device}{data} {' '.join([*changed, '--out FOLDER'])}"


def _regret_table(regrets: list[dict[str, Any]]) -> list[str]:
    names = list(dict.fromkeys(name for row in regrets for name in row["agents"]))
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for row in regrets:
        cells = [with_error(**row["agents"][name]) if name in row["agents"] else "–" for name in names]
        lines.append(f"| {row['title']} | " + " | ".join(cells) + " |")
    return lines


def _against_the_best(regrets: list[dict[str, Any]], rivals: tuple[str, ...]) -> list[str]:
    """The policy beside the rival that is best in each world."""
    lines = ["| | the policy | the best rival | | ratio |", "|---|---|---|---|---|"]
    for row in regrets:
        policy, name, ratio = _best_rival(row)
        told = (row["title"], with_error(**policy), with_error(**row["agents"][name]), f"`{name}`", f"{ratio:.2f}")
        lines.append(f"| {' | '.join(told)} |")
    return [*lines, "", f"Rivals, wherever they can play: {', '.join(f'`{name}`' for name in rivals)}."]


def _best_rival(row: dict[str, Any]) -> tuple[dict[str, float], str, float]:
    """The policy's figures, the best rival's name, and the ratio of their regrets."""
    agents = row["agents"]
    rivals = [name for name in agents if name not in ("sampled", "greedy", "oracle")]
    name = min(rivals, key=lambda rival: float(agents[rival]["mean"]))
    return agents["sampled"], name, agents["sampled"]["mean"] / agents[name]["mean"]


def _teacher(found: dict[str, Any], name: str) -> list[str]:
    if "unmeasured" in found:
        return [f"Not measured: {found['unmeasured']}."]
    lines = [
        f"Measured along {found['trajectories']} trajectories played by {name} itself, on new problems of the same "
        f"world, against the average of {found['copies']} copies of it, softened at temperature "
        f"{found['temperature']:g}:",
        "",
        "| | KL(teacher ‖ ·) per round | agreement with the teacher's arm | log-likelihood per round |",
        "|---|---|---|---|",
    ]
    for who, row in found["closeness"].items():
        lines.append(f"| {who} | {row['kl']:.3f} | {row['agreement']:.3f} | {row['log_likelihood']:.3f} |")
    ratio = found["distribution_ratio"]
    lines += [
        "",
        f"Played greedily, the policy chooses the teacher's arm in {found['greedy_agreement']:.3f} of the rounds. The "
        f"row '{TEACHER}' (as many again, with their own randomness) is the best that any imitation can do.",
        "",
        f"Distribution ratio R of policy and teacher on the policy's trajectories: log R = {ratio['log_ratio']:.1f}, "
        f"relative standard error {ratio['relative_error']:.2f}, {ratio['effective']:.1f} effective trajectories.",
    ]
    return lines + ([f"**{ratio['warning']}**"] if ratio["warning"] else [])


def _limits(card: dict[str, Any]) -> list[str]:
    config, recipe = card["training"]["policy"], card["training"]["recipe"]
    if config["form"] in _READS:
        return _limits_of_statistics(card)
    arms = (
        f"exactly the {config['arms']} arms it was trained with (fewer are padded), in the same order in every round"
        if config["form"] == "paper"
        else "any number of arms in any order"
    )
    return [
        f"- At most {config['horizon']} rounds and {config['dim']} dimensions; {arms}.",
        "- Features in [-1, 1] and rewards in the range of its training worlds: about [-10, 10]"
        + (" in units of the noise." if recipe["worlds"] != "low" else " are far outside; it has seen [0, 1] only."),
        "- Trained on simulated linear bandits with Gaussian noise. Elsewhere nothing is guaranteed: compare it with "
        "other agents first, with `driftformer evaluate`.",
    ]


def _limits_of_statistics(card: dict[str, Any]) -> list[str]:
    behind = [f"{row['title']} ({ratio:.2f})" for row in card["regret"] if (ratio := _best_rival(row)[2]) > 1]
    told = f"- Behind the best rival, which differs from world to world, on: {'; '.join(behind)}."
    if card["training"]["policy"]["form"] == "tabular":
        return [
            "- MDPs with any number of states, actions, steps and episodes, and rewards in [0, 1]; what it remembers "
            "and plans with grows with S²·A.",
            *([told] if behind else []),
            "- Trained with at most 20 states, 4 actions and 15 steps. Elsewhere compare it with other agents first, "
            "with `driftformer evaluate`.",
        ]
    return [
        "- Any units, any number of rounds and arms; more than 256 dimensions are projected onto 256 at random.",
        *([told] if behind else []),
        "- It believes in rewards that are linear in the features, or nearly so, and that change as its worlds do. "
        "Elsewhere compare it with other agents first, with `driftformer evaluate`.",
    ]
