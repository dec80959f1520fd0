"""`driftformer report`: one page that shows a reproduction."""

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from driftformer.commands.options import Command


@dataclass(frozen=True)
class Report(Command):
    """Rewrite report.html from stored results.

    For example, after an update of driftformer:
        driftformer report runs/reproduce

    Nothing is computed again. `driftformer reproduce` writes the report by itself.
    """

    folder: Positional[Path]
    """The --out folder of `driftformer reproduce`."""

    def run(self) -> None:
        from driftformer.report import headlines, write_report

        path = write_report(self.folder)
        for title, text in headlines(self.folder):
            print(f"{title}: {text}")
        figures = self.folder / "figures"
        print(f"\nreport: {path}" + (f"; figures: {figures}" if figures.is_dir() else ""))
