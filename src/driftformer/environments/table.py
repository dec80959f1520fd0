"""Real data as a bandit: a row is a context, its classes are the arms, and the right one pays 1.

This is the accepted way to test contextual bandits on data (Bietti, Agarwal and Langford, "A contextual bandit
bake-off"): only the reward of the chosen arm is seen, but all are known, so regret is exact. `table_data.py` reads
tables, `table_bandit.py` plays them; nothing here imports either, so that help texts come at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from driftformer.errors import InputError, require_choice, require_count

if TYPE_CHECKING:
    from driftformer.environments.table_bandit import TableBandit

Order = Literal["shuffled", "stored"]
Change = Literal["none", "permute", "handover"]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of a table as contexts and its classes as arms, perhaps with labels that change their meaning."""

    name: ClassVar[str] = "table"

    data: str = "iris"
    """A built-in table (digits, wine, breast-cancer, iris, image-segments, phishing, bananas, shuttle; with drift of
    their own: airports, sea, agrawal, stagger, hyperplane, clusters) or a .csv or .parquet file; in Python also a pair
    of arrays, (features, classes) or (features, rewards of each arm)."""
    target: str = ""
    """The file's column of classes; the last one by default."""
    rewards: tuple[str, ...] = ()
    """Columns of the file with the reward of each arm, instead of classes."""
    drop: tuple[str, ...] = ()
    """Columns of the file to leave out, such as ids and dates."""
    fill: bool = False
    """Missing features count as the mean of their column; another column says where they were."""
    horizon: int = 0
    """Rounds T, a row each; 0 plays all rows."""
    order: Order = "shuffled"
    """Rows in an order of its own for each problem, or as they are stored, the same in all problems."""
    change: Change = "none"
    """Labels keep their meaning; they are permuted at once in some rounds; or gradually, from those rounds on."""
    changes: int = 1
    """How many permutations, in random rounds that differ from problem to problem."""
    times: tuple[int, ...] = ()
    """Rounds that bring a permutation in every problem; if given, `changes` is ignored."""
    width: int = 50
    """Hand-over: rounds in which old and new labels are mixed."""

    def build(self) -> TableBandit:
        from driftformer.environments.table_bandit import TableBandit
        from driftformer.environments.table_data import load

        require_choice("order", self.order, get_args(Order))
        require_choice("change", self.change, get_args(Change))
        require_count("horizon", self.horizon, 0)
        if self.change == "none" and self.times:
            raise InputError(f"times is {self.times!r:.60}, but change is none; give permute or handover")
        data = load(self.data, self.target, self.rewards, self.drop, self.fill)
        return TableBandit(
            data=data,
            horizon=self.horizon or len(data.contexts),
            order=self.order,
            changes=0 if self.change == "none" or self.times else self.changes,
            times=self.times,
            width=self.width if self.change == "handover" else 0,
        )
