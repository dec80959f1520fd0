"""What many tests need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from driftformer.simulation.rollout import one_thread


@pytest.fixture(autouse=True)
def single_thread() -> Iterator[None]:
    """Rollouts compute with one thread anyway; tests that drive agents by hand should too."""
    with one_thread():
        yield


pytest_plugins = ["tests.reproduction"]
