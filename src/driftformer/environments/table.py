"""placeholder"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from driftformer.environments.presets import Linear


@dataclass(frozen=True, kw_only=True)
class Table(Linear):
    """placeholder"""

    name: ClassVar[str] = "table"
