"""`driftformer report`: a page for whatever a folder holds."""

import os
import sys
import webbrowser
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from driftformer.commands.options import Command


@dataclass(frozen=True)
class Report(Command):
    """Write a page about stored results: who wins, and by how much.

    For example:
        driftformer report runs/high
        driftformer report runs/grid --open

    FOLDER is the --out of `driftformer evaluate`, `sweep` or `reproduce`. The page is FOLDER/report.html, a single file
    that works offline and can be moved or mailed. Nothing is computed again.
    """

    folder: Positional[Path]
    """The folder with the results."""
    open: bool = False
    """Open the page where there is a screen."""

    def run(self) -> None:
        from driftformer.report import headlines, write_report

        path = write_report(self.folder)
        for title, text in headlines(self.folder):
            print(f"{title}: {text}" if title else text)
        figures = self.folder / "figures"
        print(f"\nreport: {path}" + (f"; figures: {figures}" if figures.is_dir() else ""))
        if self.open and has_screen():
            webbrowser.open(path.absolute().as_uri())


def has_screen() -> bool:
    """Whether somebody sits before a browser; without a display, one in the terminal would take it over."""
    graphical = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    return graphical and sys.stdout.isatty()
