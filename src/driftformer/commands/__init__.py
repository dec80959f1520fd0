"""The commands of `driftformer`: each is a frozen dataclass whose texts are the help, and what `run` does.

Importing them imports no torch, matplotlib or transformers, so that help answers at once: `run` imports what it needs.
To add a command, write its file and name its class here.
"""

from driftformer.commands.bakeoff import Bakeoff
from driftformer.commands.bench import Bench
from driftformer.commands.choose import Choose
from driftformer.commands.collect import Collect
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

_KINDS = (
    List,
    Evaluate,
    Sweep,
    Report,
    Leaderboard,
    Choose,
    Replay,
    Bakeoff,
    Reproduce,
    Rates,
    Theory,
    Show,
    Collect,
    Pretrain,
    Card,
    Export,
    Bench,
)

COMMANDS: dict[str, type[Command]] = {kind.__name__.lower(): kind for kind in _KINDS}
