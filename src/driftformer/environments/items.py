"""Rows of a table as items: in each round some are on offer, each with features of its own, and one is chosen.

What a shop, a feed or a list of candidates looks like. `items_bandit.py` plays it; nothing here imports it, so that
help texts come at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from driftformer.environments.table import Change
from driftformer.errors import InputError, require_choice

if TYPE_CHECKING:
    from driftformer.environments.items_bandit import ItemsBandit

Pays = Literal["class", "linear"]


@dataclass(frozen=True, kw_only=True)
class Items:
    """Rows of a table as items on offer; those of the wanted class pay, or all by a linear law of their features."""

    name: ClassVar[str] = "items"

    data: str = "iris"
    """A built-in table or a file with classes, as in the environment table."""
    target: str = ""
    """The file's column of classes; the last one by default."""
    drop: tuple[str, ...] = ()
    """Columns of the file to leave out, such as ids and dates."""
    fill: bool = False
    """Missing features count as the mean of their column; another column says where they were."""
    horizon: int = 1000
    """Rounds T."""
    arms: int = 5
    """Items on offer in each round: random rows of the table."""
    pays: Pays = "class"
    """An item of the wanted class pays 1; or every item pays ⟨x, w⟩ with noise, w random for each problem."""
    noise: float = 0.5
    """Linear: the standard deviation of the noise; that of what items are worth is about 1."""
    change: Change = "none"
    """What is wanted stays; it changes at once in some rounds; or gradually, from those rounds on."""
    changes: int = 4
    """How many changes, in random rounds that differ from problem to problem."""
    times: tuple[int, ...] = ()
    """Rounds that bring a change in every problem; if given, `changes` is ignored."""
    width: int = 50
    """Hand-over: rounds in which old and new are mixed."""

    def build(self) -> ItemsBandit:
        from driftformer.environments.items_bandit import ItemsBandit
        from driftformer.environments.table_data import load

        require_choice("pays", self.pays, get_args(Pays))
        require_choice("change", self.change, get_args(Change))
        if self.change == "none" and self.times:
            raise InputError(f"times is {self.times!r:.60}, but change is none; give permute or handover")
        return ItemsBandit(
            data=load(self.data, self.target, drop=self.drop, fill=self.fill),
            horizon=self.horizon,
            arms=self.arms,
            pays=self.pays,
            noise=self.noise if self.pays == "linear" else 0.0,
            changes=0 if self.change == "none" or self.times else self.changes,
            times=self.times,
            width=self.width if self.change == "handover" else 0,
        )
