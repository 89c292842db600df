"""Bad input to every command: one clear line, exit code 2, no traceback.

Commands and their options come from the application itself: one that is new is tried here, too.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Literal, get_origin

import pytest
import typer.main
from tests.support.places import ROOT

from discreet.cli.program import app

COMMANDS = typer.main.get_command(app).commands

BROKEN = {
    "fails.py": "raise RuntimeError('no such world')",
    "typo.py": "def problem(:",
    "leaves.py": "import sys\nsys.exit(3)",
    "divides.py": "def problem(rng):\n    return 1 / 0",
    "broken.toml": "horizon = [",
    "latin.toml": b"name = '\xe9t\xe9'",
    "unknown.toml": "horizn = 5",
    "wrong.toml": "horizon = 'long'",
    "empty.toml": "",
    "half.toml": "domain.coordinates.x = [0, 1]\n[privacy]\ntype = 'JointDP'\nepsilon = 1",
    "text.txt": "hello",
    "empty.db": b"",
    "broken.json": b'{"study":',
    "foreign.json": b'{"a":1}',
    "foreign.db": b"SQLite format 3\0" + bytes(84),
    "cut.db": b"SQLite format 3\0" + bytes(10),
    "good.csv": "age,days,propensity,reward\n" + 40 * "0,1,0.5,1\n1,2,0.5,0\n",
    "lacks.csv": "age,days,reward\n0,1,1\n",
    "zero.csv": "age,days,propensity,reward\n0,1,0,1\n",
}

EPSILONS = [
    ["--epsilon", epsilon, "--delta", delta]
    for epsilon, delta in [
        ("0", "1e-6"), ("-1", "1e-6"), ("nan", "1e-6"), ("inf", "1e-6"), ("1e300", "1e-6"),
        ("1", "0"), ("1", "1"), ("1", "2"), ("1", "-0.1"), ("1", "nan"), ("1", "inf"),
    ]
]  # fmt: skip
PROBLEMS = [
    ["--problem", name]
    for name in (
        "camel", "no_such_module:thing", "fails:problem", "typo:problem", "leaves:problem",
        "divides:problem", "json:nothing", "builtins:str", ":", "a:", ":b", "..:x",
    )
]  # fmt: skip
PLANS = [
    ["--plan", name]
    for name in ("no.toml", "folder", "broken.toml", "latin.toml", "unknown.toml", "wrong.toml")
]
SETS = [["--set", "nonsense"], ["--set", "=5"], ["--set", "horizn=5"], ["--set", "horizon=x"]]

REPLAY = ["--plan", f"{ROOT}/docs/examples/replay.toml"]

#: What only its author knows to be wrong about a command, beyond what its options say.
BAD = {
    "audit": [["--draws", "29999"]],
    "demo": [
        ["--figure", "demo.bmp"], ["--figure", "folder"], ["--figure", "text.txt/demo.png"],
        ["--export", "folder"], ["--export", "text.txt/demo.json"],
    ],
    "forecast": [
        *EPSILONS, *PROBLEMS, *PLANS,
        ["--plan", "empty.toml"], ["--plan", "half.toml"], ["--set", "horizon=5"],
        ["--plan", f"{ROOT}/docs/examples/dosing.toml", "--problem", "camelback"],
        ["--plan", f"{ROOT}/docs/examples/dosing.toml", "--dimension", "3"],
        ["--problem", "camelback", "--dimension", "3"], ["--problem", "camelback", "--set", "a=1"],
        *[["--plan", f"{ROOT}/docs/examples/dosing.toml", *change] for change in SETS],
        ["--lengthscale", "-1"], ["--lengthscale", "nan"], ["--lengthscale", "1e-9"],
        ["--rewards", "1", "0"], ["--rewards", "nan", "1"], ["--dimension", "0"],
        ["--figure", "forecast.bmp"], ["--figure", "folder"], ["--figure", "text.txt/f.png"],
    ],
    "inspect": [
        *[[name] for name in ("no.json", "folder", "text.txt", "empty.db", "broken.json")],
        *[[name] for name in ("foreign.json", "foreign.db", "cut.db", "/dev/null")],
        ["text.txt", "--figure", "study.bmp"], ["text.txt", "--table", "epochs.xlsx"], [],
    ],
    "replay": [
        [], ["good.csv"], REPLAY[:2],
        *[["good.csv", *plan] for plan in [*PLANS, ["--plan", "empty.toml"]]],
        ["good.csv", "--plan", f"{ROOT}/docs/examples/dosing.toml"],  # doses are continuous
        *[[name, *REPLAY] for name in ("no.csv", "folder", "text.txt", "empty.db", "foreign.db")],
        *[[name, *REPLAY] for name in ("good.csv", "lacks.csv", "zero.csv")],
        *[["good.csv", *REPLAY, *change] for change in SETS],
    ],
    "reproduce": [
        ["nonsense"], ["table", "--runs", "0"], ["table", "--workers", "0"],
        ["table", "--out", "text.txt"], ["table", "--out", "text.txt/figures"],
    ],
    "simulate": [
        *[["--model", "joint", *levels] for levels in EPSILONS],
        *[["--model", "local", *levels] for levels in EPSILONS if levels[-1] != "0"],
        ["--model", "local"], ["--model", "local", "--delta", "0.1"],
        *PROBLEMS, *PLANS, *SETS,
        ["--set", "domain.coordinates.x=[0,1]"], ["--set", "decisions=candidates"],
        ["--set", "privacy.type=JointDP"], ["--set", "prior=no.json"],
    ],
    "theory": [
        *PLANS, [], ["--plan", "empty.toml"], ["--plan", "half.toml"],
        ["--plan", f"{ROOT}/docs/examples/dosing.toml"],
        *[["--plan", f"{ROOT}/docs/examples/elimination.toml", *change] for change in SETS],
        ["--plan", f"{ROOT}/docs/examples/elimination.toml", "--norm", "nan"],
        ["--plan", f"{ROOT}/docs/examples/elimination.toml", "--uniform", "0"],
    ],
}  # fmt: skip


def wrong_values(option):
    """What an option cannot be, by its type."""
    kind = option.type_descriptor.annotation
    if kind in (int, float, list[float], list[int]):
        below = [] if option.min is None else [str(option.min - 1)]
        return ["many", "", *below]
    if get_origin(kind) is Literal:
        return ["nonsense", ""]
    if kind is Path and option.name != "out":  # a folder, which may be made
        return ["missing/x.png", "."]
    return []


def generated():
    for name, command in COMMANDS.items():
        yield name, ["--nonsense"]
        yield name, ["one", "two", "three"]
        for option in command.params:
            if option.param_type_name == "option" and not option.is_flag:
                yield name, [option.opts[0]]
                for value in wrong_values(option):
                    yield name, [option.opts[0], value]


CASES = [*generated(), *((name, case) for name in BAD if name in COMMANDS for case in BAD[name])]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "folder").mkdir()
    for name, content in BROKEN.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return tmp_path


@pytest.mark.parametrize(
    ("command", "arguments"),
    CASES,
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_wrong_request_ends_with_one_line_and_code_2(run, folder, command, arguments):
    before = sorted(folder.rglob("*"))
    code, out, err = run(command, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("discreet: ")
    assert err.count("\n") == 1
    made = set(folder.rglob("*")) - set(before)
    assert [path for path in made if "__pycache__" not in str(path)] == []


def test_every_command_has_bad_input_of_its_own():
    assert set(COMMANDS) <= set(BAD)


def test_an_unknown_command_ends_with_one_line_and_code_2(run):
    code, out, err = run("xyz")
    assert (code, out) == (2, "")
    assert err == "discreet: No such command 'xyz'. (see discreet --help)\n"


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_refused_before_anything_is_played(run, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    code, _, err = run("demo", "--figure", "closed/demo.png")
    assert code == 2
    assert "path: expected a place that can be written" in err


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system nobody can write")
@pytest.mark.parametrize(
    "arguments",
    [
        ["demo", "--rounds", "100", "--figure", "/proc/demo.png"],
        ["demo", "--rounds", "100", "--export", "/proc/demo.json"],
        ["forecast", "--rounds", "5", "--functions", "1", "--figure", "/proc/f.png", "--json"],
    ],
    ids=" ".join,
)
def test_a_file_system_that_refuses_is_said_on_one_line(run, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith("discreet: ")
    assert "Traceback" not in err


OWN = """
from discreet import Box

