"""The command line: a thin top over the library. Heavy imports happen inside the commands."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

import tyro
from tyro.conf import arg, subcommand

from driftformer.environments.presets import PRESETS, Preset
from driftformer.errors import InputError, unknown_name
from driftformer.experiments import EXPERIMENTS

if TYPE_CHECKING:
    _Environment = Preset
else:
    _Environment = Union[tuple(Annotated[preset, subcommand(name)] for name, preset in PRESETS.items())]  # noqa: UP007

_Folder = Annotated[Path | None, arg(metavar="FOLDER")]


@dataclass(frozen=True)
class Evaluate:
    """Compare agents on one environment by their dynamic regret.

    Every agent meets the same problems, arms and noise, so differences between agents are paired. Name an environment,
    then any options of it and of the evaluation, in any order:

        driftformer evaluate high --b 0.018 --agents linucb thompson oracle --runs 200 --out runs/high

        driftformer evaluate jumps --changes 8 --arm-mode resampled --agents linucb@alpha=0.5 linucb@alpha=2

    With --out the results stay in a folder: one small file for each agent and 64 runs, and of the latest call a
    summary.json, a timing.json and two figures. Ask again for more runs or agents and only what is missing is computed;
    a killed run goes on where it stopped, with the same numbers bit for bit. `driftformer list` shows all environments
    and agents; `driftformer evaluate high --help` shows the options of one environment.
    """

    environment: _Environment
    """The world to play in."""
    agents: tuple[str, ...] = ("random", "linucb", "thompson")
    """Agents to compare; options follow an @, as in linucb@alpha=2,ridge=0.5."""
    runs: int = 200
    """Independent problems to play."""
    seed: int = 0
    """Root of all randomness; the same seed gives the same numbers."""
    out: _Folder = None
    """Folder for the results; without it they are only shown."""
    workers: int = 1
    """Processes to compute with, one thread each; does not change the numbers."""
    device: str = "cpu"
    """cpu or cuda. A GPU has its own random numbers, so its results are kept apart."""
    trajectories: bool = False
    """Also keep every arm, reward, suboptimality and auxiliary value (needs --out)."""


@dataclass(frozen=True)
class Reproduce:
    """Run the paper's experiments and draw their figures.

    Each experiment is a frozen setting (see `driftformer list`). Results stay under --out: a second call only redraws.
    """

    experiments: tuple[str, ...] = tuple(EXPERIMENTS)
    """Which ones."""
    runs: int = 200
    """Independent problems of each."""
    seed: int = 0
    """Root of all randomness."""
    out: Path = Path("runs/reproduce")
    """Folder for results and figures."""
    workers: int = 1
    """Processes to compute with."""
    device: str = "cpu"
    """cpu or cuda."""


@dataclass(frozen=True)
class List:
    """Show the environments, agents and experiments that can be named."""


@dataclass(frozen=True)
class Bench:
    """Measure how many rounds per second this machine simulates (d=32, 10 arms, resampled by default).

    On a CPU the time is that of one thread. `make bench` in the repository compares with other libraries.
    """

    agents: tuple[str, ...] = ("random", "linucb", "thompson")
    """Agents to time, environment included."""
    problems: tuple[int, ...] = (64, 256, 512, 1024)
    """Batch sizes, multiples of 64."""
    horizon: int = 1000
    """Rounds of each problem."""
    arm_mode: Literal["fixed", "resampled"] = "resampled"
    """Whether arms are drawn once or in every round."""
    device: str = "cpu"
    """cpu or cuda."""


@dataclass(frozen=True)
class Rates:
    """Measure how dynamic regret grows with T, J and Δ, and fit exponents beside the paper's table of rates.

    A two-armed family with long horizons. The default takes a few minutes on one core; --longest 100000 half an hour or
    so. Results stay under --out: a second call only fits and redraws.
    """

    longest: int = 10_000
    """The longest horizon of the sweeps over T; those over J and Δ use a tenth of it."""
    runs: int = 64
    """Independent problems of each setting."""
    seed: int = 0
    """Root of all randomness."""
    out: Path = Path("runs/rates")
    """Folder for results, rates.json and rates.png."""
    workers: int = 1
    """Processes to compute with."""


@dataclass(frozen=True)
class ShowSchedule:
    """Draw the window schedule of one MALG block of 2^n rounds (Section 4.1 and Algorithm 1).

    driftformer show schedule --n 4 --seed 3 --out schedule.png
    """

    n: int = 4
    """Order of the block: it has 2^n rounds and instances of orders 0 to n."""
    seed: int = 0
    """Root of the coin flips."""
    c1: float = 1.0
    """rho(t) = c1/sqrt(t) + c2/t."""
    c2: float = 0.0
    """See c1."""
    out: Path = Path("schedule.png")
    """The picture; its ending is the format."""


@dataclass(frozen=True)
class ShowRun:
    """Draw one run of one agent: rewards, regret, the active order and the restarts, where it has them.

    driftformer show run jumps --horizon 2000 --agent master-linucb@test_scale=0.01 --out run.png
    """

    environment: _Environment
    """The world to play in."""
    agent: str = "master-linucb"
    """The agent to watch."""
    seed: int = 0
    """Root of all randomness; the run is the first one of an evaluation with this seed."""
    out: Path = Path("run.png")
    """The picture; its ending is the format."""


@dataclass(frozen=True)
class ShowEquivalence:
    """Draw why a sliding window is no special case of the window scheduler (the text's fig:equivalence).

    driftformer show equivalence --rounds 8 --window 2 --out equivalence.png
    """

    rounds: int = 8
    """Rounds to draw."""
    window: int = 2
    """Length of the windows."""
    out: Path = Path("equivalence.png")
    """The picture; its ending is the format."""


@dataclass(frozen=True)
class Show:
    """Draw what goes on inside an agent."""

    what: (
        Annotated[ShowSchedule, subcommand("schedule")]
        | Annotated[ShowRun, subcommand("run")]
        | Annotated[ShowEquivalence, subcommand("equivalence")]
    )
    """The picture to draw."""


def main(arguments: list[str] | None = None) -> None:
    """Parse, run, and turn every foreseeable error into one line and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        command = _parse(arguments)
        _RUN[type(command)](command)
    except InputError as error:
        sys.exit(_complain(str(error)))
    except MemoryError as error:
        sys.exit(_complain(f"not enough memory ({error}); give fewer runs, arms, dims or rounds"))
    except OSError as error:
        sys.exit(_complain(f"{error.filename or 'file'}: {error.strerror}; check the disk and the permissions there"))
    except KeyboardInterrupt:
        print("\ninterrupted; with --out, what was finished is kept: run the same command to go on", file=sys.stderr)
        sys.exit(130)


def _complain(message: str) -> int:
    print(f"driftformer: error: {' '.join(message.split())}", file=sys.stderr)
    return 2


def _parse(arguments: list[str]) -> Any:
    """tyro's parse, with its errors as one line."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(
                Annotated[Evaluate, subcommand("evaluate")]
                | Annotated[Reproduce, subcommand("reproduce")]
                | Annotated[Rates, subcommand("rates")]
                | Annotated[Show, subcommand("show")]
                | Annotated[List, subcommand("list")]
                | Annotated[Bench, subcommand("bench")],
                prog="driftformer",
                description="Decision-making in a changing world, measured by dynamic regret.",
                args=arguments,
                config=(
                    tyro.conf.CascadeSubcommandArgs,
                    tyro.conf.OmitArgPrefixes,
                    tyro.conf.OmitSubcommandPrefixes,
                    tyro.conf.FlagCreatePairsOff,
                ),
            )
    except SystemExit as end:
        if not end.code:
            raise
        raise InputError(_one_line(said.getvalue(), arguments)) from None


def _one_line(said: str, arguments: list[str]) -> str:
    """The first paragraph of tyro's box, and the nearest name if it knows one or we do."""
    lines = [line.strip("│╭╮╰╯|+ ") for line in said.splitlines()]
    rules = [place for place, line in enumerate(lines) if set(line) <= set("─-") or line.startswith(("─ ", "- "))]
    first = next((place for place in range(len(lines)) if place not in rules and place > 0), 0)
    rule = next((place for place in rules if place > first), len(lines))
    message = " ".join(lines[first:rule]).rstrip(".")
    words = message.removeprefix("Unrecognized options: ").split(", ")
    nearest = [line.split()[0] for line in lines[rule:] if re.match("--[a-z]", line)]
    if message.startswith("Unrecognized options: ") and words[0].startswith("--"):
        hint = f"did you mean {nearest[0]}?" if nearest else f"see driftformer {' '.join(arguments[:2])} --help"
        return f"there is no option {words[0]}; {hint}"
    if message.startswith("Unrecognized options: "):
        place, known = ("environment", PRESETS) if "evaluate" in arguments[:1] else ("command", _COMMANDS)
        return str(unknown_name(place, words[0], known))
    choices = re.search(r"invalid choice '(.*)' for argument '(.*)'. Expected one of \((.*)\)", message)
    if choices:
        return str(unknown_name(choices[2], choices[1], re.findall(r"'([^']*)'", choices[3])))
    return f"{message}; see driftformer {' '.join(arguments[:1])} --help".replace("  ", " ")


def _evaluate(command: Evaluate) -> None:
    from driftformer.environments.presets import build
    from driftformer.evaluation.evaluate import evaluate

    preset: Preset = command.environment
    result = evaluate(
        build(preset),
        command.agents,
        runs=command.runs,
        seed=command.seed,
        out=command.out,
        workers=command.workers,
        device=command.device,
        trajectories=command.trajectories,
    )
    _print_table(result)
    if command.out is not None:
        for ending in ("png", "svg"):
            result.plot(command.out / f"regret.{ending}", "regret")
            result.plot(command.out / f"suboptimality.{ending}", "suboptimality")
        print(f"\nresults, regret.png and suboptimality.png are in {command.out}")


def _reproduce(command: Reproduce) -> None:
    from driftformer.environments.presets import build
    from driftformer.evaluation.evaluate import evaluate
    from driftformer.evaluation.figures import draw_grid

    if not command.experiments:
        raise InputError(f"experiments is empty; name at least one of {', '.join(EXPERIMENTS)}")
    for name in command.experiments:
        if name not in EXPERIMENTS:
            raise unknown_name("experiment", name, EXPERIMENTS)
    summaries = {}
    for name in command.experiments:
        experiment = EXPERIMENTS[name]
        result = evaluate(
            build(experiment.preset),
            experiment.agents,
            runs=command.runs,
            seed=command.seed,
            out=command.out / name,
            workers=command.workers,
            device=command.device,
        )
        _print_table(result)
        summaries[experiment.title] = result.summary
    for ending in ("png", "svg"):
        draw_grid(summaries, command.out / f"regret.{ending}")
    print(f"\nfigure: {command.out / 'regret.png'} (and .svg); numbers: {command.out}/*/summary.json")


def _print_table(result: Any) -> None:
    from rich.console import Console

    from driftformer.evaluation.result import notes, render

    Console().print(render(result.summary, result.timing), *notes(result.summary), sep="\n")


def _list(command: List) -> None:
    from rich.console import Console

    from driftformer.catalogue import tables

    for table in tables():
        Console().print(table)


def _bench(command: Bench) -> None:
    from rich.console import Console

    from driftformer.catalogue import speeds
    from driftformer.simulation.throughput import measure

    measured = measure(command.agents, command.problems, command.horizon, command.arm_mode, command.device)
    Console().print(speeds(measured, command.device, command.arm_mode))


def _rates(command: Rates) -> None:
    from rich.console import Console

    from driftformer.catalogue import exponents
    from driftformer.evaluation.rates import measure_rates

    found = measure_rates(
        command.out, longest=command.longest, runs=command.runs, seed=command.seed, workers=command.workers
    )
    Console().print(exponents(found, command.longest))
    print(f"\nfigure: {command.out / 'rates.png'} (and .svg); numbers: {command.out / 'rates.json'}")


def _show(command: Show) -> None:
    if isinstance(command.what, ShowSchedule):
        _show_schedule(command.what)
    elif isinstance(command.what, ShowRun):
        _show_run(command.what)
    else:
        _show_equivalence(command.what)
    print(f"figure: {command.what.out}")


def _show_schedule(command: ShowSchedule) -> None:
    from driftformer.agents.master import Master
    from driftformer.agents.schedule import malg, run
    from driftformer.errors import require_count
    from driftformer.evaluation.schedule_figures import draw_schedule
    from driftformer.randomness import Randomness

    require_count("n", command.n, 0, most=10)
    require_count("seed", command.seed, 0, most=2**63)
    scheduler = malg(command.n, Master(c1=command.c1, c2=command.c2).rho)
    rounds = run(scheduler, 2**command.n, Randomness(command.seed, size=1).stream("coins"))
    draw_schedule(scheduler, rounds, command.out)


def _show_equivalence(command: ShowEquivalence) -> None:
    from driftformer.errors import require_count
    from driftformer.evaluation.schedule_figures import draw_equivalence

    require_count("rounds", command.rounds, 2, most=40)
    require_count("window", command.window, 1, most=command.rounds)
    draw_equivalence(command.rounds, command.window, command.out)


def _show_run(command: ShowRun) -> None:
    from driftformer.environments.presets import build
    from driftformer.evaluation.schedule_figures import draw_run
    from driftformer.simulation.rollout import rollout

    environment = build(command.environment)
    seen = rollout(environment, command.agent, seed=command.seed, trajectories=True).trajectories
    assert seen is not None
    arrays = {name: value.numpy() for name, value in seen.tensors().items()}
    draw_run(arrays, f"{command.agent} on {environment.name}, seed {command.seed}, run 1", command.out)


_RUN: dict[type, Any] = {
    Evaluate: _evaluate,
    Reproduce: _reproduce,
    Rates: _rates,
    Show: _show,
    List: _list,
    Bench: _bench,
}
_COMMANDS = ("evaluate", "reproduce", "rates", "show", "list", "bench")
