"""The command line: a thin top over the library. Heavy imports happen inside the commands."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from typing import Annotated, Any

import tyro
from tyro.conf import subcommand

from driftformer.commands.options import (
    Bench,
    Card,
    Collect,
    Evaluate,
    List,
    Pretrain,
    Rates,
    Reproduce,
    Show,
    ShowEquivalence,
    ShowRun,
    ShowSchedule,
    Sweep,
    Theory,
    WriteReport,
)
from driftformer.environments.presets import PRESETS, Preset
from driftformer.errors import InputError, unknown_name
from driftformer.experiments import NAMES
from driftformer.storage.events import are_json_lines, as_json_lines, say


def main(arguments: list[str] | None = None) -> None:
    """Parse, run, and turn every foreseeable error into one line and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    with as_json_lines("--log-json" in arguments):
        _run(arguments)


def _run(arguments: list[str]) -> None:
    try:
        command = _parse(arguments)
        _RUN[type(command)](command)
    except InputError as error:
        sys.exit(_complain(str(error)))
    except MemoryError as error:
        sys.exit(_complain(f"not enough memory ({error}); give fewer runs, arms, dims or rounds"))
    except OSError as error:
        path = os.fsdecode(error.filename or "file")
        sys.exit(_complain(f"{path}: {error.strerror}; check the disk and the permissions there"))
    except KeyboardInterrupt:
        print("\ninterrupted; with --out, what was finished is kept: run the same command to go on", file=sys.stderr)
        sys.exit(130)


def _complain(message: str) -> int:
    message = " ".join(message.split())
    if are_json_lines():
        say("error", message=message)
    else:
        print(f"driftformer: error: {message}", file=sys.stderr)
    return 2


