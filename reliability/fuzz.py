"""Hostile input, for as long as one likes: the tests of tests/hostile with many more examples each.

    python -m reliability.fuzz --examples 20000
    python -m reliability.fuzz --examples 20000 --only online

Each example is a file cut off, flipped, made up or tampered with, a manifest or config with other entries, or a call of
`online()` with nonsense; it must load as it was written, or be refused with an InputError.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=20_000, help="for each of the tests")
    parser.add_argument("--only", default="", help="tests whose names contain this")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    root = Path(__file__).parent.parent
    command = [sys.executable, "-m", "pytest", "-v", f"-n{options.processes}", "tests/hostile", "-k", options.only]
    environment = {**os.environ, "DRIFTFORMER_EXAMPLES": str(options.examples)}
    sys.exit(subprocess.run(command, cwd=root, env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
