"""The trusted side: what comes in is counted once, and only releases come out."""

import itertools
import pickle
import tracemalloc

import numpy as np
import pytest
from tests.support.plain_sums import LookedAt

from discreet import Box, JointDP, NonPrivate, Plan, Schedule, Simulation, SquaredExponential
from discreet.errors import DiscreetError, InvalidArgument, TrialClosed, UnknownTrial
from discreet.learning.study import Study
from discreet.privacy.looks import FOUR_LOOKS
from discreet.protocol.records import Abandoned, Asked, Told
from discreet.trusted.mechanism import release as release_of
from discreet.trusted.privatizer import Privatizer
from discreet.trusted.randomness import OperatingSystem, source
from discreet.trusted.sums import Sums

POINTS = np.linspace(0.05, 0.95, 6)[:, None]
REWARDS = np.array([0.1, 0.9, 0.4, 0.0, 1.0, 0.3])


def make_plan(**parts):
    defaults = {
        "domain": Box({"dose": (0, 10)}),
        "privacy": NonPrivate(),
        "kernel": SquaredExponential(0.4),
        "schedule": Schedule(first=6, growth=1.5),
        "expire_after": 4,
    }
    return Plan(**(defaults | parts))


PLANS = {name: make_plan(encoding=name) for name in ("gram", "fourier", "reward")}
PLAN = PLANS["gram"]
EPOCH = Study(PLAN).next_epoch()


def make_privatizer(plan=PLAN, epoch=EPOCH, simulation=None):
    privatizer = Privatizer(plan, simulation)
    privatizer.open(epoch)
    return privatizer


def integers_of(plan, epoch, numbers):
    """The sums of some rounds, computed without privatizer, session or sums."""
    centred = 2 * REWARDS - 1
    encoded = epoch.encoding.encode(plan.map, POINTS, centred)
    return sum((encoded[n].astype(object) for n in numbers), np.zeros(encoded.shape[1], object))


def outcome(privatizer, step, asked):
    """Do a step and say what happened: None, or the class of the error."""
    kind, number = step
    try:
        if kind == "ask":
            privatizer.ask(Asked(asked, POINTS[asked]))
        elif kind == "tell":
            privatizer.tell(Told(number, float(REWARDS[number])))
        else:
            privatizer.abandon(Abandoned(number))
    except DiscreetError as error:
        return type(error)
    return None


def test_no_sequence_of_calls_counts_an_answer_twice_or_loses_one():
    steps = [("ask", None), *itertools.product(("tell", "abandon"), (0, 1))]
    counts = set()
    for sequence in itertools.product(steps, repeat=5):
        privatizer = make_privatizer()
        asked, open_rounds, told = 0, set(), []
        for kind, number in sequence:
            expected = None
            if kind != "ask" and number not in open_rounds:
                expected = TrialClosed if number < asked else UnknownTrial
            if kind == "ask" and asked == 4:  # round 0 expires
                open_rounds.discard(0)
            assert outcome(privatizer, (kind, number), asked) is expected
            if kind == "ask":
                open_rounds.add(asked)
                asked += 1
            elif expected is None:
                open_rounds.remove(number)
                told += [number] if kind == "tell" else []
        assert set(privatizer.session.open_rounds) == open_rounds
        counts.add(tuple(told))
        assert privatizer.release().integers.tolist() == list(integers_of(PLAN, EPOCH, told))
    assert counts == {(), (0,), (1,), (0, 1), (1, 0)}  # the sequences do reach every case


@pytest.mark.parametrize("name", PLANS)
def test_answers_in_any_order_give_the_same_bytes(name):
    plan = PLANS[name]
    epoch = Study(plan).next_epoch()
    digests = set()
    for order in [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)]:
        privatizer = make_privatizer(plan, epoch)
        for number in range(4):
            privatizer.ask(Asked(number, POINTS[number]))
        for number in order:
            privatizer.tell(Told(number, float(REWARDS[number])))
        digests.add(privatizer.release().digest)
    assert len(digests) == 1