def _parse(arguments: list[str]) -> Any:
    """tyro's parse, with its errors as one line."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(
                Annotated[Evaluate, subcommand("evaluate")]
                | Annotated[Reproduce, subcommand("reproduce")]
                | Annotated[Sweep, subcommand("sweep")]
                | Annotated[WriteReport, subcommand("report")]
                | Annotated[Rates, subcommand("rates")]
                | Annotated[Show, subcommand("show")]
                | Annotated[Collect, subcommand("collect")]
                | Annotated[Pretrain, subcommand("pretrain")]
                | Annotated[Card, subcommand("card")]
                | Annotated[Theory, subcommand("theory")]
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
        **vars(command.crew),
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
    from driftformer.experiments.reproduce import draw_experiments, reproduce

    names = NAMES if command.experiments == ("all",) else command.experiments
    reproduce(
        names,
        command.out,
        scale=command.scale,
        runs=command.runs,
        seed=command.seed,
        **vars(command.crew),
        device=command.device,
        pretrain=command.pretrain,
        on_result=lambda case, result: _print_table(result),
    )
    draw_experiments(command.out)
    _write_report(WriteReport(command.out))


def _sweep(command: Sweep) -> None:
    from driftformer.sweeps.grid import asked_for

    asked = asked_for(command.grid, command.environment, command.vary, command.agents, command.runs, command.seed)

    from rich.console import Console

    from driftformer.sweeps.sweep import TABLE, draw, render, sweep

    rows = sweep(asked.grid, command.out, runs=asked.runs, seed=asked.seed, **vars(command.crew))
    for ending in ("png", "svg"):
        draw(asked.grid, rows, command.out / f"regret.{ending}")
    Console().print(render(asked.grid, rows))
    print(f"\n{len(rows):,} rows are in {command.out / TABLE}; figure: {command.out / 'regret.png'} (and .svg)")


def _write_report(command: WriteReport) -> None:
    from driftformer.report import headlines, write_report

    path = write_report(command.folder)
    for title, text in headlines(command.folder):
        print(f"{title}: {text}")
    print(
        f"\nopen {path} in a browser: plots, the claims table and single runs; pictures: {command.folder / 'figures'}"
    )


def _print_table(result: Any) -> None:
    from rich.console import Console

    from driftformer.evaluation.result import notes, render

    Console().print(render(result.summary, result.timing), *notes(result.summary), sep="\n")


def _list(command: List) -> None:
    from rich.console import Console

    from driftformer.commands.tables import tables

    for table in tables():
        Console().print(table)


def _bench(command: Bench) -> None:
    from rich.console import Console

    from driftformer.commands.tables import speeds
    from driftformer.simulation.throughput import measure

    measured = measure(command.agents, command.problems, command.horizon, command.arm_mode, command.device)
    Console().print(speeds(measured, command.device, command.arm_mode))


def _rates(command: Rates) -> None:
    from rich.console import Console

    from driftformer.commands.tables import exponents
    from driftformer.experiments.rates import measure_rates

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
    from driftformer.plots.schedule import draw_schedule
    from driftformer.randomness import Randomness

    require_count("n", command.n, 0, most=10)
    require_count("seed", command.seed, 0, most=2**63)
    scheduler = malg(command.n, Master(c1=command.c1, c2=command.c2).rho)
    rounds = run(scheduler, 2**command.n, Randomness(command.seed, size=1).stream("coins"))
    draw_schedule(scheduler, rounds, command.out)


def _show_equivalence(command: ShowEquivalence) -> None:
    from driftformer.errors import require_count
    from driftformer.plots.schedule import draw_equivalence

    require_count("rounds", command.rounds, 2, most=40)
    require_count("window", command.window, 1, most=command.rounds)
    draw_equivalence(command.rounds, command.window, command.out)


def _show_run(command: ShowRun) -> None:
    from driftformer.environments.presets import build
    from driftformer.plots.schedule import draw_run
    from driftformer.simulation.rollout import rollout

    environment = build(command.environment)
    seen = rollout(environment, command.agent, seed=command.seed, trajectories=True).trajectories
    assert seen is not None
    arrays = {name: value.numpy() for name, value in seen.tensors().items()}
    draw_run(arrays, f"{command.agent} on {environment.name}, seed {command.seed}, run 1", command.out)


def _collect(command: Collect) -> None:
    from driftformer.evaluation.progress import Progress
    from driftformer.pretraining.dataset import collect_dataset
    from driftformer.simulation.rollout import check_device

    check_device(command.device)
    with Progress(command.trajectories, f"collecting {command.worlds}", unit="trajectories") as bar:
        collect_dataset(
            command.out,
            command.worlds,
            command.trajectories,
            behaviours=_shares(command.behaviours),
            labels=command.labels,
            seed=command.seed,
            device=command.device,
            **vars(command.crew),
            on_trajectories=bar.advance,
            on_event=bar.tell,
        )
    print(f"{command.trajectories:,} trajectories are in {command.out}")


def _shares(written: tuple[str, ...]) -> dict[str, float]:
    """Behaviours and their shares, from name=share; options of an agent may have an = of their own."""
    shares = {}
    for word in written:
        name, equals, share = word.rpartition("=")
        try:
            number = float(share)
        except ValueError:
            equals, number = "", 0.0
        if not equals or not name:
            raise InputError(f"behaviours: '{word}' has no share; write name=share, as in random=0.5")
        if name in shares:
            raise InputError(f"behaviours: '{name}' stands twice; give each once")
        shares[name] = number
    return shares


def _pretrain(command: Pretrain) -> None:
    from driftformer.pretraining.recipes import recipe_of

    own = ("recipe", "out", "data", "device", "max_minutes", "evaluate_every", "log_json")
    recipe = recipe_of(command.recipe, **{name: value for name, value in vars(command).items() if name not in own})

    from driftformer.evaluation.progress import TrainingProgress
    from driftformer.pretraining.train import train
    from driftformer.simulation.rollout import check_device

    check_device(command.device)
    with TrainingProgress(recipe.name) as bar:
        progress = train(
            recipe,
            command.out,
            device=command.device,
            max_minutes=command.max_minutes,
            evaluate_every=command.evaluate_every,
            data=command.data,
            on_report=bar.show,
        )
    done = progress.step >= recipe.steps and progress.tuning_step >= recipe.tuning_steps
    if not done:
        print(f"stopped at step {progress.step + progress.tuning_step}; run the same command to go on")
    if progress.best is not None:
        print(f"least regret: {progress.best:.3f} of the uniform policy's; play it as policy:{command.out}/best")


def _theory(command: Theory) -> None:
    from rich.console import Console

    from driftformer.commands.tables import checked
    from driftformer.errors import require_count
    from driftformer.theory.checks import CHECKS

    require_count("n", command.n, 1, most=6)
    if command.only is not None and command.only not in CHECKS:
        raise unknown_name("check", command.only, CHECKS)
    names = list(CHECKS) if command.only is None else [command.only]
    with Console(stderr=True).status("checking …") as status:
        rows = {}
        for name in names:
            status.update(f"checking {name} …")
            rows[name] = CHECKS[name](command.n)
    Console().print(checked(rows, command.n))
    if command.plot is not None:
        from driftformer.theory.figures import draw

        draw(command.only, command.n, command.plot)
        print(f"figure: {command.plot}")


def _card(command: Card) -> None:
    from driftformer.evaluation.card import write_card

    path = write_card(command.policy, command.out, command.runs, command.seed, command.workers)
    print(f"card: {path}")


_RUN: dict[type, Any] = {
    Collect: _collect,
    Pretrain: _pretrain,
    Card: _card,
    Theory: _theory,
    Evaluate: _evaluate,
    Reproduce: _reproduce,
    Sweep: _sweep,
    WriteReport: _write_report,
    Rates: _rates,
    Show: _show,
    List: _list,
    Bench: _bench,
}
_COMMANDS = (
    "evaluate",
    "reproduce",
    "sweep",
    "report",
    "rates",
    "show",
    "collect",
    "pretrain",
    "card",
    "theory",
    "list",
    "bench",
)
