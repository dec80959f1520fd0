"""What can be said on the command line: each command is a dataclass, its texts are the help. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Union

from tyro.conf import Positional, UseAppendAction, arg, subcommand

from driftformer.environments.presets import PRESETS, Preset
from driftformer.experiments.base import ScaleName
from driftformer.experiments.paper import PAPER

if TYPE_CHECKING:
    _Environment = Preset
else:
    _Environment = Union[tuple(Annotated[preset, subcommand(name)] for name, preset in PRESETS.items())]  # noqa: UP007

_Folder = Annotated[Path | None, arg(metavar="FOLDER")]


@dataclass(frozen=True)
class Crew:
    """Who computes. The numbers are the same, bit for bit, whoever does."""

    workers: Annotated[int | None, arg(metavar="INT")] = None
    """Processes to compute with, one thread each: 1 if not said, with --engine ray every core of the cluster."""
    engine: Literal["local", "ray"] = "local"
    """This machine's processes, or a Ray cluster (pip install 'driftformer[ray]'), where lost workers are replaced."""
    address: Annotated[str | None, arg(metavar="HOST:PORT")] = None
    """The Ray cluster to join; auto finds the one this machine is part of. Without it, one is started here and ends
    with the command."""


_CREW = Crew()

_LogJson = Annotated[bool, arg(help="Tell progress, retries and errors as JSON lines on standard error.")]


@dataclass(frozen=True)
class Evaluate:
    """Compare agents on one environment by their dynamic regret.

    Every agent meets the same problems, arms and noise, so differences between agents are paired. Name an environment,
    then any options of it and of the evaluation, in any order:

        driftformer evaluate high --b 0.018 --agents linucb thompson oracle --runs 200 --out runs/high

        driftformer evaluate jumps --changes 8 --arm-mode resampled --agents linucb@alpha=0.5 linucb@alpha=2

    With --out the results stay in a folder: one small file for each agent and 64 runs, and of the latest call a
    summary.json, a timing.json and two figures. Ask again for more runs or agents and only what is missing is computed;
    a killed run goes on where it stopped, with the same numbers bit for bit; events.jsonl tells what happened. More
    machines help by --engine ray --address HOST:PORT. `driftformer list` shows all environments
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
    device: str = "cpu"
    """cpu or cuda. A GPU has its own random numbers, so its results are kept apart."""
    trajectories: bool = False
    """Also keep every arm, reward, suboptimality and auxiliary value (needs --out)."""
    log_json: _LogJson = False
    crew: Crew = _CREW


@dataclass(frozen=True)
class Reproduce:
    """Run the paper's experiments, or others beyond it, and write a report that shows them.

        driftformer reproduce                          the paper's Section 5, in a few minutes
        driftformer reproduce rivals frequency-sweep   others by name, or all
        driftformer reproduce --scale paper --workers 2 --out runs/paper

    Each experiment is a frozen setting (see `driftformer list`). Results stay under --out: a second call only redraws,
    a killed one goes on, and further experiments join those that are there. The report is OUT/report.html.
    """

    experiments: Positional[tuple[str, ...]] = tuple(experiment.name for experiment in PAPER)
    """Which ones; `all` for all."""
    scale: ScaleName = "quick"
    """How many problems all agents play: quick (64) or paper (512; 192 where there are more than 400 rounds)."""
    runs: int | None = None
    """Problems to play, instead of the scale's number."""
    seed: int = 0
    """Root of all randomness."""
    pretrain: bool = False
    """Train the policies first, as their recipes say, instead of playing the shipped ones: for a GPU."""
    out: Path = Path("runs/reproduce")
    """Folder for results, figures and the report."""
    device: str = "cpu"
    """cpu or cuda."""
    log_json: _LogJson = False
    crew: Crew = _CREW


@dataclass(frozen=True)
class Sweep:
    """Play agents over a grid of settings: a tidy table, and a heatmap or lines.

        driftformer sweep --environment high --vary b=0,0.01,0.018 --agents linucb thompson --out runs/b

        driftformer sweep --environment jumps --vary changes=1,4,16 --vary agent.alpha=0.5,1,2 --vary horizon=500
            --agents linucb discounted-linucb random --runs 400 --out runs/alpha

        driftformer sweep --grid grid.yaml --engine ray --out runs/grid

    --vary takes a field of the environment (see driftformer evaluate high --help) or, behind agent., an option of
    agents (see driftformer list); agents without that option play once. A field with a single value is set, not varied.
    A file says the same: environment: high, agents: [linucb], vary: {b: [0, 0.01], agent.alpha: [1, 2]}, runs: 200.

    OUT/table.parquet has a row for each cell and agent: its settings, regret_mean, regret_stderr, a 95% interval, runs,
    rounds_per_cpu_second. A second call computes only what is missing; one with more values keeps what is there.
    """

    grid: Annotated[Path | None, arg(metavar="FILE")] = None
    """A YAML file with the grid, instead of --environment, --vary and --agents."""
    environment: str | None = None
    """The world to play in."""
    vary: Annotated[tuple[str, ...], UseAppendAction, arg(metavar="NAME=VALUE,VALUE")] = ()
    """A field or agent.option and its values; may be given several times."""
    agents: tuple[str, ...] = ()
    """Agents to play (linucb if none is named)."""
    runs: Annotated[int | None, arg(metavar="INT")] = None
    """Independent problems of each row (200 if not said)."""
    seed: Annotated[int | None, arg(metavar="INT")] = None
    """Root of all randomness, the same for all cells (0 if not said)."""
    out: Path = Path("runs/sweep")
    """Folder for results, table and figure."""
    log_json: _LogJson = False
    crew: Crew = _CREW


