"""The commands of `driftformer`, one file each: a frozen dataclass whose texts are the help, and what `run` does.

Importing them imports no torch, matplotlib or transformers, so that help answers at once: `run` imports what it needs.
To add a command, write its file and name it in `COMMANDS`.
"""

from __future__ import annotations

from driftformer.commands.bench import Bench
from driftformer.commands.card import Card
from driftformer.commands.collect import Collect
from driftformer.commands.evaluate import Evaluate
from driftformer.commands.list import List
from driftformer.commands.options import Command
from driftformer.commands.pretrain import Pretrain
from driftformer.commands.rates import Rates
from driftformer.commands.report import Report
from driftformer.commands.reproduce import Reproduce
from driftformer.commands.show import Show
from driftformer.commands.sweep import Sweep
from driftformer.commands.theory import Theory

COMMANDS: dict[str, type[Command]] = {
    "list": List,
    "evaluate": Evaluate,
    "sweep": Sweep,
    "reproduce": Reproduce,
    "report": Report,
    "rates": Rates,
    "theory": Theory,
    "show": Show,
    "collect": Collect,
    "pretrain": Pretrain,
    "card": Card,
    "bench": Bench,
}
