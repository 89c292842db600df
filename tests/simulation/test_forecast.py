"""Forecasts: what follows from a plan alone, and what simulations of it show."""

import json
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from discreet import (
    Box,
    Categorical,
    JointDP,
    Learned,
    LocalDP,
    NonPrivate,
    Plan,
    Schedule,
    ShuffledDP,
    SquaredExponential,
)
from discreet.cli import figures
from discreet.cli.figures import forecast_figure
from discreet.cli.program import main
from discreet.errors import InvalidArgument, LargeDelta
from discreet.learning.belief import Belief
from discreet.learning.search import spread
from discreet.privacy.cost import GaussianPrivacy
from discreet.privacy.looks import FOUR_LOOKS
from discreet.simulation.forecast import forecast, foreseen, rounds_to_signal
from discreet.simulation.forecast_report import Estimate
from discreet.simulation.prior_problem import Drawn, draw_function

LINE = Box({"dose": (0, 10)})
KERNEL = SquaredExponential(0.3)
CONTEXT = Box({"dose": (0, 10), "age": (18, 90)}, context=["age"])
ARMS = Box({"dose": (0, 10), "arm": Categorical(("a", "b"))})


def plan(domain=LINE, **parts):
    given = {"kernel": KERNEL, "privacy": JointDP(1.0, 1e-5), "horizon": 200}
    return Plan(domain=domain, **(given | parts))


def generator(seed=0):
    return np.random.Generator(np.random.Philox(seed))


@cache
def found():
    return forecast(plan(horizon=300), (8, 0.05, 1), functions=6)


# -- what follows from the plan


@pytest.mark.parametrize("domain", [LINE, CONTEXT])
@pytest.mark.parametrize("privacy", [LocalDP(4.0), ShuffledDP(1.0, 1e-6)])
def test_reports_that_are_an_index_are_forecast_beside_no_privacy(domain, privacy):
    found = forecast(plan(domain, privacy=privacy, horizon=400), (4.0,), functions=1)
    assert found.private[0].mu is None
    assert found.private[0].regret.mean > 0.0
    assert found.not_private.encoding == "gram"


def test_epsilons_come_in_order_and_the_yardsticks_after_them():
    labels = [outlook.label for outlook in found().outlooks]
    expected = ["epsilon = 0.05", "epsilon = 1", "epsilon = 8", "not private", "uniform play"]
    assert labels == expected
    assert (found().delta, found().rounds, found().functions) == (1e-5, 300, 6)
    assert found().features == plan().map.dimension
    assert found().kernel_error == plan().map.error_bound <= 1e-3


def test_noise_halves_when_mu_doubles():
    """Every first epoch clips at the same width, so noise x mu is the same."""
    mu = GaussianPrivacy.of(1.0, 1e-5).mu
    weaker = GaussianPrivacy(2 * mu).epsilon(1e-5)
    one, two = forecast(plan(), (1.0, weaker), functions=1, rounds=20).private
    assert two.mu == pytest.approx(2 * one.mu, rel=1e-6)
    assert two.noise_std == pytest.approx(one.noise_std / 2, rel=1e-6)


def test_noise_is_in_reward_units():
    narrow, wide = (
        forecast(plan(rewards=(0.0, high)), (1.0,), functions=1, rounds=20) for high in (1.0, 50.0)
    )
    assert wide.private[0].noise_std == pytest.approx(50 * narrow.private[0].noise_std)
    answers = narrow.private[0].noise_in_answers
    assert answers == pytest.approx(wide.private[0].noise_in_answers)
    assert answers == pytest.approx(2 / narrow.private[0].mu)  # reward encoding: 2 w / mu
    assert wide.uniform.regret.mean == pytest.approx(50 * narrow.uniform.regret.mean)


def test_without_privacy_there_is_no_noise_and_by_chance_nothing_is_learnt():
    exact, uniform = found().not_private, found().uniform
    assert (exact.mu, exact.epsilon, exact.noise_std) == (None, None, 0.0)
    assert "no noise" in exact.meaning
    assert uniform.relative_regret == Estimate(1.0, 0.0)
    assert uniform.noise_std is uniform.epochs is uniform.simple_regret is None
    assert "nothing is learnt" in uniform.meaning
    assert found().kept(exact) == 1.0
    assert found().kept(uniform) == 0.0


