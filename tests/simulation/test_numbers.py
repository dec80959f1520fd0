"""A number is written the same way wherever it is shown."""

from __future__ import annotations

import math

import pytest

from driftformer.simulation.numbers import number, signed, with_error


@pytest.mark.parametrize(
    ("value", "text"),
    [(13.646, "13.6"), (13.65000001, "13.7"), (0.0, "0.0"), (-0.0, "0.0"), (0.0123, "0.012"), (0.999, "1.0"),
     (1.04, "1.0"), (1234.56, "1234.6"), (-3.14, "-3.1"), (-0.25, "-0.25")],
)  # fmt: skip
def test_a_number_has_one_decimal_or_two_digits_where_that_would_hide_it(value: float, text: str) -> None:
    assert number(value) == text
    assert math.isclose(float(text), value, rel_tol=0.05, abs_tol=0.05)


def test_a_difference_always_has_a_sign_and_the_digits_of_the_number() -> None:
    assert [signed(value) for value in (13.646, -13.646, 0.0, -0.012)] == ["+13.6", "-13.6", "+0.0", "-0.012"]


def test_a_single_run_has_no_error() -> None:
    assert with_error(13.646, 0.4) == "13.6 ± 0.4"
    assert with_error(13.646, None) == "13.6"
