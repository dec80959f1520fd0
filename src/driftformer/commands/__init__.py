"""The commands of `driftformer`: each is a frozen dataclass whose texts are the help, and what `run` does.

Importing them imports no torch, matplotlib or transformers, so that help answers at once: `run` imports what it needs.
To add a command, write its file and name its class here, in the group under which the overview shows it.
"""

from driftformer.commands.bakeoff import Bakeoff
from driftformer.commands.bench import Bench
from driftformer.commands.choose import Choose
from driftformer.commands.collect import Collect
from driftformer.commands.completion import Completion
from driftformer.commands.evaluate import Evaluate
from driftformer.commands.export import Export
from driftformer.commands.leaderboard import Leaderboard
from driftformer.commands.list import List
from driftformer.commands.options import Command
from driftformer.commands.pretrain import Card, Pretrain
from driftformer.commands.replay import Replay
from driftformer.commands.report import Report
from driftformer.commands.reproduce import Rates, Reproduce
from driftformer.commands.show import Show
from driftformer.commands.sweep import Sweep
from driftformer.commands.theory import Theory

GROUPS: dict[str, tuple[type[Command], ...]] = {
    "try": (List, Evaluate, Show, Choose, Replay),
    "train": (Pretrain, Collect, Card, Export),
    "study": (Sweep, Reproduce, Report, Leaderboard, Bakeoff, Rates, Theory),
    "set up": (Completion, Bench),
}

COMMANDS: dict[str, type[Command]] = {kind.__name__.lower(): kind for kinds in GROUPS.values() for kind in kinds}
