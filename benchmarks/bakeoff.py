"""`make bakeoff`: the bake-off of docs/bakeoff.md, with other libraries' agents, as the page, its figure and the report
show it. What runs/bakeoff holds is not played again, so after a change of one agent only that one is.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from benchmarks.compare import put
from driftformer.experiments.bakeoff import BakeOff, bakeoff, draw, markdown
from driftformer.experiments.reproduce import KEPT
from driftformer.storage.files import write_json

PAGE = Path(__file__).parent.parent / "docs/bakeoff.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/bakeoff"))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="also put tables and figure into docs and the report")
    options = parser.parse_args()
    found = bakeoff(BakeOff(), options.out, workers=options.workers)
    draw(found, options.out)
    lines = markdown(found)
    print("\n".join(lines))
    if options.write:
        put("bakeoff", lines, PAGE)
        shutil.copy(options.out / "bakeoff.png", PAGE.parent / "images/bakeoff.png")
        kept = found.to_json()
        write_json(
            KEPT / "bakeoff.json", {key: kept[key] for key in ("settings", "agents", "missing", "tables", "wins")}
        )


if __name__ == "__main__":
    main()
