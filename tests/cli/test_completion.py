"""Shell completion, by the protocol that the installed scripts speak; and that it loads little."""

import json
import os
import subprocess
import sys

import pytest
import typer.main

from discreet.cli.program import app

COMMANDS = set(typer.main.get_command(app).commands)
SHELLS = ("bash", "zsh", "fish")


def command(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "discreet.cli", *arguments],
        env=os.environ | environment, capture_output=True, text=True,
    )  # fmt: skip


def completed(shell, line):
    """What a shell is offered for the last word of a line."""
    words = line.split(" ")
    done = command(
        _DISCREET_COMPLETE=f"complete_{shell}", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1),
        _TYPER_COMPLETE_ARGS=line, _TYPER_COMPLETE_FISH_ACTION="get-args", COLUMNS="40",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.rstrip("\n").splitlines()
    if shell == "zsh":
        text = done.stdout.strip()
        assert text.startswith("_arguments '*: :((")
        lines = text.removeprefix("_arguments '*: :((").removesuffix("))'").splitlines()
        return {line.split('"')[1] for line in lines}
    return {line.partition("\t")[0] for line in lines}


@pytest.mark.parametrize("shell", SHELLS)
def test_commands_options_choices_and_problems_are_completed(shell):
    assert completed(shell, "discreet ") == COMMANDS
    assert completed(shell, "discreet simu") == {"simulate"}
    assert completed(shell, "discreet simulate --model ") == {
        "none", "joint", "shuffled", "local", "random",
    }  # fmt: skip
    assert completed(shell, "discreet forecast --model l") == {"local"}
    assert completed(shell, "discreet forecast --problem s") == {"synthetic", "styblinski-tang"}
    assert {"--json", "--plan", "--set"} <= completed(shell, "discreet simulate --")


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", ".bash_completions/discreet.sh"),
        ("zsh", ".zfunc/_discreet"),
        ("fish", ".config/fish/completions/discreet.fish"),
    ],
)
def test_completion_is_installed_for_a_shell(tmp_path, shell, place):
    """A test has no shell for a parent, so that it must be named."""
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1", "HOME": str(tmp_path)}
    done = command("--install-completion", shell, **named)
    assert done.returncode == 0
    shown = command("--show-completion", shell, **named)
    assert f"_DISCREET_COMPLETE=complete_{shell}" in shown.stdout
    assert (tmp_path / place).read_text().strip() == shown.stdout.strip()


def test_completion_loads_neither_numpy_nor_scipy_nor_matplotlib():
    code = "import json, sys, discreet.cli.program; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert "discreet.cli.simulate" in loaded
    assert not loaded & {"numpy", "scipy", "matplotlib", "joblib", "discreet.agreement.plan"}