@dataclass(frozen=True)
class WriteReport:
    """Write report.html for a folder of `driftformer reproduce`, from the results that lie there."""

    folder: Positional[Path]
    """The --out of `driftformer reproduce`."""


@dataclass(frozen=True)
class Collect:
    """Collect labelled trajectories into a folder (Alg_0 plays, Alg_B labels).

    driftformer collect high --trajectories 400000 --behaviours random=0.5 linucb=0.5 --labels optimal --out data/high

    Arms, rewards and labels are stored in shards with checksums; features are made again from the seed. A killed
    collection goes on where it stopped. Training needs no such folder: by default it makes its data while it runs.
    """

    worlds: Positional[str]
    """Which problems: high, low, cosine, drift or tiny."""
    trajectories: int = 100_000
    """How many; the paper has 100,000 for Low and 100,000 for each of four frequencies for High."""
    behaviours: tuple[str, ...] = ("random=1",)
    """Alg_0: agents and their shares, as in random=0.5 linucb=0.5; noisy-optimum and policy:NAME are behaviours too."""
    labels: str = "optimal"
    """Alg_B: optimal, behaviour, or an agent that is led along the same histories, such as master-linucb."""
    seed: int = 0
    """Root of all randomness."""
    out: Path = Path("data")
    """Folder for manifest and shards."""
    device: str = "cpu"
    """cpu or cuda; what is collected on one kind can be trained on only there."""
    log_json: _LogJson = False
    crew: Crew = _CREW


@dataclass(frozen=True)
class Pretrain:
    """Train a policy: on labels, then, where the recipe says so, on its own regret.

    driftformer pretrain tiny --out runs/tiny

    A recipe fixes everything (`driftformer list` shows them); the options change single settings. Training can be
    stopped at any time: the same command goes on from the last saved state. OUT/best is the policy with the least
    regret (with labels of an expert, the latest); play it as policy:OUT/best.
    """

    recipe: Positional[str]
    """Which policy to make."""
    out: Path
    """Folder for the state, the log, TensorBoard's files and the best policy."""
    data: _Folder = None
    """A folder of `driftformer collect`; without it, trajectories are made while they are used."""
    device: str = "cpu"
    """cpu or cuda."""
    max_minutes: float = 1e9
    """Stop after this long, resumably."""
    evaluate_every: int = 500
    """Steps between two measurements of regret; a tenth of it while tuning."""
    log_json: _LogJson = False
    seed: int | None = None
    """Root of all randomness."""
    start: str | None = None
    """A policy of the same sizes to begin with, by name or folder."""
    form: Literal["paper", "pointer"] | None = None
    """Two tokens a round and a fixed number of arms, or one token and any number."""
    backbone: Literal["gpt2", "relu"] | None = None
    """GPT-2, or the paper's ReLU transformer of Section 2.2."""
    layers: int | None = None
    """Layers L."""
    heads: int | None = None
    """Attention heads M."""
    width: int | None = None
    """Width D."""
    labels: str | None = None
    """Alg_B: optimal, behaviour, or an agent."""
    steps: int | None = None
    """Steps on labels."""
    tokens: int | None = None
    """Tokens of a step."""
    rate: float | None = None
    """Highest learning rate."""
    own: float | None = None
    """Share of trajectories that the policy plays itself."""
    short: float | None = None
    """Share of the steps, at first, on shorter trajectories."""
    tuning_steps: int | None = None
    """Steps on regret."""
    tuning_tokens: int | None = None
    """Tokens that are played in one of those."""
    tuning_rate: float | None = None
    """Highest learning rate of those."""
    tuning_future: float | None = None
    """Weight of the regret still to come."""
    tuning_sharpen: float | None = None
    """What the logits are multiplied by before those."""
    shards: int | None = None
    """Parts of every step's data, which processes share out."""


@dataclass(frozen=True)
class Card:
    """Measure a policy and write its card: regret tables, closeness to its teacher, how it was made.

    driftformer card cosine --out cards/cosine

    With the defaults this gives the figures of the shipped cards again.
    """

    policy: Positional[str]
    """A shipped policy's name, or a folder."""
    out: Path
    """Folder for card.md and card.json, and for the evaluations they rest on."""
    runs: int = 200
    """Problems of each evaluation."""
    seed: int = 0
    """Root of all randomness."""
    workers: int = 1
    """Processes to compute with."""


@dataclass(frozen=True)
class Theory:
    """Check the paper's constructions: explicit weights against the exact algorithm, a line of a table each.

        driftformer theory                                       all of them, in half a minute
        driftformer theory --only sigma2 --n 6                   one of them, for blocks of 64 rounds
        driftformer theory --only sigma2 --plot schedule.png     the scheduler of one block, from its weights
        driftformer theory --only linucb --plot depth.png        how deep a network must be to be LinUCB

    docs/theory.md is the guided tour.
    """

    only: str | None = None
    """One check by its name."""
    n: int = 4
    """Order of the block: 2^n rounds."""
    plot: _Folder = None
    """A picture to draw, .png or .svg: of the scheduler; with --only linucb or product of errors against sizes, with
    --only noncontinuous of all layers."""


@dataclass(frozen=True)
class List:
    """Show the environments, agents, policies, recipes and experiments that can be named."""


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
