"""`discreet theory`: every theorem's numbers, for every kind of plan."""

import json
import math

import numpy as np
import pytest
from tests.support.places import ROOT

from discreet import Box, JointDP, Plan, SquaredExponential
from discreet.cli.program import run
from discreet.learning.elimination_bounds import regret_bound
from discreet.learning.prefix_belief import Prefix, rule_of
from discreet.learning.theory import estimate
from discreet.learning.theory_report import theory_report
from discreet.plan_file import read_plan

EXAMPLE = ROOT / "docs/examples/elimination.toml"


def told(capsys, *arguments):
    code = run(["theory", *map(str, arguments)])
    found = capsys.readouterr()
    return code, found.out, found.err


def test_it_says_what_the_functions_say(capsys):
    code, out, _ = told(capsys, "--plan", EXAMPLE, "--rounds", 5000, "--json")
    found, plan = json.loads(out), read_plan(EXAMPLE)
    assert code == 0
    assert found["runs"] == "elimination, as proven"
    names = [each["name"] for each in found["bounds"]]
    assert names == ["elimination", "Theorem 3, tree", "Theorem 3, square root"]
    assert found["bounds"][0]["regret"] == [regret_bound(plan, 5000)]
    assert found["features"] == plan.map.dimension


def test_a_bound_beats_uniform_play_where_it_says(capsys):
    _, out, _ = told(capsys, "--plan", EXAMPLE, "--uniform", 0.3, "--json")
    since = json.loads(out)["bounds"][0]["beats_uniform_from"]
    plan = read_plan(EXAMPLE)
    assert regret_bound(plan, since) < 0.3 * since
    assert regret_bound(plan, since - 1) >= 0.3 * (since - 1)


@pytest.mark.parametrize(
    ("changes", "runs", "bounds"),
    [
        ({"confidence": None, "norm": None, "elimination": None}, "the practical default", 3),
        ({"privacy.type": "LocalDP"}, "elimination", 2),
        ({"noise": "tree", "elimination": None, "horizon": 100}, "the paper's algorithm, as", 3),
        (
            {"privacy.type": "LocalDP", "decisions": "candidates", "elimination": None}
            | {"horizon": 100},
            "Algorithm 3, as proven",
            1,
        ),
    ],
)
def test_every_kind_of_plan_has_its_theorems(tmp_path, changes, runs, bounds):
    text = EXAMPLE.read_text()
    for name, value in changes.items():
        if value is None and name == "elimination":
            text = text[: text.index("[elimination]")]
        elif value is None:
            text = "\n".join(x for x in text.splitlines() if not x.startswith(f"{name} ="))
    path = tmp_path / "plan.toml"
    path.write_text(text)
    plan = read_plan(path, {k: v for k, v in changes.items() if v is not None})
    found = theory_report(plan, [1000], norm=1.0)
    assert found.runs.startswith(runs)
    assert len(found.bounds) == bounds
    assert all(math.isfinite(each.width) for each in found.prefix)


def test_people_read_tables(capsys):
    code, out, _ = told(capsys, "--plan", EXAMPLE)
    assert code == 0
    for words in ("Elimination's phases", "lambda_min", "beats uniform play from", "uniform play"):
        assert words in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--plan"),
        (("--plan", EXAMPLE, "--norm", "-1"), "--norm"),
        (("--plan", EXAMPLE, "--uniform", "0"), "--uniform"),
        (("--plan", ROOT / "docs/examples/dosing.toml"), "norm"),
        (("--plan", EXAMPLE, "--set", 'privacy={type="NonPrivate"}'), "private"),
        (("--plan", EXAMPLE, "--rounds", "0"), "rounds"),
    ],
)
def test_wrong_requests_are_refused_in_a_line(capsys, arguments, words):
    code, _, error = told(capsys, *arguments)
    assert code == 2
    assert words in error
    assert len(error.strip().splitlines()) == 1


@pytest.mark.parametrize("noise", ["tree", "square root"])
def test_a_plan_that_plays_theorem_1_is_told_the_width_it_plays_by(noise):
    """Hoeffding's noise and the plan's own lambda, not noise_std and 1."""
    plan = Plan(
        domain=Box({"dose": (0, 10)}),
        kernel=SquaredExponential(0.3),
        rewards=(-0.5, 1.5),
        privacy=JointDP(1.0, 1e-6),
        decisions="candidates",
        noise=noise,
        confidence="theory",
        norm=1.0,
        noise_std=0.1,
        horizon=500,
    )
    found, rule = theory_report(plan, [500]), rule_of(plan)
    own = next(each for each in found.prefix if each.name == noise)
    nothing = Prefix(np.zeros((plan.map.dimension,) * 2), np.zeros(plan.map.dimension), 500, 1.0)
    huge = estimate(plan.map, 1e12 * np.eye(plan.map.dimension), nothing.cross, regularisation=1.0)
    assert own.width == pytest.approx(rule.width(nothing, huge), rel=1e-4)  # before any data
    assert own.shift == pytest.approx(rule.spectrum.shift, rel=1e-4)
    assert found.noise_std == 1.0
