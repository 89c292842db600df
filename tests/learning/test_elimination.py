"""Elimination: what it proves is true, whatever people do; statistical tests state their rates."""

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet import (
    Bandit,
    Box,
    Categorical,
    Elimination,
    Integer,
    JointDP,
    LocalDP,
    Matern,
    NonPrivate,
    Plan,
    Polynomial,
    Schedule,
    Simulation,
    SquaredExponential,
    Study,
)
from discreet.errors import InvalidArgument, Refused
from discreet.experiments.phases import class_plan, play_phases, promises_kept
from discreet.features.kernels import Additive, Linear
from discreet.learning.arms import arms_of, net_error
from discreet.learning.elimination import Remaining
from discreet.learning.elimination_bounds import foreseen, regret_bound
from discreet.protocol.verifier import check_epoch


def make_plan(**changes):
    usual = {
        "domain": Box({"dose": (0, 10)}),
        "kernel": SquaredExponential(0.4),
        "privacy": JointDP(8.0, 1e-4),
        "rewards": (-0.5, 1.5),
        "confidence": "theory",
        "norm": 1.0,
        "noise_std": 0.1,
        "elimination": Elimination(net=20, means=(0.0, 1.0)),
        "schedule": Schedule(150, growth=2.0),
        "horizon": 1200,
    }
    return Plan(**(usual | changes))


def bump(points):
    return np.exp(-np.square(points[:, 0] - 0.3) / (2 * 0.4**2))


def run_bandit(plan, answer, rounds, **options):
    bandit = Bandit(plan, simulation=Simulation(3), **options)
    for number in range(bandit.asked, rounds):
        trial = bandit.ask(user=f"person {number}")
        if (reward := answer(trial)) is not None:
            bandit.tell(trial, reward)
    return bandit


def dose_response(trial):
    noise = 0.1 * math.sin(1e4 * trial.number)
    return float(bump(np.array([[trial.action["dose"] / 10]]))[0]) + noise


# -- the bandit plays it


def test_a_bandit_drops_arms_and_certifies_its_recommendation():
    bandit = run_bandit(make_plan(horizon=None), dose_response, 9600)
    bandit.finish()
    study = bandit.study
    certificate, best = study.certificate, study.best()
    assert certificate.asks == 9600
    assert certificate.active < certificate.arms == 20
    assert best.gap == certificate.gap < 0.5
    assert 1.0 - float(bump(np.array([[best.action["dose"] / 10]]))[0]) <= best.gap
    assert best.interval[0] < 1.0 < best.interval[1] + best.gap
    assert certificate.regret < 9600 * 1.0


def test_what_is_exported_tells_the_same(tmp_path):
    bandit = run_bandit(make_plan(), dose_response, 1200)
    bandit.finish()
    bandit.export(tmp_path / "study.json")
    again = Study.load(tmp_path / "study.json")
    assert again.certificate == bandit.study.certificate
    assert again.best() == bandit.study.best()


def test_a_study_goes_on_after_a_restart(tmp_path):
    plan, path = make_plan(), tmp_path / "study.db"
    run_bandit(plan, dose_response, 500, journal=path).close()
    bandit = run_bandit(make_plan(), dose_response, 1200, journal=path)
    bandit.finish()
    whole = run_bandit(plan, dose_response, 1200)
    whole.finish()
    assert bandit.study.certificate == whole.study.certificate


def test_asks_are_exactly_those_of_the_design():
    plan = make_plan()
    epoch = Study(plan).next_epoch()
    assert epoch.policy.counts.sum() == epoch.length == 150
    given = [tuple(point) for point in epoch.asked(150)]
    for point, count in zip(epoch.policy.menu, epoch.policy.counts, strict=True):
        assert given.count(tuple(point)) == count


def test_late_answers_are_silence():
    """A late answer of a first-epoch round changes no release."""

    def play(late):
        bandit = Bandit(make_plan(), simulation=Simulation(5))
        trials = [bandit.ask(user=str(i)) for i in range(150)]
        for trial in trials[1:]:
            bandit.tell(trial, dose_response(trial))
        for number in range(150):
            trial = bandit.ask(user=str(150 + number))
            bandit.tell(trial, dose_response(trial))
            if late and number == 0:
                bandit.tell(trials[0], 1.0)
        bandit.finish()
        return bandit.study

    one, other = play(late=True), play(late=False)
    assert [r.digest for r in one.releases] == [r.digest for r in other.releases]


