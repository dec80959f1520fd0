"""How each policy is made: frozen settings by name. Imports no torch, so that help texts come at once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from driftformer.errors import require_count, require_real, unknown_name


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that decides what a training gives, apart from the machine."""

    name: str
    summary: str
    worlds: str
    """Problems to learn from: a mixture of pretraining/worlds.py, or any environment by name."""
    start: str | None = None
    """A policy of the same sizes whose weights it begins with, by name or folder; without one, random weights."""
    form: Literal["paper", "pointer", "query", "tabular"] = "pointer"
    """Two tokens per round and a fixed number of arms, one token per round and any number of arms, statistics of every
    arm in any number of dimensions and any unit, or statistics of the actions of an MDP's state."""
    backbone: Literal["gpt2", "relu"] = "gpt2"
    """GPT-2, or the ReLU transformer of the paper's Section 2.2."""
    layers: int = 8
    """Layers L."""
    heads: int = 8
    """Attention heads M."""
    width: int = 256
    """Width D."""
    labels: str = "optimal"
    """Alg_B: optimal, behaviour, or the name of an agent."""
    behaviours: dict[str, float] = field(default_factory=lambda: {"random": 1.0})
    """Alg_0: agents and their shares."""
    own: float = 0.0
    """Share of trajectories that the policy itself plays, with the weights it has by then."""
    steps: int
    """Gradient steps on labels."""
    short: float = 0.0
    """Share of them, at first, on trajectories of an eighth, a quarter and half of the rounds: before much has changed
    the paper's form learns to tell arms apart; on whole trajectories that may take it thousands of steps."""
    tokens: int = 102_400
    """Tokens of one step: the batch is this divided by the tokens of a trajectory. In the query form every arm on offer
    is a token."""
    rate: float = 6e-4
    """Highest learning rate."""
    warmup: int = 300
    """Steps until it is reached; then it falls along a cosine to a twentieth."""
    weight_decay: float = 0.01
    """Weight decay of matrices."""
    clip: float = 1.0
    """Longest gradient."""
    generation: int = 16_384
    """Trajectories that are made at once."""
    shards: int = 8
    """Independent parts of every step's data, which processes share out among them."""
    tuning_steps: int = 0
    """Steps of fine-tuning on the policy's own regret."""
    tuning_rate: float = 2e-4
    """Highest learning rate of fine-tuning."""
    tuning_tokens: int = 409_600
    """Tokens that the policy plays in one step of fine-tuning: problems times rollouts times rounds."""
    tuning_updates: int = 1
    """Gradient steps on them, each on its share of the problems; in the query form on its share of the rounds, from
    the first phase on."""
    tuning_rollouts: int = 8
    """How often each problem is played in a step."""
    tuning_future: float = 0.3
    """Weight of the score-function term, on the regret still to come."""
    tuning_clip: float = 0.5
    """Longest gradient of fine-tuning."""
    tuning_sharpen: float = 1.0
    """What the logits are multiplied by before it: labels teach to sample from the posterior, regret asks for less."""
    seed: int = 0
    """Random seed."""

    @property
    def reads_statistics(self) -> bool:
        """Whether the policy sees statistics of what has happened, which it gathers while it plays."""
        return self.form in ("query", "tabular")

    def __post_init__(self) -> None:
        for name in ("steps", "tuning_steps", "warmup"):
            require_count(name, getattr(self, name), 0, most=10**9)
        for name in ("tokens", "generation", "tuning_tokens", "tuning_rollouts", "tuning_updates", "shards"):
            require_count(name, getattr(self, name), most=10**9)
        for name in ("rate", "tuning_rate", "clip", "tuning_clip", "tuning_sharpen"):
            require_real(name, getattr(self, name), 0.0, above=True)
        require_count("seed", self.seed, 0, most=2**40)
        for name in ("weight_decay", "tuning_future"):
            require_real(name, getattr(self, name), 0.0)
        for name in ("own", "short"):
            require_real(name, getattr(self, name), 0.0, most=1.0)


_PAPER = {"form": "paper", "layers": 16, "heads": 16, "width": 128}

_HIGH = Recipe(
    name="high",
    summary="the paper's High policy: four frequencies, labels are the optimal arm",
    worlds="high",
    **_PAPER,  # type: ignore[arg-type]
    behaviours={"random": 0.6, "linucb": 0.2, "thompson": 0.2},
    own=0.1,
    steps=6000,
    short=0.3,
)

_COSINE = Recipe(
    name="cosine",
    summary="the specialist: any frequency and phase, both arm modes, tuned on its own regret",
    worlds="cosine",
    own=0.25,
    steps=8500,
    tuning_steps=1050,
    tuning_sharpen=2.0,
)

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        replace(
            _HIGH,
            name="low",
            summary="the paper's Low policy: stationary rewards in [0, 1] only",
            worlds="low",
            steps=2000,
            generation=4096,
        ),
        _HIGH,
        replace(_HIGH, name="high-resampled", summary="as high, with arms that vary", worlds="high-resampled"),
        replace(
            _HIGH,
            name="high-master-linucb",
            summary="as high, with MASTER+LinUCB's arms as labels",
            labels="master-linucb",
            behaviours={"random": 0.5, "master-linucb": 0.5},
            steps=3000,
        ),
        replace(
            _HIGH,
            name="high-master-thompson",
            summary="as high, with MASTER+TS's arms as labels",
            start="high-master-linucb",  # these labels are nearly uniform: from random weights nothing was learned
            labels="master-thompson",
            behaviours={"random": 0.5, "master-thompson": 0.5},
            steps=2000,
            short=0.0,
            rate=3e-4,
        ),
        _COSINE,
        Recipe(
            name="drift",
            summary="the generalist: reads statistics of every arm, in any units, with any number of dimensions",
            worlds="broad",
            form="query",
            layers=4,
            heads=4,
            width=160,
            steps=400,
            tokens=2_048_000,
            rate=1.5e-3,
            warmup=50,
            tuning_steps=400,
            tuning_tokens=4_096_000,
            tuning_rate=1e-3,
            tuning_rollouts=16,
            tuning_updates=4,
        ),
        Recipe(
            name="mdp",
            summary="MDPs that drift: reads what a ledger of visits, rewards and moves says about every action",
            worlds="mdps",
            form="tabular",
            layers=1,
            heads=4,
            width=64,
            steps=100,
            tokens=384_000,
            rate=2e-3,
            warmup=10,
            tuning_steps=100,
            tuning_tokens=768_000,
            tuning_rate=2e-3,
            tuning_rollouts=16,
            tuning_updates=8,
        ),
        replace(
            _HIGH,
            name="paper",
            summary="as high with the paper's own budget: 200 epochs over 4 x 100,000 trajectories, hours on a GPU",
            own=0.0,
            short=0.0,
            steps=200 * 400_000 // 256,
        ),
        replace(
            _COSINE,
            name="tiny",
            summary="a policy for a toy world, in a minute or two on a laptop",
            worlds="tiny",
            layers=2,
            heads=2,
            width=32,
            steps=400,
            tokens=3_840,
            rate=3e-3,
            warmup=40,
            generation=1024,
            tuning_steps=60,
            tuning_tokens=15_360,
            tuning_rate=1e-3,
            tuning_sharpen=4.0,
        ),
    )
}


def recipe_of(name: str, **changes: Any) -> Recipe:
    """A named recipe with some settings changed; None leaves one as it is."""
    if name not in RECIPES:
        raise unknown_name("recipe", name, RECIPES)
    return replace(RECIPES[name], **{key: value for key, value in changes.items() if value is not None})
