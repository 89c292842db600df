"""Long simulations, the growth of regret, and what lies between local and joint privacy."""

import math

import numpy as np
import pytest

from discreet.agreement.plan import Schedule
from discreet.errors import InvalidArgument
from discreet.experiments import growth, paper_figures
from discreet.experiments import shuffling as between
from discreet.experiments.contenders import Played, play
from discreet.experiments.growth import WAY, growth_of, growth_trials
from discreet.privacy.budget import JointDP, LocalDP, NonPrivate
from discreet.privacy.cost import GaussianPrivacy
from discreet.simulation.play import Setting, simulate
from discreet.simulation.problems import find_problem

MODELS = {"none": NonPrivate(), "joint": JointDP(5.0, 0.1), "local": LocalDP(5.0, 0.1)}


OCTAVES = tuple(range(4, 10))


def _row(model, run, regret_after):
    curve = " ".join(f"{1 << k}:{regret_after(k)!r}" for k in OCTAVES)
    return Played("synthetic", WAY[model], 1.0, 0.1, 512, 0, run, regret_after(9), curve)


def _rows(exponent=0.5, runs=3, spread=0.0):
    return [
        _row(model, run, lambda k, run=run: (1 + spread * run) * 2.0 ** (k * exponent))
        for model in ("joint", "local")
        for run in range(runs)
    ]


# -- crowds


@pytest.mark.parametrize(
    ("name", "model"),
    [("synthetic", "joint"), ("synthetic", "local"), ("camelback", "local"), ("camelback", "none")],
)
def test_a_crowd_is_fixed_by_its_seed(name, model):
    setting = Setting(model=model, rounds=60, privacy=MODELS[model])
    one, two = (simulate(find_problem(name), setting, seed=3) for _ in range(2))
    assert (one.regrets == two.regrets).all()
    assert one.regrets.shape == (60,)
    assert one.regrets.min() >= -1e-6
    assert [r.reports for r in one.study.releases] == [
        r.asks if model == "local" else None for r in one.study.releases
    ]


def test_a_crowd_chooses_as_its_people_would_one_by_one():
    setting = Setting(model="local", rounds=80, privacy=MODELS["local"])
    study = simulate(find_problem("synthetic"), setting, seed=3).study
    plan, epoch, rng = study.plan, study.epochs[-1], np.random.default_rng(0)
    sets = plan.domain.spread(rng.random((20 * 5, 2)), context=None).reshape(20, 5, 2)
    chosen = epoch.policy.choose(plan.map, np.arange(20), list(sets))
    alone = [
        epoch.policy.choose(plan.map, np.array([i]), [options])[0] for i, options in enumerate(sets)
    ]
    assert chosen.tolist() == alone


# -- growth


def test_an_exponent_is_the_slope_and_its_error_that_of_the_runs():
    exact = growth_of(_rows(0.75), "local", octaves=OCTAVES)
    assert exact.exponent == pytest.approx(0.75)
    assert exact.error == pytest.approx(0.0, abs=1e-12)
    scaled = growth_of(_rows(0.75, spread=0.5), "local", octaves=OCTAVES)  # a factor alone
    assert scaled.exponent == pytest.approx(0.75)
    assert scaled.sem[0] > 0
    rng = np.random.default_rng(0)
    noisy = [
        _row("joint", run, lambda k: float(2.0 ** (k / 2) * rng.lognormal(0, 0.3)))
        for run in range(40)
    ]
    found = growth_of(noisy, "joint", octaves=OCTAVES)
    assert abs(found.exponent - 0.5) < 5 * found.error
    # independent errors of 0.3 / sqrt(40) at four octaves: the slope's is 0.3 / sqrt(40 * 5) / ln 2
    assert found.error == pytest.approx(0.3 / math.sqrt(200) / math.log(2), rel=0.5)


@pytest.mark.parametrize("rows", [[], _rows(runs=1), [*_rows(), _row("local", 9, lambda k: 1.0)]])
def test_a_fit_needs_whole_runs(rows):
    rows = [Played(**{**vars(r), "curve": "16:1.0"}) if r.run == 9 else r for r in rows]
    with pytest.raises(InvalidArgument, match="two whole runs"):
        growth_of(rows, "local", octaves=OCTAVES)


def test_regret_is_known_after_every_octave_of_a_run():
    joint, local = growth_trials(1, octaves=(4, 5, 6))
    assert (joint.way, local.way, local.rounds) == ("ours", "ours, local", 64)
    regrets = play(local).regrets
    assert {16, 32, 64} <= set(regrets)
    assert 0 < regrets[16] < regrets[64]


def test_the_figure_shows_both_models_and_the_slopes_of_the_theory(tmp_path, monkeypatch):
    found = [growth_of(_rows(spread=0.1), model, octaves=OCTAVES) for model in growth.THEORY]
    paper_figures.growth_figure(found, tmp_path / "growth")
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "growth.svg").read_bytes().startswith(b"<?xml")
    kept = []
    monkeypatch.setattr(paper_figures, "save", lambda figure, path: kept.append(figure))
    paper_figures.growth_figure(found, tmp_path / "growth")
    (axes,) = kept[0].axes
    words = [text.get_text() for text in axes.texts]
    assert words == ["T^0.5", "T^0.75"]
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert [label.split(":")[0] for label in labels] == ["joint", "local"]


# -- between


def test_secure_aggregation_is_joint_privacy_and_shuffling_is_not():
    for delta in (0.1, 1e-6):
        row = between.reports_for(LocalDP(1.0, delta), 8192)
        assert row.local <= row.shuffled <= row.shuffled_at_most < row.aggregated
        assert row.aggregated / math.sqrt(8192) == pytest.approx(JointDP(1.0, delta).cost.mu)


def test_the_shuffling_bound_says_nothing_beyond_its_range():
    assert between.shuffled_epsilon(1.0, 1e-6, 100) == math.inf
    assert between.shuffled_epsilon(8.0, 1e-6, 10_000) == math.inf
    small, large = (between.shuffled_epsilon(1.0, 1e-6, n) for n in (10**4, 10**6))
    assert large == pytest.approx(small / 10, rel=0.15)
    assert between.shuffled_mu(LocalDP(1.0, 1e-6), 100) == 0.0


def test_a_shuffled_report_keeps_its_promise():
    """The certified mu, put back into the theorem, is within epsilon and delta."""
    promise, people = LocalDP(1.0, 1e-6), 100_000
    mu = between.shuffled_mu(promise, people)
    kept = []
    for level in np.linspace(0.5, 6.0, 200):
        own = GaussianPrivacy(mu).delta(level)
        if between.shuffled_epsilon(level, 5e-7, people) <= 1.0:
            lost = (math.e + 1) * (1 + math.exp(-level) / 2) * people * own
            kept.append(5e-7 + lost)
    assert min(kept) <= 1.05e-6


def test_a_promise_of_epsilon_is_needed():
    with pytest.raises(InvalidArgument, match="promise"):
        between.reports_for(NonPrivate(), 100)


def test_regret_between_local_and_joint_is_simulated(capsys):
    found = between.regrets(
        LocalDP(8.0, 0.1), rounds=64, schedule=Schedule(32, growth=2.0), runs=2, seed=0
    )
    assert found.shape == (2,)
    between.main(["--runs", "0"])
    out = capsys.readouterr().out
    assert out.count("\n") == 8
    assert "| 1, 1e-06 | 131,072 |" in out