def test_the_meaning_of_noise_counts_people():
    row = found().private[1]
    assert f"standard deviation {row.noise_std:.3g}" in row.meaning
    assert f"{row.noise_in_answers:.3g} people" in row.meaning


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"decisions": "candidates"},
        {"decisions": "candidates", "encoding": "gram"},
        {
            "decisions": "candidates",
            "public_decisions": True,
            "privacy": JointDP(1.0, 1e-5, protect="rewards"),
        },
    ],
    ids=["reward", "fourier", "gram", "announced"],
)
def test_signal_takes_fewer_rounds_under_less_privacy_whatever_the_encoding(parts):
    rounds = [
        rounds_to_signal(plan(**parts | {"privacy": replace(p, epsilon=epsilon)}), 100_000)[0]
        for p in [parts.get("privacy", JointDP(1.0, 1e-5))]
        for epsilon in (0.1, 1.0, 8.0)
    ]
    exact, _ = rounds_to_signal(plan(privacy=NonPrivate()), 100_000)
    assert rounds[0] > 3 * rounds[1] > 9 * rounds[2] > 9 * exact > 0


@pytest.mark.parametrize("privacy", [JointDP(1.0, 1e-5), NonPrivate()], ids=["joint", "none"])
def test_signal_is_half_of_the_prior_variance_and_no_round_sooner(privacy):
    given = plan(privacy=privacy)
    before = Belief.before(given)
    rounds, explained = rounds_to_signal(given, 1000)
    assert foreseen(given, before, rounds - 1) < 0.5 <= foreseen(given, before, rounds)
    assert explained == foreseen(given, before, 1000) > 0.5
    assert rounds_to_signal(given, rounds) == (rounds, foreseen(given, before, rounds))
    assert rounds_to_signal(given, rounds - 1)[0] is None


def test_without_noise_signal_is_what_exact_statistics_explain():
    given = plan(privacy=NonPrivate())
    before, points = Belief.before(given), spread(given.domain, 4000, generator())
    phi = given.map(points)
    after = before.posterior.absorb(
        50 * phi.T @ phi / len(points), np.zeros(phi.shape[1]), noise_variance=given.noise_variance
    )
    around = phi - phi.mean(axis=0)  # the level is left out
    unknown = [
        np.trace(around @ np.linalg.solve(p.precision, around.T)) for p in (after, before.posterior)
    ]
    assert foreseen(given, before, 50) == pytest.approx(1 - unknown[0] / unknown[1], abs=1e-3)


def test_each_epsilon_gets_its_own_default_schedule_and_encoding():
    noisy, clear = found().private[0], found().private[-1]
    assert noisy.first_epoch > clear.first_epoch
    assert noisy.epochs < clear.epochs < found().not_private.epochs
    assert (clear.encoding, found().not_private.encoding) == ("reward", "gram")


def test_a_schedule_and_encoding_of_ones_own_stay():
    own = plan(schedule=Schedule(7, 2.0), encoding="fourier")
    rows = forecast(own, (0.5, 5), functions=1, rounds=50).outlooks[:-1]
    assert {(row.encoding, row.first_epoch, row.epochs) for row in rows} == {("fourier", 7, 4)}


def test_looks_of_ones_own_stay_where_there_is_noise_to_share():
    given = {"schedule": Schedule(10, 1.5), "horizon": 60}
    four, same, one = (
        forecast(plan(**given, **looks), (5.0,), functions=1)
        for looks in ({}, {"looks": FOUR_LOOKS}, {"looks": (1.0,)})
    )
    assert four.private[0] == same.private[0]
    assert four.private[0].regret != one.private[0].regret
    assert four.not_private == one.not_private


# -- the functions that are drawn


def test_functions_have_the_variance_of_the_prior():
    """Mean square of 4,000 draws at a point: 8 standard errors (false alarms below 1e-14)."""
    given, rng = plan(signal_std=0.3, rewards=(0.0, 2.0)), generator(1)
    phi = given.map(np.array([[0.4]]))[0]
    values = np.array([draw_function(given, rng) @ phi for _ in range(4000)]) * given.half_width
    expected = 0.3**2 * float(phi @ phi)
    error = expected * math.sqrt(2 / len(values))
    assert np.mean(values**2) == pytest.approx(expected, abs=8 * error)
    assert values.mean() == pytest.approx(0.0, abs=8 * math.sqrt(expected / len(values)))


def test_functions_of_a_kernel_to_be_learnt_come_from_each_of_its_options():
    """Draws of 0.05 or 0.5: how often a function turns tells which; one in 2**40 has one kind."""
    kernel = Learned((SquaredExponential(0.05), SquaredExponential(0.5)))
    given, rng, x = plan(kernel=kernel), generator(1), np.linspace(0, 1, 400)[:, None]
    phi = given.map(x)
    slopes = [np.diff(phi @ draw_function(given, rng)) for _ in range(40)]
    turns = np.array([np.count_nonzero(np.diff(np.sign(slope))) for slope in slopes])
    assert (turns > 6).any()
    assert (turns < 4).any()
    assert ((turns > 6) | (turns < 4)).mean() > 0.9