def test_the_last_phase_may_be_cut_short():
    bandit = run_bandit(make_plan(), dose_response, 310)
    bandit.finish()
    assert bandit.study.certificate.asks == 310


def test_a_phase_that_says_nothing_drops_nothing():
    bandit = run_bandit(make_plan(), lambda trial: None, 2)
    bandit.finish()
    certificate = bandit.study.certificate
    assert certificate.active == 20
    assert certificate.gap == pytest.approx(1.0)


def test_local_reports_eliminate_too():
    plan = make_plan(privacy=LocalDP(8.0, 1e-2), horizon=None, schedule=None)
    phases = play_phases(plan, bump, rounds=200_000, best=1.0, rng=np.random.default_rng(0))
    assert phases[-1].active < 20
    assert all(each.best_is_active for each in phases)
    assert all(each.regret <= each.certified for each in phases)


def test_without_privacy_nothing_but_answers_is_noise():
    phases, noisy = (
        play_phases(
            make_plan(privacy=privacy, horizon=None, schedule=None),
            bump,
            rounds=50_000,
            best=1.0,
            rng=np.random.default_rng(0),
        )
        for privacy in (NonPrivate(), JointDP(0.1, 1e-6))
    )
    assert phases[-1].regret < noisy[-1].regret / 3
    assert phases[-1].best_is_active


def test_a_public_list_of_arms():
    box = Box({"dose": (0, 10), "arm": Categorical(("a", "b")), "pills": Integer(1, 3)})
    arms = [(1.0, "a", 1), (5.0, "b", 2), (9.5, "a", 3), (2.0, "b", 1)]
    plan = make_plan(domain=box, kernel=SquaredExponential(1.0), elimination=Elimination(arms=arms))
    assert arms_of(plan).net_error == 0.0
    bandit = run_bandit(plan, lambda trial: 0.5, 20)
    actions = {tuple(bandit.ask(user=f"u{i}").action.values()) for i in range(60)}
    assert actions <= {tuple(arm) for arm in arms}


def test_a_net_has_every_value_of_a_discrete_coordinate():
    box = Box({"dose": (0, 10), "arm": Categorical(("a", "b", "c")), "pills": Integer(1, 4)})
    points = Elimination(net=5).points(box)
    assert points.shape == (5 * 3 * 4, box.dimension)
    assert box.admits(points).all()
    assert len(np.unique(points, axis=0)) == 60


# -- the promises


def test_no_promise_is_broken_more_often_than_its_failure():
    """200 functions of the class: each failure has probability at most 0.05.

    More than 30 of 200 would have a probability below 1e-7 (binomial tail at 0.05).
    """
    found = promises_kept(class_plan(JointDP(1.0, 0.1)), runs=200, rounds=20_000, seed=1)
    assert found.most_failures <= 30


@pytest.mark.parametrize("epsilon", [10.0, 0.1])
def test_promises_hold_at_other_budgets(epsilon):
    """More than 13 of 40 would have a probability below 1e-7 (binomial tail at 0.05)."""
    found = promises_kept(class_plan(JointDP(epsilon, 0.1)), runs=40, rounds=50_000, seed=2)
    assert found.most_failures <= 13


@pytest.mark.parametrize("privacy", [JointDP(1.0, 0.1), NonPrivate(), LocalDP(8.0, 0.01)])
def test_no_width_is_wider_than_foreseen(privacy):
    plan = class_plan(privacy)
    study, ahead = Study(plan), foreseen(plan)
    rng = np.random.default_rng(1)
    for number in range(6):
        epoch = study.next_epoch()
        assert epoch.encoding.residual.width <= ahead[number].clip * (1 + 1e-12)
        stds = plan.noise_of_sum(epoch.encoding, epoch.length).stds(plan.map)
        counts, phi = epoch.policy.counts, plan.map(epoch.policy.menu)
        values = np.sin(3.0 * epoch.policy.menu[:, 0]) / 3 / plan.half_width
        residuals = counts * (values - phi @ epoch.encoding.residual.prediction)
        sums = np.append(epoch.encoding.along(phi).T @ residuals, 0.0)
        drawn = np.ldexp(sums, epoch.encoding.bits) + stds * rng.standard_normal(len(stds))
        study = study.opened(epoch).released(_release(plan, epoch, np.rint(drawn)))
        width = study.belief.margins[study.belief.active].max()
        assert width <= ahead[number].width * (1 + 1e-9)


