"""Tables in a narrow terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from driftformer.evaluation.fitting import WITHOUT_TERMINAL, FittingTable, terminal


def printed(width: int) -> str:
    notes = {"": "lower is better", "speed": "speed in rounds", "std": "std between runs"}
    table = FittingTable("a title", spared=("speed", "std"), notes=notes)
    for heading in ("agent", "regret", "std", "speed"):
        table.add_column(heading)
    table.add_row("policy:high-master-thompson *", "336.3 ± 11.6", "93.0", "834/s")
    page = io.StringIO()
    Console(file=page, width=width).print(table, crop=False)
    return page.getvalue()


@pytest.mark.parametrize(
    ("width", "headings"),
    [(80, ["agent", "regret", "std", "speed"]), (55, ["agent", "regret", "std"]), (50, ["agent", "regret"])],
)
def test_columns_are_left_out_in_their_order_where_there_is_no_room(width: int, headings: list[str]) -> None:
    lines = printed(width).splitlines()
    (head,) = (line for line in lines if line.split()[:1] == ["agent"])
    assert head.split() == headings
    assert max(map(len, lines)) <= width


def test_the_caption_speaks_only_of_columns_that_are_there() -> None:
    assert "speed in rounds" in printed(90)
    assert "speed in rounds" not in printed(55)
    assert "lower is better" in printed(55)


def test_a_name_is_never_broken_even_where_nothing_is_left_to_spare() -> None:
    assert "policy:high-master-thompson *   336.3 ± 11.6" in printed(20)


def test_a_file_or_a_pipe_has_room_for_all_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert terminal().width == WITHOUT_TERMINAL
    monkeypatch.setenv("COLUMNS", "80")
    assert terminal().width == 80