def test_a_plan_whose_kernel_is_learnt_can_be_forecast():
    given = plan(kernel=Learned.around(SquaredExponential(0.3), 2.0), horizon=40)
    outlooks = forecast(given, (5.0,), functions=1).outlooks
    assert [outlook.label for outlook in outlooks] == ["epsilon = 5", "not private", "uniform play"]
    assert 0.0 < outlooks[1].explained < 1.0


@pytest.mark.parametrize("signal_std", [0.1, 5.0])
def test_means_stay_within_the_range_and_below_the_maximum(signal_std):
    problem = Drawn.draw(plan(signal_std=signal_std), 25, generator())
    means = problem.mean(np.linspace(0, 10, 2001)[:, None])
    assert means.min() >= 0.0
    assert means.max() == pytest.approx(problem.maximum, abs=1e-4)
    assert means.max() <= problem.maximum + 1e-9 <= 1.0 + 1e-9


def test_answers_are_gaussian_around_the_mean():
    """Mean and variance of 20,000 answers: 6 standard errors (false alarms below 1e-8)."""
    problem, rng = Drawn.draw(plan(noise_std=0.2), 25, generator()), generator(1)
    point = np.array([4.0])
    answers = np.array([problem.reward(point, rng) for _ in range(20_000)])
    assert answers.mean() == pytest.approx(problem.mean(point[None, :])[0], abs=6 * 0.2 / 141)
    assert answers.var() == pytest.approx(0.04, rel=6 * math.sqrt(2 / 20_000))


def test_people_with_a_context_have_a_maximum_of_their_own():
    problem = Drawn.draw(plan(CONTEXT), 25, generator())
    for context in problem.people[:4]:
        doses = np.linspace(0, 10, 801)
        means = problem.mean(np.stack([doses, np.full(801, context["age"])], axis=1))
        assert means.max() == pytest.approx(problem.maximum_under(context), abs=1e-3)
    ages = sorted(context["age"] for context in problem.people)
    assert ages[0] < 20 < 88 < ages[-1]


# -- what is simulated


def test_a_seed_fixes_every_number():
    one, two, other = (forecast(plan(), (2,), functions=2, rounds=60, seed=s) for s in (3, 3, 4))
    assert one == two
    assert one.uniform.regret != other.uniform.regret


def test_functions_and_users_are_the_same_for_every_level():
    alone, among = forecast(plan(), (5,), functions=2), forecast(plan(), (1, 5), functions=2)
    assert alone.private[0] == among.private[1]
    assert alone.uniform == among.uniform


def test_strong_privacy_is_not_better_than_weak_and_weak_is_not_better_than_none():
    """By a seed, and by many standard errors: about 100%, 14% and 10% of uniform play."""
    strong, _, weak = (outlook.relative_regret for outlook in found().private)
    assert strong.mean > 0.8
    assert weak.mean < 0.5
    assert weak.mean - found().not_private.relative_regret.mean > -0.1
    assert found().private[0].late_regret.mean > 2 * found().private[-1].late_regret.mean
    assert found().private[0].simple_regret.mean > found().private[-1].simple_regret.mean


def test_numbers_of_a_row_fit_each_other():
    for row in found().outlooks:
        assert row.curve.round[-1] == 300
        assert row.curve.mean[-1] == pytest.approx(row.regret.mean)
        assert row.curve.sem[-1] == pytest.approx(row.regret.sem)
        share = row.regret.mean / found().uniform.regret.mean
        assert row.relative_regret.mean == pytest.approx(share)
        assert row.late_regret.mean >= 0


def test_the_error_of_a_ratio_is_that_of_paired_functions():
    """Against the spread over 2,000 repeated samples."""
    rng = generator()
    yardstick = 5 + rng.random((2000, 40))
    values = 0.3 * yardstick + 0.1 * rng.standard_normal((2000, 40))
    ratios = [Estimate.ratio(v, y) for v, y in zip(values, yardstick, strict=True)]
    spread_of_means = np.std([ratio.mean for ratio in ratios])
    assert np.mean([ratio.sem for ratio in ratios]) == pytest.approx(spread_of_means, rel=0.1)


