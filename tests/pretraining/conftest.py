"""Training needs gradients, which other tests do without."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def gradients(single_thread: None) -> Iterator[None]:
    with torch.inference_mode(False):
        yield