class Broken:
    domain = Box({"dose": (0, 10)})
    rewards = (0.0, 1.0)
    maximum = 1.0

    def decision_set(self, rng):
        return None

    def mean(self, x):
        raise KeyError("no answer")

    def reward(self, x, rng):
        return 0.5

problem = Broken()
"""


def test_a_problem_that_fails_while_it_is_played_is_blamed_on_one_line(run, tmp_path):
    (tmp_path / "broken_world.py").write_text(OWN)
    code, out, err = run("simulate", "--problem", "broken_world:problem", "--rounds", 5)
    assert (code, out) == (2, "")
    assert err == (
        "discreet: problem: expected a problem that can be played (KeyError: 'no answer'), "
        "got 'broken_world:problem'\n"
    )


# -- as a user meets it


def started(*arguments, cwd, **options):
    command = [sys.executable, "-W", "error", "-m", "discreet.cli", *arguments]
    return subprocess.Popen(command, cwd=cwd, text=True, stderr=subprocess.PIPE, **options)


def test_an_interrupt_ends_with_one_line(tmp_path):
    (tmp_path / "slow.py").write_text(
        OWN.replace('raise KeyError("no answer")', 'print("begun", flush=True); input()')
    )
    work = started(
        "simulate", "--problem", "slow:problem",
        cwd=tmp_path, stdout=subprocess.PIPE, stdin=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's & ignores it
    )  # fmt: skip
    assert work.stdout.readline() == "begun\n"
    work.send_signal(signal.SIGINT)
    _, err = work.communicate()
    assert work.returncode == 130
    assert err.splitlines()[-1] == "discreet: interrupted"
    assert "Traceback" not in err


def test_a_closed_pipe_ends_without_a_word(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    work = started("simulate", "--rounds", "5", "--json", cwd=tmp_path, stdout=writer)
    os.close(writer)
    _, err = work.communicate()
    assert work.returncode == 1
    assert "Traceback" not in err
    assert "Error" not in err
