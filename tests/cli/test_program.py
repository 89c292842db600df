"""The command line: what it prints, where, and how it fails."""

import json
import os
import subprocess
import sys

import pytest
import typer.main

from discreet import JointDP, Study
from discreet.cli.program import app

KEYS = {
    "problem", "model", "protect", "epsilon", "delta", "rounds", "runs", "regret_mean",
    "regret_sem", "regrets", "regret_curve", "features", "kernel_error", "noise_std",
    "seconds_per_round",
}  # fmt: skip

JOINT = ["--problem", "synthetic", "--model", "joint"]
EPSILON_1 = ["--epsilon", "1", "--delta", "1e-6"]

OWN = """
import numpy as np
from discreet import Box

class Parabola:
    domain = Box({"dose": (0, 10)})
    rewards = (0.0, 1.0)

    def decision_set(self, rng):
        return None

    def mean(self, x):
        return 1 - (x[:, 0] - 7) ** 2 / 100

    def reward(self, x, rng):
        return float(self.mean(x[None, :])[0])

parabola = Parabola()
"""


# -- simulate


@pytest.mark.parametrize("model", ["none", "random"])
def test_json_is_one_object_with_every_key_and_nothing_else_on_the_output(run, model):
    code, out, err = run(
        "simulate", "--problem", "camelback", "--model", model, "--rounds", 30, "--runs", 2,
        "--seed", 5, "--json",
    )  # fmt: skip
    assert code == 0
    assert out.count("\n") == 1
    found = json.loads(out)
    assert found.keys() >= KEYS
    assert (found["problem"], found["model"]) == ("camelback", model)
    assert (found["rounds"], found["runs"], len(found["regrets"])) == (30, 2, 2)
    assert found["protect"] == "decisions"
    assert found["epsilon"] is found["delta"] is None
    assert found["regret_mean"] == pytest.approx(sum(found["regrets"]) / 2)
    assert "rounds" in err  # the progress bar


def test_a_seed_makes_a_simulation_reproducible(run):
    results = []
    for seed in (3, 3, 4):
        _, out, _ = run("simulate", "--rounds", 30, "--runs", 2, "--seed", seed, "--json")
        results.append(json.loads(out))
    assert results[0]["regrets"] == results[1]["regrets"] != results[2]["regrets"]
    assert results[0]["private"] is False


@pytest.mark.parametrize(
    "options",
    [
        ["--problem", "synthetic", "--encoding", "fourier"],
        ["--problem", "camelback", "--encoding", "reward"],
        ["--problem", "camelback", "--features", "hermite"],
        ["--problem", "michalewicz", "--model", "random"],
        ["--problem", "styblinski-tang"],
    ],
    ids=lambda options: " ".join(options[1:]),
)
def test_every_problem_and_option_plays(run, options):
    code, out, _ = run("simulate", *options, "--rounds", 12, "--runs", 1, "--json")
    assert code == 0
    assert json.loads(out)["regret_mean"] > 0


def test_without_json_there_is_a_table(run):
    code, out, _ = run("simulate", "--rounds", 12, "--runs", 2)
    assert code == 0
    assert "camelback, none" in out
    assert "±" in out


def test_a_problem_beside_the_user_is_played(run, tmp_path):
    (tmp_path / "own_problem.py").write_text(OWN)
    code, out, _ = run(
        "simulate", "--problem", "own_problem:parabola", "--rounds", 40, "--runs", 1, "--json"
    )
    assert code == 0
    assert json.loads(out)["problem"] == "own_problem:parabola"


@pytest.mark.parametrize(
    "options",
    [
        ["--problem", "camelback"],
        ["--problem", "synthetic"],
        ["--problem", "synthetic", "--encoding", "gram"],
        ["--problem", "synthetic", "--protect", "rewards"],
        ["--problem", "camelback", "--protect", "rewards", "--encoding", "fourier"],
    ],
    ids=lambda options: " ".join(options[1:]),
)
def test_a_private_simulation_says_what_it_promised_and_how_much_noise_that_took(run, options):
    private = ["--model", "joint", "--epsilon", "2", "--delta", "0.01"]
    code, out, err = run("simulate", *options, *private, "--rounds", 20, "--runs", 1, "--json")
    assert (code, out.count("\n")) == (0, 1)
    found = json.loads(out)
    assert found.keys() >= KEYS
    assert (found["model"], found["epsilon"], found["delta"]) == ("joint", 2.0, 0.01)
    assert found["protect"] == ("rewards" if "rewards" in options else "decisions")
    assert found["noise_std"] > 0
    assert found["private"] is False  # it comes from a seed
    assert "Warning" not in err


