"""What many tests need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from driftformer.randomness import one_thread


@pytest.fixture(autouse=True)
def single_thread() -> Iterator[None]:
    """Rollouts compute with one thread anyway; tests that drive agents by hand should too. What a test draws without a
    generator of its own is the same every time.
    """
    torch.manual_seed(0)
    with one_thread(), torch.inference_mode():
        yield


pytest_plugins = ["tests.reproduction", "tests.browser"]
