"""`driftformer export`: a policy for services without torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from driftformer.commands.options import Command, Name
from driftformer.errors import require_package


@dataclass(frozen=True)
class Export(Command):
    """Write a policy as an ONNX file.

    For example:
        driftformer export drift --out drift.onnx
        driftformer export runs/tiny/best --dim 8 --out tiny.onnx

    The file holds one graph, (features, played, reward, state) -> (probabilities, next state), for any number of arms
    and of problems at once. It needs numpy and onnxruntime only; docs/policies.md has a player of 20 lines. To write
    it: pip install 'driftformer[export]'.
    """

    policy: Name
    """Name of a shipped policy, or a folder."""
    out: Annotated[Path, arg(metavar="FILE")]
    """File to write, .onnx."""
    dim: Annotated[int | None, arg(metavar="INT", help_behavior_hint="(default: that of the policy's training)")] = None
    """Features of each arm. Fewer are filled up with zeros by who calls, which changes nothing."""

    def run(self) -> None:
        require_package("onnx", "export")
        from driftformer.models.export import export_policy

        about = export_policy(self.policy, self.out, self.dim)
        size = self.out.stat().st_size / 1e6
        said = ", ".join(f"{name} {value}" for name, value in about.items())
        print(f"{self.out}: {size:.1f} MB ({said})")