def test_a_late_answer_is_counted_once_in_the_epoch_that_is_open():
    study = Study(PLAN).opened(EPOCH)
    privatizer = make_privatizer()
    early, late = EPOCH.length - 2, EPOCH.length - 1
    for number in range(EPOCH.length):
        privatizer.ask(Asked(number, POINTS[1 if number == late else 0]))
    privatizer.tell(Told(early, float(REWARDS[0])))
    first = privatizer.release()
    study = study.released(first)
    following = study.next_epoch()
    privatizer.open(following)
    privatizer.tell(Told(late, float(REWARDS[1])))
    second = privatizer.release()
    assert first.integers.tolist() == list(integers_of(PLAN, EPOCH, [0]))
    assert second.integers.tolist() == list(integers_of(PLAN, following, [1]))
    with pytest.raises(TrialClosed):
        privatizer.tell(Told(late, 0.5))
    assert privatizer.release().digest == second.digest


def test_an_answer_that_never_comes_contributes_the_zero_vector():
    with_silence, without = make_privatizer(), make_privatizer()
    for privatizer in (with_silence, without):
        privatizer.ask(Asked(0, POINTS[0]))
        privatizer.tell(Told(0, 0.7))
    with_silence.ask(Asked(1, POINTS[1]))
    with_silence.ask(Asked(2, POINTS[2]))
    with_silence.abandon(Abandoned(1))
    assert with_silence.release().integers.tolist() == without.release().integers.tolist()
    assert (with_silence.release().asks, without.release().asks) == (3, 1)


def test_a_reward_outside_the_range_counts_as_the_end_of_the_range():
    digests = set()
    for reward in (1.0, 1.5, 987654.25):
        privatizer = make_privatizer()
        privatizer.ask(Asked(0, POINTS[0]))
        privatizer.tell(Told(0, reward))
        digests.add(privatizer.release().digest)
    assert len(digests) == 1


def test_what_the_privatizer_holds_does_not_grow_with_the_rounds_told():
    privatizer = make_privatizer()
    sizes = []
    for number in range(5_000):
        privatizer.ask(Asked(number, POINTS[number % 6]))
        privatizer.tell(Told(number, float(REWARDS[number % 6])))
        if number + 1 in (1_000, 5_000):
            sizes.append(len(pickle.dumps(vars(privatizer))))
    assert sizes[0] == sizes[1]


def test_a_release_is_chained_to_its_epoch_and_claims_no_privacy():
    release = make_privatizer().release()
    assert (release.epoch, release.previous) == (EPOCH.digest, EPOCH.previous)
    assert release.private is False


def test_a_release_does_not_change_when_the_sums_go_on():
    sums = Sums(EPOCH.encoding.size(PLAN.map))
    release = release_of(PLAN, EPOCH, sums, asks=0, bits=OperatingSystem())
    sums.add(np.ones(sums.total.size, dtype=np.int64))
    assert not release.integers.any()
    with pytest.raises(ValueError, match="read-only"):
        release.integers[0] = 1


@pytest.mark.parametrize(
    "integers", [np.zeros(2, np.int64), np.zeros(3), np.zeros((1, 3), np.int64)]
)
def test_sums_refuse_what_is_not_an_encoded_round(integers):
    sums = Sums(3)
    with pytest.raises(InvalidArgument, match="3 64-bit integers"):
        sums.add(integers)
    assert sums.total.tolist() == [0, 0, 0]


# -- under joint privacy

PRIVATE = JointDP(epsilon=2.0, delta=1e-3)
PUBLIC_ACTIONS = {
    "privacy": JointDP(epsilon=2.0, delta=1e-3, protect="rewards"),
    "decisions": "candidates",
    "public_decisions": True,
}
PRIVATE_PLANS = {
    "gram": make_plan(privacy=PRIVATE, decisions="candidates", encoding="gram"),
    "fourier": make_plan(privacy=PRIVATE, decisions="candidates", encoding="fourier"),
    "reward": make_plan(privacy=PRIVATE, encoding="reward"),
    "announced": make_plan(encoding="announced", **PUBLIC_ACTIONS),
}


@pytest.mark.parametrize("name", PRIVATE_PLANS)
def test_noise_is_drawn_once_however_often_a_release_is_asked_for(name):
    plan = PRIVATE_PLANS[name]
    privatizer = make_privatizer(plan, Study(plan).next_epoch())
    privatizer.ask(Asked(0, POINTS[0], "someone"))
    release = privatizer.release()
    assert release.private is True
    assert privatizer.release() is release
    privatizer.tell(Told(0, 0.7))
    assert privatizer.release() is release  # not another draw, not even for other sums


