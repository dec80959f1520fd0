"""A core install: what works without the packages of extras, and how what does not says what to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXTRAS = (
    *("transformers", "huggingface_hub", "accelerate", "tensorboard", "plotly"),
    *("sklearn", "river", "ray", "onnx", "onnxscript", "onnxruntime", "fastapi", "vowpalwabbit", "mabwiser"),
)
BLOCKED = f"import sys\nsys.modules.update(dict.fromkeys({EXTRAS!r}))\nfrom driftformer.cli import main\n"


def run(code: str, folder: Path) -> tuple[list[str], list[str]]:
    """The lines that a program prints in which none of these packages can be imported, and those of its errors."""
    done = subprocess.run([sys.executable, "-c", BLOCKED + code], capture_output=True, text=True, cwd=folder)
    return done.stdout.splitlines(), done.stderr.splitlines()


def test_the_core_works_without_any_extra(tmp_path: Path) -> None:
    lines, errors = run(
        """
import driftformer as df
main("evaluate high --horizon 9 --runs 3 --agents linucb master-linucb --out X".split())
main("sweep --environment high --vary b=0,0.1 --vary horizon=9 --runs 3 --out Y".split())
main("theory --only sigma2 --n 2".split())
main("show schedule --n 2 --out s.svg".split())
print(df.make_agent("adaptive-linucb").online().act([[1.0], [0.0]]) in (0, 1))
""",
        tmp_path,
    )
    assert not [line for line in errors if "rror" in line]
    assert (tmp_path / "X" / "regret.png").exists()
    assert (tmp_path / "Y" / "table.parquet").exists()
    assert lines[-2:] == ["figure: s.svg", "True"]


def test_what_needs_an_extra_says_so_in_one_line(tmp_path: Path) -> None:
    commands = {
        "evaluate high --agents policy:drift --runs 3": "transformers is not installed; pip install DRIFT[policies]",
        "card drift --out X": "transformers is not installed; pip install DRIFT[policies]",
        "pretrain tiny --out X": "accelerate is not installed; pip install DRIFT[train]",
        "evaluate table --data digits": "data is digits, which comes with scikit-learn; pip install DRIFT[data]",
        "evaluate table --data phishing": "data is phishing, which comes with river; pip install DRIFT[data]",
        "evaluate high --engine ray": "engine is 'ray', but Ray is not installed; pip install DRIFT[ray], or use local",
        "export drift --out d.onnx": "onnx is not installed; pip install DRIFT[export]",
    }
    code = "".join(f"try:\n    main({line.split()!r})\nexcept SystemExit as end:\n    pass\n" for line in commands)
    _, errors = run(code, tmp_path)
    said = [line.replace("'driftformer[", "DRIFT[").replace("]'", "]") for line in errors]
    assert said == [f"driftformer: error: {text}" for text in commands.values()]


def test_python_is_told_the_same_as_the_command_line(tmp_path: Path) -> None:
    _, errors = run("import driftformer as df\ndf.load_policy('drift')", tmp_path)
    name = "driftformer.errors.InputError"
    assert errors[-1] == f"{name}: transformers is not installed; pip install 'driftformer[policies]'"


def test_a_training_without_tensorboard_names_it(tmp_path: Path) -> None:
    code = "for name in ('transformers', 'huggingface_hub', 'accelerate'):\n    del sys.modules[name]\n"
    _, errors = run(code + "main('pretrain tiny --out X'.split())", tmp_path)
    assert errors == ["driftformer: error: tensorboard is not installed; pip install 'driftformer[train]'"]