def _release(plan, epoch, integers):
    from discreet.agreement.release import Release

    return Release(
        epoch=epoch.digest,
        previous=epoch.previous,
        asks=epoch.length,
        reports=epoch.length if plan.is_local else None,
        integers=integers.astype(np.int64),
        private=False,
    )


def test_silent_people_cannot_hide_the_best_arm():
    """A tenth of each phase never answers: those whose answers would speak for the best arm."""
    premises = Elimination(net=20, means=(0.0, 1.0), silence=0.1)
    plan = make_plan(privacy=NonPrivate(), elimination=premises, horizon=None)
    counted = {"good": 0, "silent": 0}

    def answer(trial):
        near = abs(trial.action["dose"] - 3.0) < 1.5
        if near and counted["silent"] < 0.1 * max(trial.number, 1) - 1:
            counted["silent"] += 1
            return None
        return dose_response(trial)

    bandit = run_bandit(plan, answer, 2400)
    bandit.finish()
    belief = bandit.study.belief
    assert counted["silent"] > 100
    assert belief.active[np.argmax(bump(belief.arms.points))]
    off = np.abs(belief.estimates * plan.half_width + plan.centre - bump(belief.arms.points))
    assert (off <= belief.margins * plan.half_width)[belief.active].all()


def test_a_declared_misfit_is_in_the_width():
    """A function that is off the features by the misfit at every arm, in the worst pattern."""
    calm = {"privacy": NonPrivate(), "noise_std": 0.01}
    exact = make_plan(elimination=Elimination(net=20, misfit=0.0), **calm)
    rough = make_plan(elimination=Elimination(net=20, misfit=0.05), **calm)

    def mean(points):
        return bump(points) + 0.05 * np.sign(np.sin(60.0 * points[:, 0]))

    for plan, covered in ((exact, False), (rough, True)):
        plan = replace(plan, horizon=None)
        study, contained = Study(plan), True
        truth = (mean(arms_of(plan).points) - plan.centre) / plan.half_width
        for _ in range(5):
            epoch = study.next_epoch()
            counts, phi = epoch.policy.counts, plan.map(epoch.policy.menu)
            answers = counts * (mean(epoch.policy.menu) - plan.centre) / plan.half_width
            residuals = answers - counts * (phi @ epoch.encoding.residual.prediction)
            sums = np.append(epoch.encoding.along(phi).T @ residuals, 0.0)
            integers = np.trunc(np.ldexp(sums, epoch.encoding.bits))
            study = study.opened(epoch).released(_release(plan, epoch, integers))
            off = np.abs(study.belief.estimates - truth)
            contained &= bool((off <= study.belief.margins).all())
        assert contained == covered


def test_coin_flips_are_never_clipped():
    """Rewards at the ends of their range: a residual from a prediction could be wider than it."""
    plan = make_plan(
        rewards=(0.0, 1.0), noise_std=None, elimination=Elimination(net=20), horizon=None
    )
    rng = np.random.default_rng(9)

    def flip(trial):
        mean = 0.9 * float(bump(np.array([[trial.action["dose"] / 10]]))[0])
        return float(rng.random() < mean)

    bandit = run_bandit(plan, flip, 1200)
    bandit.finish()
    for epoch in bandit.study.epochs:
        residual = epoch.encoding.residual
        predicted = plan.map(epoch.policy.menu) @ residual.prediction
        for end in (-1.0, 1.0):
            assert (np.abs(end - predicted) <= residual.width * (1 + 1e-12)).all()
    belief = bandit.study.belief
    truth = (0.9 * bump(belief.arms.points) - plan.centre) / plan.half_width
    assert (np.abs(belief.estimates - truth) <= belief.margins).all()