@pytest.mark.parametrize("name", PRIVATE_PLANS)
def test_a_release_is_the_exact_sums_plus_noise_of_the_stated_size(name):
    """|noise| / std is below 7 in every coordinate (false alarms below 1e-8 in all)."""
    plan = PRIVATE_PLANS[name]
    epoch = Study(plan).next_epoch()
    releases, expected = [], 0
    for _ in range(2):
        privatizer = make_privatizer(plan, epoch)
        for number in range(4):
            privatizer.ask(Asked(number, POINTS[number], f"user {number}"))
        for number in (2, 0, 3):
            privatizer.tell(Told(number, float(REWARDS[number])))
        releases.append(privatizer.release())
    expected = integers_of(plan, epoch, [0, 2, 3]).astype(np.int64)
    if name == "announced":  # every ask, answered or not
        expected += epoch.encoding.announce(plan.map, POINTS[:4]).sum(axis=0)
    stds = epoch.encoding.stds(plan.map)
    for release in releases:
        noise = release.integers - expected
        assert (noise[stds == 0] == 0).all()
        assert (np.abs(noise[stds > 0]) < 7 * stds[stds > 0]).all()
    assert (releases[0].integers != releases[1].integers)[stds > 0].all()
    assert (stds > 0).any()


@pytest.mark.parametrize("name", PRIVATE_PLANS)
def test_a_simulation_repeats_its_noise_and_says_that_it_is_not_private(name):
    plan = PRIVATE_PLANS[name]
    epoch = Study(plan).next_epoch()
    one, two, other = (
        make_privatizer(plan, epoch, Simulation(seed)).release() for seed in (1, 1, 2)
    )
    assert one.digest == two.digest != other.digest
    assert (one.private, other.private) == (False, False)


def test_without_privacy_nothing_is_called_private():
    assert make_privatizer().release().private is False


# -- rounds that are looked at again

AGAIN = {"privacy": PRIVATE, "schedule": Schedule(first=6, growth=1.3)}
LOOKS = [(1.0,), (0.8, 0.6), FOUR_LOOKS]


def fate(number):
    """What becomes of a round: (answered after so many further asks, or None; abandoned)."""
    if number % 7 == 3:
        return None, True
    if number % 11 == 5:
        return None, False  # it expires
    return (3 if number % 5 == 2 else 0), False


class Played:
    """A study played through, and what its releases should hold by the plain sums of `looked`."""

    def __init__(self, plan, seed=3):
        self.plan, self.simulation = plan, Simulation(seed)
        self.privatizer, self.study = Privatizer(plan, self.simulation), Study(plan)
        self.looked_at, self.points, self.due = LookedAt(plan), {}, {}
        self.told, self.fates = [], {"late": 0, "abandoned": 0, "expired": 0}

    def answer(self, number):
        reward = (number * 0.6180339887498949) % 1.0
        self.privatizer.tell(Told(number, self.plan.clip(reward)))
        self.told.append((self.points[number], self.plan.centred(reward)))

    def ask(self, epoch, number):
        self.points[number] = epoch.policy.from_menu(number - epoch.first)
        self.privatizer.ask(Asked(number, self.points[number], f"user {number}"))
        delay, abandoned = fate(number)
        if abandoned:
            self.privatizer.abandon(Abandoned(number))
            self.fates["abandoned"] += 1
        elif delay is None:
            self.fates["expired"] += 1
        else:
            self.due.setdefault(number + delay, []).append(number)
        for other in self.due.pop(number, []):
            self.fates["late"] += other < epoch.first
            self.answer(other)

    def epoch(self):
        """One more epoch: the sums behind its release, and those that were to be expected."""
        epoch = self.study.next_epoch()
        self.study, self.told = self.study.opened(epoch), []
        self.privatizer.open(epoch)
        for number in range(epoch.first, epoch.end):
            self.ask(epoch, number)
        release = self.privatizer.release()
        self.study = self.study.released(release)
        points = np.array([point for point, _ in self.told]).reshape(len(self.told), -1)
        rewards = np.array([reward for _, reward in self.told])
        return self.exact(epoch, release), self.looked_at.sums(epoch, points, rewards)

    def exact(self, epoch, release):
        """A release without its noise, which is that of the seed."""
        nothing = Sums(release.integers.size)
        bits = source(self.simulation, epoch.number)
        return release.integers - release_of(self.plan, epoch, nothing, asks=0, bits=bits).integers


@pytest.mark.parametrize("looks", LOOKS, ids=len)
def test_a_release_sums_its_own_rounds_and_those_it_looks_at_again(looks):
    """Nine epochs, integer by integer: with late answers, abandoned and expired trials."""
    plan = make_plan(**AGAIN, looks=looks)
    played = Played(plan)
    for _ in range(9):
        exact, expected = played.epoch()
        assert exact.tolist() == expected.tolist()
    assert min(played.fates.values()) >= 2