@pytest.mark.parametrize(
    ("domain", "parts"),
    [
        (CONTEXT, {}),
        (CONTEXT, {"decisions": "candidates"}),
        (ARMS, {}),
        (ARMS, {"decisions": "candidates"}),
        (Box({"x": (0, 1), "y": (0, 1)}, shape="ball"), {"decisions": "candidates"}),
        (Box({"x": (0, 1), "y": (0, 1)}, feasible="x + y <= 1"), {}),
    ],
    ids=["context", "context, candidates", "arms", "arms, candidates", "ball", "predicate"],
)
def test_every_kind_of_decision_is_played(domain, parts):
    given = plan(domain, kernel=SquaredExponential(0.6), kernel_error=0.05, **parts)
    played = []
    rounds = 12
    result = forecast(given, (2,), functions=1, rounds=rounds, candidates=5, advance=played.append)
    assert sum(played) == 3 * rounds
    for row in result.outlooks:
        assert row.regret.mean > -1e-6
        assert row.regret.sem is None
    assert result.private[0].simple_regret.mean > -1e-6
    assert result.decisions == given.decisions


def test_advice_names_the_strongest_privacy_that_keeps_half():
    words = found().advice
    assert "epsilon = 0.05 keeps" in words
    first = next(row.label for row in found().private if found().kept(row) >= 0.5)
    assert f"The strongest privacy here that keeps at least half is {first}." in words
    assert "At epsilon = 0.05 even all 300 rounds" in words
    assert "delta" not in words


def test_advice_warns_of_a_delta_that_allows_publishing_people():
    with pytest.warns(LargeDelta):
        given = plan(privacy=JointDP(1.0, 0.1))
    assert "delta = 0.1 would allow publishing" in forecast(given, (1,), functions=1).advice


def test_too_few_rounds_are_said_to_teach_nothing():
    few = forecast(plan(), (1,), functions=6, rounds=3)
    assert few.kept(few.private[0]) is None
    assert few.advice.startswith("Even without privacy 3 rounds are not clearly better")


# -- wrong requests


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"epsilons": (1, 0)}, "epsilons: expected a finite number above 0"),
        ({"epsilons": (-1,)}, "epsilons: expected a finite number above 0"),
        ({"epsilons": (math.nan,)}, "epsilons: expected a finite number above 0"),
        ({"epsilons": 1.0}, "epsilons: expected a sequence of positive numbers"),
        ({"epsilons": "1"}, "epsilons: expected a sequence of positive numbers"),
        ({"delta": 0.0}, "delta: expected"),
        ({"delta": 2.0}, "delta: expected a probability below 1"),
        ({"rounds": 0}, "rounds: expected a whole number of at least 1"),
        ({"functions": 0}, "functions: expected a whole number of at least 1"),
        ({"candidates": 0}, "candidates: expected a whole number of at least 1"),
        ({"seed": -1}, "seed: expected a whole number of at least 0"),
        ({"plan": plan(horizon=None)}, "rounds: expected a whole number: the plan has no horizon"),
        ({"plan": plan(privacy=NonPrivate())}, "delta: expected a probability: a plan without"),
        ({"plan": "a plan"}, "plan: expected a Plan"),
    ],
    ids=str,
)
def test_a_wrong_request_is_refused_before_anything_is_played(arguments, words):
    with pytest.raises(InvalidArgument, match=words):
        forecast(**({"plan": plan(), "advance": pytest.fail} | arguments))


def test_a_plan_without_privacy_needs_a_delta_or_no_epsilons():
    given = plan(privacy=NonPrivate())
    assert forecast(given, (), functions=1, rounds=10).delta is None
    assert forecast(given, (1,), delta=1e-6, functions=1, rounds=10).delta == 1e-6