def test_the_bound_grows_slower_than_rounds_and_privacy_is_added():
    plans = {
        name: class_plan(privacy)
        for name, privacy in (("none", NonPrivate()), ("joint", JointDP(1.0, 0.1)))
    }
    bounds = {name: [regret_bound(plan, 10**k) for k in (6, 7, 8)] for name, plan in plans.items()}
    for own in bounds.values():
        assert own[1] < 5.5 * own[0]
    added = [joint - none for joint, none in zip(bounds["joint"], bounds["none"], strict=True)]
    assert added[2] < 2.0 * added[0]


# -- nets


@pytest.mark.parametrize(
    "kernel",
    [
        SquaredExponential(0.3),
        SquaredExponential((0.2, 0.6)),
        Matern(2.5, 0.4),
        Matern(2.5, 0.4, "product"),
        Matern(1.5, 0.4),
        Matern(0.5, 0.6),
        Additive.over(SquaredExponential(0.3), 2),
    ],
)
def test_no_function_rises_above_the_net_by_more_than_its_error(kernel):
    side = np.linspace(0.0, 1.0, 9)
    net = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    fine = np.linspace(0.0, 1.0, 129)
    box = np.stack(np.meshgrid(fine, fine), -1).reshape(-1, 2)
    allowed = net_error(kernel, np.full(2, 1 / 16))
    rng = np.random.default_rng(4)
    worst = 0.0
    for _ in range(60):
        centres, weights = rng.random((5, 2)), rng.standard_normal(5)
        norm = math.sqrt(weights @ kernel(centres, centres) @ weights)
        rise = (kernel(box, centres) @ weights).max() - (kernel(net, centres) @ weights).max()
        worst = max(worst, rise / norm)
    assert 0.02 * allowed < worst <= allowed


def test_a_kernel_without_a_known_error_needs_arms():
    with pytest.raises(InvalidArgument, match="net_error"):
        net_error(Linear(), np.array([0.1]))
    plan = make_plan(kernel=Polynomial(2), elimination=Elimination(net=5, net_error=0.1))
    assert arms_of(plan).net_error * plan.half_width == pytest.approx(0.1)


# -- what is refused


@pytest.mark.parametrize(
    ("changes", "argument", "words"),
    [
        ({"norm": None}, "norm", "rests on"),
        ({"decisions": "candidates"}, "decisions", "elimination chooses from public arms"),
        ({"encoding": "gram"}, "encoding", "'reward' with elimination"),
        ({"looks": (0.8, 0.6)}, "looks", "own people"),
        ({"confidence": None, "norm": None}, "elimination", "nothing without confidence"),
        ({"elimination": Elimination(net=5000)}, "elimination", "at most 4096 arms"),
        ({"elimination": Elimination(arms=((1.0,), (1.0,)))}, "elimination", "different arms"),
        ({"elimination": Elimination(means=(-1.0, 1.0))}, "elimination.means", "within that"),
        (
            {"domain": Box({"x": (0, 1), "y": (0, 1)}, shape="ball")},
            "elimination",
            "no known error",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(changes, argument, words):
    with pytest.raises(InvalidArgument, match=words) as caught:
        make_plan(**changes)
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    "settings",
    [
        {"failure": 0.0},
        {"failure": 1.0},
        {"silence": 1.0},
        {"silence": -0.1},
        {"misfit": -1.0},
        {"net": 1},
        {"means": (1.0, 0.0)},
    ],
)
def test_premises_are_checked(settings):
    with pytest.raises(InvalidArgument, match="elimination"):
        Elimination(**settings)


@pytest.mark.parametrize("counts", [[150], [-1, 151], [75, 76], [2**62, 2**62]])
def test_an_epoch_whose_counts_do_not_fit_is_refused(counts):
    plan = make_plan()
    epoch = Study(plan).next_epoch()
    policy = replace(epoch.policy, menu=epoch.policy.menu[:2], counts=np.array(counts))
    with pytest.raises(Refused, match="policy does not fit"):
        check_epoch(plan, replace(epoch, policy=policy))


def test_other_plans_have_no_certificate():
    plan = Plan(domain=Box({"dose": (0, 10)}), privacy=NonPrivate())
    assert Study(plan).certificate is None
    assert isinstance(Study(make_plan()).belief, Remaining)
