"""Studies with correlated noise: the paper's algorithm in the real bandit."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.contracts.streams import silent_plan
from tests.support.journals import ListJournal, decoded

from discreet import (
    Bandit,
    Box,
    Custodian,
    Exploration,
    JointDP,
    Learned,
    LocalDP,
    NonPrivate,
    Plan,
    Publisher,
    Schedule,
    Simulation,
    SquaredExponential,
    Study,
)
from discreet.agreement.release import Release
from discreet.errors import InvalidArgument, Refused, StudyEnded
from discreet.learning.epoch import Epoch
from discreet.learning.information import volume
from discreet.learning.prefix_belief import PrefixBelief, Proven
from discreet.learning.theory import width
from discreet.privacy.clipping import Noise, Residual
from discreet.privacy.correlation import BLT, SquareRoot, Tree
from discreet.privacy.fourier import FourierEncoding
from discreet.privacy.gram import GramEncoding
from discreet.protocol.messages import Answer, Ask
from discreet.protocol.records import Asked, Told, UserKey
from discreet.simulation.play import Setting, simulate
from discreet.storage import canonical
from discreet.trusted import mechanism
from discreet.trusted.randomness import OperatingSystem

NOISES = ["tree", "square root", "blt"]


def make_plan(noise, releases=6, **given):
    return silent_plan(noise, releases, **({"kernel_error": 1e-2} | given))


def candidates(number):
    return np.random.default_rng(number).uniform(0, 10, (4, 1))


def reward(number):
    return (number * 0.6180339887498949) % 1.0


def step(bandit, number):
    """One round: some answer late, some never."""
    trial = bandit.ask(candidates(number), user=f"user {number}")
    if number % 4 != 1:
        bandit.tell(trial, reward(number))
    if number % 4 == 2:
        bandit.tell(number - 1, reward(number - 1))


# -- a release is a node


@pytest.mark.parametrize("encoding", ["gram", "fourier"])
@pytest.mark.parametrize("noise", NOISES)
def test_but_for_noise_the_posterior_has_the_sums_of_all_rounds(noise, encoding, monkeypatch):
    """Of every answered round, once, the late ones included: with the noise taken out."""
    monkeypatch.setattr(mechanism, "noisy", lambda totals, stds, bits: totals)
    plan = make_plan(noise, encoding=encoding)
    bandit = Bandit(plan)
    for number in range(6):
        step(bandit, number)  # the last one does not answer
    bandit.finish()
    belief = bandit.study.belief
    assert isinstance(belief, PrefixBelief)
    assert belief.asked == 6
    counted = bandit._sides._custody._privatizer
    rows = counted._past.followed_by(counted._sums)
    exact = plan.correlated.encoding.decode(plan.map, rows.sum(axis=0), asks=6)
    told = sum(plan.centred(reward(number)) ** 2 for number in range(5))
    assert exact.spread == pytest.approx(told, abs=1e-2)
    std = plan.correlated.encoding.noise.gram * plan.stream.std(6)
    V = belief.rule.positive(exact.gram, std, plan.noise_variance / plan.signal_variance)
    found = belief.posterior
    np.testing.assert_allclose(found.precision * plan.noise_variance, V, atol=1e-4)
    np.testing.assert_allclose(found.information * plan.noise_variance, exact.cross, atol=1e-4)


@pytest.mark.parametrize("noise", NOISES)
def test_noise_is_as_large_as_the_errata_say(noise):
    """sigma_X = norm (1 + q) / mu at q = 1; rounding adds next to nothing."""
    plan = make_plan(noise, 64)
    assert plan.correlated.encoding.noise.gram == pytest.approx(
        2 * plan.stream.norm / plan.mu, rel=1e-3
    )
    assert plan.correlated.encoding.noise.gram >= 2 * plan.stream.norm / plan.mu * (1 - 1e-12)
    if noise == "tree":
        assert plan.stream.norm == pytest.approx(math.sqrt(7))


def test_several_rounds_of_one_person_share_the_budget():
    one, three = (
        make_plan("tree", 64, privacy=JointDP(1.0, 0.01, rounds_per_user=k)) for k in (1, 3)
    )
    assert three.correlated.encoding.noise.gram == pytest.approx(
        3 * one.correlated.encoding.noise.gram, rel=1e-5
    )
    bandit = Bandit(three)
    for _ in range(3):
        bandit.ask(candidates(0), user="the same")
    with pytest.raises(Refused, match="3 of 3 rounds"):
        bandit.ask(candidates(0), user="the same")


def distance(plan, histories):
    """How far apart the nodes of two histories are, in standard deviations of their noise.

    A history is (release, point, reward) of each of one person's rounds.
    """
    totals = np.zeros(
        (2, plan.stream.releases, plan.correlated.encoding.size(plan.map)), dtype=np.int64
    )
    rng = np.random.default_rng(1)
    totals += rng.integers(-(2**30), 2**30, totals.shape[1:])  # everyone else
    for world, rounds in zip(totals, histories, strict=True):
        for release, point, centred in rounds:
            own = plan.correlated.encoding.encode(
                plan.map, np.array([[point]]), np.array([centred])
            )
            world[release] += own[0]
    one, two = ([plan.stream.node(world[: k + 1]) for k in range(len(world))] for world in totals)
    return np.linalg.norm((np.array(one) - np.array(two)) / plan.correlated.encoding.stds(plan.map))


@pytest.mark.parametrize("encoding", ["gram", "fourier"])
@pytest.mark.parametrize("noise", NOISES)
def test_no_two_histories_of_one_person_are_further_apart_than_is_promised(noise, encoding):
    """Other actions and answers, silence, and answers that come with any release."""
    rounds = 3
    plan = make_plan(noise, encoding=encoding, privacy=JointDP(1.0, 0.01, rounds_per_user=rounds))
    rng, found = np.random.default_rng(4), []
    for _ in range(300):
        histories = []
        for _ in range(2):
            count = int(rng.integers(0, rounds + 1))
            times = rng.integers(plan.stream.releases, size=count) * int(rng.integers(0, 2))
            points = rng.random(count) if rng.random() < 0.5 else np.full(count, 0.3)
            ends = rng.choice([-1.0, 1.0]) * np.ones(count)
            answers = ends if rng.random() < 0.7 else rng.uniform(-1, 1, count)
            histories.append(list(zip(times, points, answers, strict=True)))
        found.append(distance(plan, histories))
    worst = distance(plan, [[(0, 0.3, 1.0)] * rounds, [(0, 0.3, -1.0)] * rounds])
    assert max(found) <= rounds * plan.mu
    assert 0.98 * rounds * plan.mu < worst <= rounds * plan.mu


@pytest.mark.parametrize("noise", NOISES)
def test_the_guarantee_says_how_noise_is_correlated(noise):
    plan = make_plan(noise)
    assert plan.guarantee.startswith(plan.privacy.guarantee)
    assert f"column norm {plan.stream.norm:.4g}" in plan.guarantee
    assert "all came with one release, the worst case" in plan.guarantee
    bandit = Bandit(plan)
    assert bandit.guarantee == plan.guarantee
    assert Bandit(plan, simulation=Simulation(1)).guarantee.endswith(plan.guarantee)


# -- once drawn, never again


class Batches(ListJournal):
    """A journal that knows what was committed together."""

    def __init__(self, kept=()):
        super().__init__(kept)
        self.ends = []

    def append(self, *records):
        super().append(*records)
        self.ends.append(len(self.kept))


def go_on(bandit, records):
    """Do again what these records say was done."""
    for data in records:
        record = decoded(Bandit, data)
        if isinstance(record, Asked):
            bandit.ask(candidates(record.number), user=f"user {record.number}")
        elif isinstance(record, Told):
            bandit.tell(record.number, record.reward)
    bandit.finish()


@pytest.mark.parametrize("noise", NOISES)
def test_a_restart_between_any_two_steps_changes_nothing(noise, monkeypatch):
    """Cut the journal after every commit: no draw is repeated, and all releases are the same."""
    plan, journal, draws = make_plan(noise), Batches(), []
    bandit = Bandit(plan, journal, simulation=Simulation(1))
    for number in range(6):
        step(bandit, number)
    bandit.finish()
    releases = [release.digest for release in bandit.study.releases]
    assert len(releases) == 6
    real = mechanism.release
    monkeypatch.setattr(
        mechanism, "release", lambda *a, **k: draws.append(a[1].number) or real(*a, **k)
    )
    for end in journal.ends:
        resumed = Bandit(plan, ListJournal(journal.kept[:end]), simulation=Simulation(1))
        begun = len(resumed.study.releases)
        assert [release.digest for release in resumed.study.releases] == releases[:begun]
        draws.clear()
        go_on(resumed, journal.kept[end:])
        assert draws == list(range(begun, 6))
        assert [release.digest for release in resumed.study.releases] == releases


@pytest.mark.parametrize("noise", NOISES)
def test_a_resumed_study_releases_the_same_nodes(noise):
    """Sums of closed epochs are rebuilt from answers; nothing of the noise is kept anywhere."""
    plan, journal = make_plan(noise), ListJournal()
    bandit = Bandit(plan, journal)
    for number in range(5):
        step(bandit, number)
    resumed = Bandit(plan, ListJournal(journal.kept))
    for one in (bandit, resumed):
        counted = one._sides._custody._privatizer
        one.node = mechanism.total(plan, counted._sums, counted._past)
    assert (bandit.node == resumed.node).all()
    records = [decoded(Bandit, data) for data in journal.kept[2:]]
    assert {type(record) for record in records} == {UserKey, Epoch, Release, Asked, Told}


def test_a_release_that_could_not_be_kept_is_not_drawn_again():
    plan, journal = make_plan("blt"), ListJournal()
    bandit = Bandit(plan, journal)
    step(bandit, 0)
    journal.failing = True
    for _ in range(2):
        with pytest.raises(Exception, match="disk is full"):
            bandit.ask(candidates(1), user="user 1")
    drawn = bandit._sides._custody._privatizer.release()
    journal.failing = False
    bandit.ask(candidates(1), user="user 1")
    assert bandit.study.releases == (drawn,)


@pytest.mark.parametrize("noise", NOISES)
def test_everything_public_follows_from_plan_and_releases(noise, tmp_path):
    plan = make_plan(noise, confidence="theory", norm=1.0)
    bandit = Bandit(plan)
    for number in range(6):
        step(bandit, number)
    bandit.finish()
    bandit.export(tmp_path / "study.json")
    loaded = Study.load(tmp_path / "study.json")
    study = Study(loaded.plan)
    for epoch, release in zip(loaded.epochs, loaded.releases, strict=True):
        anew = study.next_epoch()
        assert canonical.encode(anew) == canonical.encode(epoch)
        study = study.opened(anew).released(release)
    assert canonical.encode(study) == canonical.encode(bandit.study)
    assert study.best() == bandit.best()


# -- who may weaken it


@pytest.mark.parametrize("noise", NOISES)
def test_only_the_one_encoding_is_released(noise):
    plan = make_plan(noise)
    epoch = Study(plan).next_epoch()
    bandit = Bandit(plan)
    fixed = plan.correlated.encoding
    others = [
        GramEncoding.fit(plan.map, fixed.residual, plan.mu, 1.0, 10),  # forgets the norm
        replace(fixed, noise=Noise(fixed.noise.gram, fixed.noise.cross * (1 - 1e-9))),
        replace(fixed, bits=fixed.bits - 1),
        replace(fixed, residual=Residual(np.zeros(plan.map.dimension), 0.5)),
    ]
    assert plan.allows(fixed)
    for other in others:
        assert not plan.allows(other)
    with pytest.raises(Refused, match="weaker than the plan promises"):
        mechanism.release(
            plan,
            replace(epoch, encoding=others[0]),
            bandit._sides._custody._privatizer._sums,
            asks=0,
            bits=OperatingSystem(),
            past=bandit._sides._custody._privatizer._past,
        )


def test_a_node_without_the_sums_before_it_is_refused():
    plan = make_plan("tree")
    bandit = Bandit(plan)
    with pytest.raises(Refused, match="every epoch before it"):
        mechanism.release(
            plan,
            bandit.study.open_epoch,
            bandit._sides._custody._privatizer._sums,
            asks=0,
            bits=OperatingSystem(),
        )


@pytest.mark.parametrize("noise", NOISES)
def test_custodian_and_publisher_play_it_too(noise):
    plan = make_plan(noise, 4)
    custodian, publisher = Custodian(plan), Publisher(plan)
    custodian.open(publisher.opening)
    for number in range(4):
        name = f"{number:032x}"
        values = [{"dose": float(row[0])} for row in candidates(number)]
        custodian.choose(Ask(name, f"user {number}", candidates=values))
        custodian.receive(Answer(name, reward(number)))
        custodian.open(publisher.publish(custodian.release()))
    assert len(publisher.study.releases) == 4
    assert not publisher.study.is_running
    assert isinstance(publisher.study.belief, PrefixBelief)


# -- as proven


def test_in_theory_it_scores_by_the_theorem():
    """mean + W_t ||phi|| in the norm of V^-1, from the releases alone."""
    plan = make_plan("square root", rewards=(-0.5, 2.0), confidence="theory", norm=3.0)
    bandit = Bandit(plan)
    for number in range(4):
        step(bandit, number)
    study = bandit.study
    integers = np.array([release.integers for release in study.releases], dtype=float)
    B = np.tril(np.ones((3, 3))) @ np.linalg.inv(
        np.array([[1, 0, 0], [0.5, 1, 0], [0.375, 0.5, 1]])
    )
    found = plan.correlated.encoding.decode(plan.map, (B @ integers)[-1], asks=3)
    proven = Proven.of(
        plan, SquareRoot(), plan.correlated.encoding.noise, plan.stream.releases, 3.0 / 2.0
    )
    lift = proven.assumptions.regularisation + proven.spectrum.shift
    V = found.gram + lift * np.eye(len(found.cross))
    W = width(
        proven.spectrum,
        proven.assumptions,
        rounds=3,
        log_determinant=np.linalg.slogdet(V)[1],
        side=len(V),
        volume=volume(plan.map, 3, proven.assumptions.regularisation + proven.spectrum.smallest),
    )
    x = np.linspace(0, 1, 7)[:, None]
    phi, inverse = plan.map(x), np.linalg.inv(V)
    expected = phi @ inverse @ found.cross + W * np.sqrt(
        np.einsum("ni,ij,nj->n", phi, inverse, phi)
    )
    scores = study.open_epoch.policy.scores(plan.map, x)
    np.testing.assert_allclose(scores, [expected], rtol=1e-5)
    best = bandit.best()
    point = plan.domain.encode([[best.action["dose"]]])
    std = math.sqrt(plan.map(point)[0] @ inverse @ plan.map(point)[0])
    half = 2.0 * (W * std + proven.assumptions.norm * plan.map.error_bound)
    assert best.interval[1] - best.mean == pytest.approx(half, rel=1e-5)


def test_in_theory_rewards_are_scaled_but_not_centred():
    plan = make_plan("tree", rewards=(-0.5, 2.0), confidence="theory", norm=3.0)
    assert (plan.centre, plan.half_width) == (0.0, 2.0)
    assert plan.centred(-0.5) == -0.25
    practical = make_plan("tree", rewards=(-0.5, 2.0))
    assert (practical.centre, practical.half_width) == (0.75, 1.25)


# -- horizons


def test_a_schedule_of_every_round_is_the_default():
    plan = make_plan("tree", 20, schedule=None)
    assert [plan.epoch_length(n) for n in range(20)] == [1] * 20
    assert plan.stream.releases == 20


def test_releases_are_counted_from_the_schedule():
    plan = make_plan("tree", 100, schedule=Schedule(10, growth=2.0))
    assert plan.stream.releases == 5  # 10, 20, 40, 80, 100


def test_without_a_horizon_blt_pays_for_any():
    plan = make_plan("blt", horizon=None, schedule=None)
    assert plan.stream.endless
    assert plan.stream.norm >= plan.stream.strategy.sensitivity(None)
    assert plan.horizon is None
    assert plan.last > 10**6
    bandit = Bandit(plan)
    for number in range(10):
        step(bandit, number)
    bandit.finish()
    assert "any number of releases" in bandit.guarantee
    with pytest.raises(InvalidArgument, match="horizon"):
        make_plan("tree", horizon=None)


def test_finite_precision_ends_a_study_without_end():
    """So many releases that their slack is a quarter of delta; the plan says where that is."""
    plan = make_plan(
        "blt", horizon=None, privacy=JointDP(1.0, 1e-9), schedule=Schedule(1, growth=1.0)
    )
    assert 5 < plan.last < 200
    assert plan.last == plan.stream.releases
    bandit = Bandit(plan)
    for number in range(plan.last):
        bandit.abandon(bandit.ask(candidates(number), user=f"user {number}"))
    with pytest.raises(StudyEnded):
        bandit.ask(candidates(0), user="one more")
    bandit.finish()
    assert len(bandit.study.releases) == plan.last


def test_too_many_releases_for_a_small_delta_are_refused():
    with pytest.raises(InvalidArgument, match="fewer releases"):
        make_plan("square root", 2000, privacy=JointDP(1.0, 1e-8))


# -- what does not fit


@pytest.mark.parametrize(
    ("given", "name", "words"),
    [
        ({"noise": "pink"}, "noise", "one of 'independent', 'tree'"),
        ({"privacy": LocalDP(1.0, 0.1)}, "noise", "each report has noise of its own"),
        ({"privacy": NonPrivate()}, "noise", "no noise is there"),
        ({"kernel": Learned([SquaredExponential(0.2)])}, "noise", "one kernel"),
        ({"encoding": "reward", "decisions": "box"}, "encoding", "'gram' or 'fourier'"),
        ({"confidence": "bold"}, "confidence", "one of 'practical', 'theory'"),
        ({"confidence": "theory"}, "norm", "rests on"),
        ({"norm": 1.0}, "norm", "rests on"),
        ({"confidence": "theory", "norm": 0.0}, "norm", "above 0"),
        (
            {"confidence": "theory", "norm": 1.0, "exploration": Exploration(1.0, 0.0, 1)},
            "exploration",
            "which sets it",
        ),
        ({"noise": "independent", "confidence": "practical"}, "confidence", "prefix estimator"),
        ({"noise": None, "norm": 1.0}, "norm", "prefix estimator"),
        ({"buffers": BLT.fit(8)}, "buffers", "with noise='blt' alone"),
    ],
)
def test_a_plan_refuses_what_does_not_go_with_its_noise(given, name, words):
    with pytest.raises(InvalidArgument) as refused:
        make_plan(**({"noise": "tree", "encoding": "auto"} | given))
    assert str(refused.value).startswith(f"{name}: ")
    assert words in str(refused.value)


def test_a_prior_is_refused():
    earlier = Bandit(make_plan(None, 4))
    for number in range(4):
        step(earlier, number)
    earlier.finish()
    with pytest.raises(InvalidArgument, match="with a prior"):
        make_plan("tree", prior=earlier.study.prior())


def test_independent_noise_is_the_same_plan_named_or_not():
    assert make_plan("independent").digest == make_plan(None).digest
    assert make_plan("independent").noise is None


def test_a_correlated_plan_round_trips():
    for given in ({}, {"confidence": "theory", "norm": 2.0}):
        plan = make_plan("blt", **given)
        again = canonical.decode(Plan, canonical.encode(plan))
        assert again.digest == plan.digest
        assert canonical.digest(again.correlated.encoding) == canonical.digest(
            plan.correlated.encoding
        )
        assert again.buffers == plan.buffers == plan.stream.strategy  # fitted once, then stored


def test_the_default_encoding_has_noise_on_both_sums():
    box = Plan(
        domain=Box({"dose": (0, 10)}),
        privacy=JointDP(1.0, 0.01),
        noise="tree",
        horizon=20,
    )
    assert isinstance(box.correlated.encoding, FourierEncoding)
    bandit = Bandit(box)
    for number in range(20):
        bandit.tell(bandit.ask(user=f"user {number}"), reward(number))
    bandit.finish()
    assert len(bandit.study.releases) == 20


@pytest.mark.parametrize("noise", NOISES)
def test_simulations_play_it(noise):
    from discreet.simulation.problems import find_problem

    privacy = JointDP(1.0, 0.1)
    changes = {"noise": noise, "confidence": "theory", "norm": 1.0}
    setting = Setting("joint", 20, privacy=privacy, changes=changes)
    run = simulate(find_problem("synthetic"), setting, seed=1)
    assert len(run.study.releases) == 20
    assert np.isfinite(run.regrets).all()
    assert run.study.plan.confidence == "theory"
    assert isinstance(run.study.plan.stream.strategy, Tree) == (noise == "tree")