# -- errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--problem", "camel"], "one of synthetic, camelback, styblinski-tang, michalewicz"),
        (["--problem", "no_such_module:thing"], "No module named 'no_such_module'"),
        (["--problem", "builtins:str"], "an object with domain, rewards, decision_set"),
        (["--problem", "json:nothing"], "no attribute 'nothing'"),
        (["--model", "joint"], "--epsilon, --delta: expected both with --model joint"),
        (["--model", "joint", "--epsilon", "1"], "expected both with --model joint"),
        (["--model", "joint", "--delta", "1e-6"], "expected both with --model joint"),
        ([*JOINT, "--epsilon", "0", "--delta", "1e-6"], "epsilon: expected"),
        ([*JOINT, "--epsilon", "-1", "--delta", "1e-6"], "epsilon: expected"),
        ([*JOINT, "--epsilon", "nan", "--delta", "1e-6"], "epsilon: expected"),
        ([*JOINT, "--epsilon", "inf", "--delta", "1e-6"], "epsilon: expected"),
        ([*JOINT, "--epsilon", "1", "--delta", "0"], "delta: expected"),
        ([*JOINT, "--epsilon", "1", "--delta", "-0.1"], "delta: expected"),
        ([*JOINT, "--epsilon", "1", "--delta", "nan"], "delta: expected"),
        ([*JOINT, "--epsilon", "2", "--delta", "1"], "delta: expected a probability below 1"),
        ([*JOINT, "--epsilon", "2", "--delta", "1.5"], "delta: expected a probability below 1"),
        ([*JOINT, "--epsilon", "1e-6", "--delta", "0.5"], "are the two swapped?"),
        ([*JOINT, *EPSILON_1, "--encoding", "announced"], "'announced' publishes the actions"),
        (["--model", "local"], "--epsilon: expected a number with --model local"),
        (["--model", "local", "--epsilon", "1000"], "epsilon: expected between"),
        (
            ["--model", "local", *EPSILON_1, "--protect", "rewards"],
            "--protect: expected nothing with --model local",
        ),
        (["--model", "local", "--epsilon", "-1", "--delta", "0.1"], "epsilon: expected"),
        (["--model", "nonsense"], "nonsense"),
        (["--epsilon", "1"], "--epsilon, --delta: expected neither with --model none"),
        (["--delta", "1e-6"], "--epsilon, --delta: expected neither with --model none"),
        (["--model", "random", "--epsilon", "1"], "neither with --model random"),
        (["--rounds", "0"], "rounds"),
        (["--runs", "0"], "runs"),
        (["--seed", "-1"], "seed"),
        (["--rounds", "many"], "rounds"),
        (["--encoding", "fourier", "--features", "hermite"], "grid features for 'fourier'"),
        (["--problem", "synthetic", "--encoding", "reward"], "'gram' or 'fourier' here"),
        (["--nonsense"], "nonsense"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_request_ends_with_code_2_and_one_clear_message(run, arguments, words):
    options = {"--rounds": "10", "--runs": "1"}
    defaults = [part for name in options if name not in arguments for part in (name, options[name])]
    code, out, err = run("simulate", *defaults, *arguments, "--json")
    assert (code, out) == (2, "")
    assert words in err
    assert err.startswith("discreet: ")
    assert (err.count(words), err.count("\n")) == (1, 1)


def test_a_figure_that_cannot_be_written_ends_with_code_2(run, tmp_path):
    for place, words in (
        ("missing/demo.png", "path: expected a file in a folder that exists"),
        ("demo.nonsense", "figure: expected a writable"),
    ):
        code, _, err = run("demo", "--rounds", 100, "--figure", place)
        assert code == 2
        assert words in err
        assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []  # nothing was played


def test_an_export_that_cannot_be_written_ends_with_code_2(run, tmp_path):
    code, _, err = run("demo", "--rounds", 100, "--export", "missing/demo.json")
    assert code == 2
    assert "path: expected a file in a folder that exists" in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


# -- demo and help


def test_the_demo_writes_figure_and_export_and_says_what_it_learnt_and_promised(run, tmp_path):
    code, out, err = run("demo", "--rounds", 150, "--figure", "a.png", "--export", "a.json")
    assert code == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    for words in ("uniform play", "not private", "private", "Best action: x1 = "):
        assert words in out
    assert "Joint differential privacy, epsilon = 1 at delta = 1e-06" in out
    assert "Figure: a.png" in out
    assert "Public record: a.json (made with a seed: a simulation, not private)" in out
    assert "Traceback" not in err
    study = Study.load(tmp_path / "a.json")
    assert study.plan.privacy == JointDP(epsilon=1.0, delta=1e-6)
    assert sum(epoch.length for epoch in study.epochs) == 150
    assert study.releases
    assert not any(release.private for release in study.releases)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.json", "a.png"]


def test_the_demo_prints_one_json_object(run):
    code, out, _ = run("demo", "--rounds", 100, "--json")
    assert (code, out.count("\n")) == (0, 1)
    found = json.loads(out)
    assert found.keys() == {"runs", "best", "figure", "export"}
    assert set(found["runs"]) == {"uniform play", "not private", "private, epsilon = 1"}
    assert found["best"]["interval"][0] < found["best"]["mean"] < found["best"]["interval"][1]
    assert found["best"]["guarantee"].startswith("A simulation: nothing here is private.")


@pytest.mark.parametrize("command", sorted(typer.main.get_command(app).commands))
def test_help_explains_every_option_with_an_example(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert f"Example: discreet {command} " in out
    lines = [line.strip() for line in out.partition("Options:")[2].splitlines()]
    options = [line for line in lines if line.startswith("--") and not line.startswith("--help")]
    assert len(options) >= 2
    for option in options:
        assert len(option.split("  ", 1)) == 2 or len(option) > 25, f"no words for {option}"


@pytest.mark.parametrize("arguments", [["--help"], []], ids=["asked for", "nothing said"])
def test_help_lists_the_commands(run, arguments):
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    for command in typer.main.get_command(app).commands:
        assert f"\n  {command} " in out


@pytest.mark.parametrize("command", sorted(typer.main.get_command(app).commands))
def test_every_command_speaks_to_machines(command):
    options = {
        name for p in typer.main.get_command(app).commands[command].params for name in p.opts
    }
    assert "--json" in options or command == "reproduce"  # which writes files


# -- as a user runs it


def shell(*arguments, cwd):
    command = [sys.executable, "-W", "error", "-m", "discreet.cli", *map(str, arguments)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)


def test_a_process_prints_json_alone_on_its_output(tmp_path):
    done = shell("simulate", "--rounds", 20, "--runs", 1, "--json", cwd=tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout).keys() >= KEYS


def test_a_process_fails_with_one_line_and_code_2(tmp_path):
    done = shell("simulate", "--model", "joint", "--json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("discreet: --epsilon, --delta: expected both")
    assert done.stderr.count("\n") == 1


def test_local_privacy_is_simulated_and_forecast(run):
    levels = ["--epsilon", "8", "--delta", "0.01"]
    code, out, _ = run(
        "simulate", "--problem", "synthetic", "--model", "local", *levels, "--rounds", 30,
        "--runs", 1, "--json",
    )  # fmt: skip
    found = json.loads(out)
    assert (code, found["model"], found["epsilon"], found["encoding"]) == (
        0,
        "local",
        8,
        "codebook",
    )
    shown = {
        model: json.loads(
            run(
                "forecast", "--model", model, "--dimension", 1, *levels, "--rounds", 40,
                "--functions", 1, "--figure", "f.png", "--json",
            )[1]
        )
        for model in ("joint", "local")
    }  # fmt: skip
    joint, local = (shown[model]["rows"][0] for model in ("joint", "local"))
    assert (joint["epsilon"], local["epsilon"]) == (8.0, 8.0)
    assert (joint["encoding"], local["encoding"]) == ("reward", "interval")