@pytest.mark.parametrize("looks", LOOKS, ids=len)
def test_rounds_out_of_sight_are_dropped_and_those_kept_take_a_few_bytes(looks):
    """What is kept: the answers of as many epochs as there are looks, 8 (d + 1) bytes each."""
    plan = make_plan(**AGAIN, looks=looks, domain=Box({"dose": (0, 10), "age": (18, 90)}))
    played, counts = Played(plan), []
    for _ in range(9):
        played.epoch()
        counts.insert(0, len(played.told))
        later = counts[:-1]  # the first epoch is looked at once
        in_sight = later[: len(looks)] if len(looks) > 1 else []
        kept = [each for each in played.privatizer._rounds if each.rewards]
        assert [len(each.rewards) for each in kept] == in_sight
        held = sum(a.itemsize * len(a) for each in kept for a in (each.points, each.rewards))
        assert held == 8 * (2 + 1) * sum(in_sight)


def test_rounds_that_are_kept_do_not_show_themselves():
    played = Played(make_plan(**AGAIN, looks=FOUR_LOOKS))
    for _ in range(2):
        played.epoch()
    kept = played.privatizer._rounds[0]
    assert len(kept.rewards) > 0
    assert "array" not in repr(kept)


def test_what_is_held_per_round_is_its_bytes_and_nothing_else():
    """By the pickled size: within two bytes a round of 8 (d + 1)."""
    plan = make_plan(privacy=PRIVATE, schedule=Schedule(first=2, growth=1.0, second=5_000))
    played, sizes = Played(plan), {}
    played.epoch()
    epoch = played.study.next_epoch()
    played.privatizer.open(epoch)
    for number in range(epoch.first, epoch.end):
        played.privatizer.ask(Asked(number, epoch.policy.from_menu(number - epoch.first)))
        played.privatizer.tell(Told(number, 0.5))
        if number in (1_000, 4_000):
            sizes[number] = len(pickle.dumps(vars(played.privatizer)))
    assert sizes[4_000] - sizes[1_000] == pytest.approx(3_000 * 16, abs=2 * 3_000)


def test_the_order_of_answers_does_not_show_when_they_are_looked_at_again():
    plan = make_plan(privacy=PRIVATE, schedule=Schedule(first=4, growth=1.0, second=40))
    digests = set()
    for seed in range(4):
        simulation = Simulation(1)
        privatizer, study, asked = Privatizer(plan, simulation), Study(plan), 0
        for _ in range(4):
            epoch = study.next_epoch()
            study = study.opened(epoch)
            privatizer.open(epoch)
            for number in range(asked, epoch.end):
                point = epoch.policy.from_menu(number - epoch.first)
                privatizer.ask(Asked(number, point, f"user {number}"))
                if number % 4 == 3:
                    for other in np.random.default_rng(seed).permutation(4):
                        told = number - int(other)
                        privatizer.tell(Told(told, (told * 0.618) % 1.0))
            asked = epoch.end
            study = study.released(privatizer.release())
        digests.add(study.releases[-1].digest)
    assert len(digests) == 1


def test_looking_again_at_many_rounds_takes_little_memory():
    """10,000 rounds of 0.2 MB; all their features at once would take 4 MB, several times over."""
    plan = make_plan(
        privacy=PRIVATE,
        kernel=SquaredExponential(0.02),
        schedule=Schedule(first=2, growth=1.0, second=10_000),
    )
    assert 8 * plan.map.dimension * 10_000 > 4e6
    played = Played(plan)
    played.epoch()
    epoch = played.study.next_epoch()
    played.study = played.study.opened(epoch)
    played.privatizer.open(epoch)
    point = epoch.policy.from_menu(0)
    for number in range(epoch.first, epoch.end):
        played.privatizer.ask(Asked(number, point))
        played.privatizer.tell(Told(number, 0.5))
    played.study = played.study.released(played.privatizer.release())
    following = played.study.next_epoch()
    tracemalloc.start()
    try:
        played.privatizer.open(following)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3e6
    one = following.encoding.encode(plan.map, point[None, :], np.zeros(1), plan.looks[1])[0]
    assert played.exact(following, played.privatizer.release()).tolist() == (10_000 * one).tolist()