# -- the command


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def command(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main(["forecast", *(str(argument) for argument in arguments)])
        out, err = capfd.readouterr()
        return stopped.value.code or 0, out, err

    return command


SMALL = ["--dimension", 1, "--lengthscale", 0.4, "--rounds", 40, "--functions", 2]


def test_json_is_one_object_and_the_figure_is_written(run, tmp_path):
    code, out, err = run(*SMALL, "--epsilon", 1, "--epsilon", 8, "--rewards", -1, 3, "--json")
    assert (code, out.count("\n")) == (0, 1)
    found = json.loads(out)
    assert found["rewards"] == [-1.0, 3.0]
    assert (found["delta"], found["rounds"], found["functions"]) == (1e-5, 40, 2)
    assert [row["epsilon"] for row in found["rows"]] == [1.0, 8.0, None, None]
    keys = {
        "label", "epsilon", "mu", "encoding", "epochs", "first_epoch", "noise_std",
        "noise_in_answers", "rounds_to_signal", "explained", "regret", "relative_regret",
        "late_regret", "simple_regret", "curve", "kept", "meaning",
    }  # fmt: skip
    assert all(row.keys() == keys for row in found["rows"])
    assert found["rows"][0]["regret"].keys() == {"mean", "sem"}
    assert found["advice"]
    assert (tmp_path / found["figure"]).read_bytes().startswith(b"\x89PNG")
    assert "rounds" in err  # the progress bar


def test_without_json_there_is_a_table_a_row_an_epsilon_and_a_sentence(run, tmp_path):
    code, out, _ = run(*SMALL, "--epsilon", 0.02, "--candidates", 5, "--figure", "own.svg")
    assert code == 0
    for words in ("epsilon", "0.02", "not private", "uniform play", "> 40", "fourier encoding"):
        assert words in out
    assert "rounds" in out
    assert "Figure: own.svg" in out
    assert [file.name for file in tmp_path.iterdir()] == ["own.svg"]


@pytest.mark.parametrize("problem", ["camelback", "synthetic"])
def test_a_problem_lends_its_domain_kernel_and_rewards(run, problem):
    options = ["--rounds", 15, "--functions", 1, "--epsilon", 5, "--json"]
    code, out, _ = run("--problem", problem, *options)
    assert code == 0
    found = json.loads(out)
    assert found["problem"] == problem
    expected = {"camelback": ([-1.2, 0.3], "box"), "synthetic": ([0.0, 1.0], "candidates")}
    assert (found["rewards"], found["decisions"]) == expected[problem]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epsilon", "0"], "epsilons: expected a finite number above 0"),
        (["--epsilon", "1", "--delta", "0"], "delta: expected"),
        (["--epsilon", "1", "--delta", "1.5"], "delta: expected a probability below 1"),
        (["--problem", "camel"], "one of synthetic, camelback"),
        (["--problem", "camelback", "--dimension", "2"], "nothing with --problem"),
        (["--problem", "camelback", "--rewards", "0", "1"], "nothing with --problem"),
        (["--lengthscale", "-1"], "lengthscale: expected"),
        (["--rewards", "1", "0"], "rewards: expected a pair"),
        (["--dimension", "0"], "dimension"),
        (["--figure", "missing/a.png"], "a file in a folder that exists"),
        (["--figure", "a.nonsense"], "a writable .png, .svg or .pdf"),
        (["--rounds", "0"], "rounds"),
        (["--candidates", "0"], "candidates"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_request_ends_with_code_2_and_one_line(run, tmp_path, arguments, words):
    code, out, err = run("--functions", 1, *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err
    ours = [line for line in err.splitlines() if line.startswith("discreet: ")]
    assert len(ours) == 1 or "Usage:" in err
    assert list(tmp_path.iterdir()) == []


# -- the figure


def test_the_figure_shows_each_level_between_the_yardsticks(monkeypatch, tmp_path):
    kept = []
    monkeypatch.setattr(figures, "save", lambda figure, path: kept.append(figure))
    forecast_figure(found(), tmp_path / "forecast.png")
    against, over = kept[0].axes
    assert against.get_xscale() == "log"
    for axes in (against, over):
        assert axes.get_xlabel()
        assert "regret" in axes.get_ylabel()
        assert "%" in axes.get_ylabel() or "reward units" in axes.get_ylabel()
    curves = {line.get_label(): line for line in over.get_lines()}
    assert curves.keys() == {row.label for row in found().outlooks}
    for row in found().outlooks:
        assert curves[row.label].get_ydata() == pytest.approx(np.array(row.curve.mean))
    shown = [line.get_ydata()[0] for line in against.get_lines() if line.get_marker() in "osD^vP"]
    wanted = [100 * row.relative_regret.mean for row in found().private]
    assert shown == pytest.approx(wanted)
    looks = {(line.get_linestyle(), line.get_marker()) for line in curves.values()}
    assert len(looks) == len(curves)  # they differ without colour


@pytest.mark.parametrize("noise", ["tree", "blt"])
def test_correlated_noise_is_forecast_with_the_noise_of_its_prefixes(noise):
    given = plan(noise=noise, schedule=Schedule(10, growth=1.3), horizon=120)
    found = forecast(given, (0.5, 8.0), functions=2)
    noisy, clear = found.private
    assert noisy.explained < clear.explained < found.not_private.explained
    assert clear.epochs == given.releases_of(120)
    assert clear.noise_std < noisy.noise_std
    assert found.not_private.noise_std == 0.0
