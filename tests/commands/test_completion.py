"""What a shell offers after TAB."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from driftformer.cli import main
from driftformer.commands import COMMANDS
from driftformer.commands.complete import candidates
from driftformer.commands.completion import SCRIPTS


def test_commands_come_first() -> None:
    assert {*COMMANDS, "help"} <= set(candidates("driftformer "))
    assert candidates("driftformer ev") == ["evaluate"]


def test_an_environment_follows_evaluate_also_behind_options() -> None:
    assert {"high", "low", "bernoulli"} <= set(candidates("driftformer evaluate "))
    assert candidates("driftformer evaluate --runs 5 hi") == ["high"]
    assert candidates("driftformer show run hi") == ["high"]


def test_agents_and_policies_follow_agents_as_many_as_are_wanted() -> None:
    assert "master-linucb" in candidates("driftformer evaluate high --agents ")
    assert candidates("driftformer evaluate high --agents linucb policy:dr") == ["policy:drift"]
    assert candidates("driftformer show run high --agent kl") == ["kl-ucb"]


def test_options_of_an_agent_follow_its_at_sign() -> None:
    assert candidates("driftformer evaluate high --agents linucb@") == ["linucb@alpha=", "linucb@ridge="]
    assert candidates("driftformer evaluate high --agents linucb@alpha=2,r") == ["linucb@alpha=2,ridge="]
    assert "policy:drift@mode=" in candidates("driftformer evaluate high --agents policy:drift@")


def test_options_are_those_of_the_chosen_environment() -> None:
    assert candidates("driftformer evaluate high --ph") == ["--phase"]
    assert candidates("driftformer evaluate low --ph") == []


def test_words_with_a_short_list_of_values_offer_them() -> None:
    assert candidates("driftformer evaluate high --arm-mode ") == ["fixed", "resampled"]
    assert candidates("driftformer evaluate high --engine r") == ["ray"]
    assert candidates("driftformer completion z") == ["zsh"]
    assert candidates("driftformer list ag") == ["agents"]
    assert candidates("driftformer theory --only sig") == ["sigma1", "sigma2"]


def test_files_and_numbers_are_left_to_the_shell() -> None:
    assert candidates("driftformer evaluate high --out ") == []
    assert candidates("driftformer evaluate high --runs ") == []
    assert candidates("driftformer nonsense ") == []


def test_a_shell_that_breaks_words_gets_only_what_replaces_the_last_piece() -> None:
    assert candidates("driftformer evaluate high --agents policy:dr", "dr") == ["drift"]
    assert candidates("driftformer evaluate high --agents linucb@al", "@al") == ["@alpha="]


@pytest.mark.parametrize(
    ("line", "ending", "offered"),
    [("driftformer eva", "eva", "evaluate"), ("driftformer evaluate high --agents linucb policy:dr", "dr", "drift")],
)
def test_bash_completes_with_the_script_it_is_given(line: str, ending: str, offered: str) -> None:
    if (bash := shutil.which("bash")) is None:
        pytest.skip("there is no bash")
    script = f"""
driftformer() {{ {sys.executable} -m driftformer "$@"; }}
eval "$(driftformer completion bash)"
COMP_LINE="{line}" COMP_POINT={len(line)} _driftformer driftformer "{ending}" ""
echo "${{COMPREPLY[*]}}"
complete -p driftformer
"""
    found = subprocess.run([bash, "-c", script], capture_output=True, text=True, check=True, env=os.environ)
    assert found.stdout.splitlines() == [offered, "complete -o default -F _driftformer driftformer"]


@pytest.mark.parametrize("shell", SCRIPTS)
def test_every_shell_can_read_its_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["completion", shell])
    script = capsys.readouterr().out
    assert "driftformer __complete" in script
    if (program := shutil.which(shell)) is None:
        return
    subprocess.run([program, "--no-execute" if shell == "fish" else "-n"], input=script, text=True, check=True)
