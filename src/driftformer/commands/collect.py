"""`driftformer collect`: labelled trajectories for pretraining."""

from dataclasses import dataclass
from pathlib import Path

from driftformer.commands.options import Command, Crew, Device, LogJson, Name, Seed, keywords
from driftformer.errors import InputError, require_package


@dataclass(frozen=True)
class Collect(Command):
    """Collect labelled trajectories for pretraining.

    For example:
        driftformer collect high --behaviours random=0.5 linucb=0.5 --out data/high

    Alg_0 plays, and Alg_B labels each round with the arm to imitate. Arms, rewards and labels are stored in shards with
    checksums; features are regenerated from the seed. A collection that was killed resumes where it stopped.

    This is optional: without --data, `driftformer pretrain` generates trajectories as it needs them.
    """

    crew: Crew
    worlds: Name
    """Problems to play: high, low, cosine, drift, tiny, or any environment by name."""
    trajectories: int = 100_000
    """Number of trajectories. The paper has 100,000 for Low, and as many for each of four frequencies for High."""
    behaviours: tuple[str, ...] = ("random=1",)
    """Alg_0: agents, policies or noisy-optimum, each with its share, as in random=0.5 linucb=0.5."""
    labels: str = "optimal"
    """Alg_B: optimal, behaviour, or an agent that sees the same history, such as master-linucb."""
    seed: Seed = 0
    out: Path = Path("data")
    """Folder for the manifest and the shards."""
    device: Device = "cpu"
    log_json: LogJson = False

    def run(self) -> None:
        require_package("accelerate", "train")
        from driftformer.evaluation.progress import Progress
        from driftformer.pretraining.dataset import collect_dataset
        from driftformer.simulation.rollout import check_device

        check_device(self.device)
        options = keywords(self, "worlds") | {"behaviours": _shares(self.behaviours)}
        with Progress(self.trajectories, f"collecting {self.worlds}", unit="trajectories") as bar:
            collect_dataset(worlds_name=self.worlds, **options, on_trajectories=bar.advance, on_event=bar.tell)
        print(f"{self.trajectories:,} trajectories are in {self.out}")


def _shares(written: tuple[str, ...]) -> dict[str, float]:
    """Shares by behaviour, from name=share. A name may have options, and thus an = of its own."""
    shares: dict[str, float] = {}
    for word in written:
        name, _, share = word.rpartition("=")
        if name in shares:
            raise InputError(f"behaviours: '{name}' is given twice; give it once")
        try:
            shares[name] = float(share if name else "")
        except ValueError:
            raise InputError(f"behaviours: '{word}' has no share; write name=share, as in random=0.5") from None
    return shares
