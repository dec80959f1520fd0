"""`driftformer report`: one page that shows a reproduction."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from driftformer.commands.options import Command


@dataclass(frozen=True)
class Report(Command):
    """Rewrite report.html from stored results.

    For example:
        driftformer report runs/reproduce

    `driftformer reproduce` writes the report by itself; use this one after an update of driftformer. Nothing is
    computed again.
    """

    folder: Positional[Annotated[Path, arg(metavar="FOLDER")]]
    """The --out folder of `driftformer reproduce`."""

    def run(self) -> None:
        from driftformer.report import write_report
        from driftformer.report.payload import build_payload
        from driftformer.report.sections import headlines

        path = write_report(self.folder)
        for title, text in headlines(build_payload(self.folder)):
            print(f"{title}: {text}")
        figures = self.folder / "figures"
        print(f"\nreport: {path}" + (f"; figures: {figures}" if figures.is_dir() else ""))
