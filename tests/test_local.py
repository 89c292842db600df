"""A bandit with a local plan: a client for each ask, a tally, and the same ask and tell."""

import threading

import numpy as np
import pytest
from tests.support.journals import ListJournal, decoded
from tests.support.local_plans import SETS, local_plan, local_plans

from discreet import (
    Bandit,
    Box,
    Categorical,
    Integer,
    LocalDP,
    Plan,
    Schedule,
    Simulation,
    SquaredExponential,
)
from discreet.errors import (
    InvalidArgument,
    JournalDamaged,
    JournalFailed,
    Refused,
    TrialClosed,
    UnknownTrial,
)
from discreet.learning.study import Study
from discreet.protocol.messages import Report, write
from discreet.protocol.records import Abandoned, Asked, Told
from discreet.storage import canonical

SCHEDULE = Schedule(first=4, growth=1.5)


def make_plan(**parts):
    return local_plan(**({"schedule": SCHEDULE} | parts))


PLANS = local_plans(schedule=SCHEDULE)
PLAN = PLANS["reward"]


def play(bandit, count, **decisions):
    for _ in range(count):
        number = bandit.asked
        trial = bandit.ask(user=f"user {number}", **decisions)
        assert trial.number == number
        bandit.tell(trial, 0.1 * (number % 11))


def digests(bandit):
    return [release.digest for release in bandit.study.releases]


# -- ask and tell


@pytest.mark.parametrize("name", PLANS)
def test_a_local_bandit_asks_tells_and_learns(name):
    bandit = Bandit(PLANS[name])
    play(bandit, 12, **SETS[name])
    bandit.finish()
    counts = [(r.asks, r.reports, r.private) for r in bandit.study.releases]
    assert counts == [(4, 4, True), (2, 2, True), (3, 3, True), (3, 3, True)]
    context = {"age": 61} if name == "context" else None
    assert 0 <= bandit.best(context=context).action["dose"] <= 10
    assert "Local differential privacy" in bandit.guarantee


DOMAINS = {
    "ball": Box({"x": (-1, 1), "y": (-1, 1)}, shape="ball"),
    "mixed": Box({"pills": Integer(1, 4), "arm": Categorical(["a", "b"])}),
    "feasible": Box({"x": (0, 1), "y": (0, 1)}, feasible="x + y <= 1"),
    "context": Box({"x": (0, 1), "pills": Integer(1, 4)}, context=["pills"]),
}


@pytest.mark.parametrize("decisions", ["whole", "candidates"])
@pytest.mark.parametrize("name", DOMAINS)
def test_every_kind_of_domain_passes_the_clients_checks(name, decisions):
    domain = DOMAINS[name]
    kind = {"decisions": "candidates"} if decisions == "candidates" else {}
    bandit = Bandit(make_plan(domain=domain, kernel=SquaredExponential(1.0), **kind))
    rng = np.random.default_rng(2)
    points = domain.spread(rng.random((40, len(domain.names))))
    actions = [domain.decode(point) for point in points]
    if name == "ball":
        actions += [{"x": 0.6, "y": 0.8}, {"x": -1.0, "y": 0.0}]  # its edge
    for n in range(9):
        given = {}
        if decisions == "candidates":
            given = {"candidates": actions[n::4]}
        elif name == "context":
            given = {"context": {"pills": 1 + n % 4}}
        bandit.tell(bandit.ask(user=str(n), **given), 0.5)
    assert [release.reports for release in bandit.study.releases] == [4, 2]


@pytest.mark.parametrize("name", PLANS)
def test_a_simulation_repeats_itself_and_claims_no_privacy(name):
    runs = []
    for seed in (1, 1, 2):
        bandit = Bandit(PLANS[name], simulation=Simulation(seed))
        play(bandit, 8, **SETS[name])
        bandit.finish()
        runs.append(digests(bandit))
        assert not any(release.private for release in bandit.study.releases)
        assert bandit.guarantee.startswith("A simulation")
    assert runs[0] == runs[1] != runs[2]


def test_real_noise_does_not_repeat_itself():
    runs = []
    for _ in range(2):
        bandit = Bandit(PLAN)
        play(bandit, 4)
        bandit.finish()
        runs.append(digests(bandit))
    assert runs[0] != runs[1]


def test_each_report_has_noise_of_its_own():
    """Two seeded asks of one action and reward differ in every integer (chance: below 1e-6)."""
    journal = ListJournal()
    plan = make_plan(decisions="candidates")
    bandit = Bandit(plan, journal, simulation=Simulation(1))
    for user in "ab":
        bandit.tell(bandit.ask([[5.0]], user=user), 0.5)
    records = [decoded(Bandit, data) for data in journal.kept]
    one, two = (record.integers for record in records if isinstance(record, Report))
    assert (one != two).all()


def test_a_release_is_the_sum_of_the_reports_in_the_journal():
    journal = ListJournal()
    bandit = Bandit(PLAN, journal)
    play(bandit, 3)
    bandit.finish()
    records = [decoded(Bandit, data) for data in journal.kept]
    reports = [record.integers for record in records if isinstance(record, Report)]
    assert bandit.study.releases[0].integers.tolist() == np.sum(reports, axis=0).tolist()


def test_no_reward_is_written_down():
    journal = ListJournal()
    bandit = Bandit(make_plan(rewards=(0.0, 1000.0)), journal)
    bandit.tell(bandit.ask(user="a"), 617.40625)
    records = [decoded(Bandit, data) for data in journal.kept]
    assert not any(isinstance(record, Told) for record in records)
    assert b"617.40625" not in b"".join(journal.kept)


# -- rounds end once, and with their epoch


def test_telling_twice_counts_once():
    bandit = Bandit(PLAN)
    trial = bandit.ask(user="a")
    bandit.tell(trial, 0.3)
    for _ in range(100):
        with pytest.raises(TrialClosed, match="already told or abandoned"):
            bandit.tell(trial, 0.9)
    bandit.finish()
    assert bandit.study.releases[0].reports == 1


def test_an_answer_after_its_epoch_closed_is_refused_as_expired():
    bandit = Bandit(PLAN)
    late = bandit.ask(user="late")
    play(bandit, 4)
    assert len(bandit.study.releases) == 1
    with pytest.raises(TrialClosed, match="its epoch is over"):
        bandit.tell(late, 0.5)
    with pytest.raises(TrialClosed, match="its epoch is over"):
        bandit.abandon(late)
    assert bandit.study.releases[0].reports == 3
    assert late.number not in bandit.open_trials


def test_an_answer_after_the_last_ask_of_its_epoch_still_counts():
    bandit = Bandit(PLAN)
    trials = [bandit.ask(user=str(n)) for n in range(4)]
    for trial in trials:
        bandit.tell(trial, 0.5)
    bandit.ask(user="next")
    assert bandit.study.releases[0].reports == 4


def test_an_abandoned_round_is_not_counted_and_an_unknown_one_is_not_taken():
    bandit = Bandit(PLAN)
    trial = bandit.ask(user="a")
    bandit.abandon(trial)
    with pytest.raises(TrialClosed):
        bandit.tell(trial, 0.5)
    with pytest.raises(UnknownTrial):
        bandit.tell(17, 0.5)
    bandit.finish()
    assert (bandit.study.releases[0].asks, bandit.study.releases[0].reports) == (1, 0)


def test_trials_expire_after_the_plans_number_of_asks_too():
    bandit = Bandit(make_plan(expire_after=2))
    trials = [bandit.ask(user=str(n)) for n in range(4)]
    assert bandit.open_trials == (2, 3)
    with pytest.raises(TrialClosed, match="expire after 2 further asks"):
        bandit.tell(trials[0], 0.5)
    bandit.tell(trials[3], 0.5)


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_user_takes_part_as_often_as_the_guarantee_allows(rounds):
    bandit = Bandit(make_plan(privacy=LocalDP(4.0, 1e-3, rounds_per_user=rounds)))
    for _ in range(rounds):
        bandit.tell(bandit.ask(user="ann"), 0.5)
    with pytest.raises(Refused, match=f"{rounds} of {rounds} rounds"):
        bandit.ask(user="ann")
    with pytest.raises(InvalidArgument, match="user"):
        bandit.ask()
    bandit.ask(user="bob")


# -- the journal


@pytest.mark.parametrize("name", PLANS)
def test_a_local_bandit_resumes_exactly(name):
    journal, plain = ListJournal(), Bandit(PLANS[name], simulation=Simulation(4))
    for number in range(9):
        bandit = Bandit(PLANS[name], journal, simulation=Simulation(4))
        trials = [each.ask(user=str(number), **SETS[name]) for each in (bandit, plain)]
        assert trials[0] == trials[1]
        again = Bandit(PLANS[name], journal, simulation=Simulation(4))
        for each, trial in zip((again, plain), trials, strict=True):
            if number % 4 != 3:
                each.tell(trial, 0.1 * number)
        assert again.open_trials == plain.open_trials
    last = Bandit(PLANS[name], journal, simulation=Simulation(4))
    for each in (last, plain):
        each.finish()
    assert digests(last) == digests(plain)


def test_a_local_study_lives_in_a_file(tmp_path):
    path = tmp_path / "study.db"
    with Bandit(PLAN, path) as bandit:
        play(bandit, 6)
        trial = bandit.ask(user="open")
    with Bandit(PLAN, path) as bandit:
        assert bandit.open_trials == (trial.number,)
        bandit.tell(trial, 0.4)
        bandit.finish()
        bandit.export(tmp_path / "study.json")
    study = Study.load(tmp_path / "study.json")
    assert [release.reports for release in study.releases] == [4, 2, 1]


def test_a_report_that_could_not_be_kept_is_not_drawn_again():
    journal = ListJournal()
    bandit = Bandit(PLAN, journal)
    trial = bandit.ask(user="a")
    journal.failing = True
    for reward in (0.1, 0.9):
        with pytest.raises(JournalFailed):
            bandit.tell(trial, reward)
    drawn = write(bandit._sides.answers([0], [0.5])[0])
    assert bandit.open_trials == (0,)
    journal.failing = False
    bandit.tell(trial, 0.9)
    assert journal.kept[-1] == drawn


def test_an_ask_that_could_not_be_kept_gets_the_same_number_again():
    journal = ListJournal()
    bandit = Bandit(PLANS["fourier"], journal)
    journal.failing = True
    with pytest.raises(JournalFailed):
        bandit.ask([[1.0]], user="a")
    journal.failing = False
    trial = bandit.ask([[9.0]], user="b")
    assert (trial.number, trial.action) == (0, {"dose": 9.0})
    bandit.tell(trial, 0.5)


@pytest.mark.parametrize(
    "record",
    [
        Told(0, 0.5),
        Report("ab" * 16, "cd" * 32, np.array([1])),
        Asked(7, np.array([0.5])),
        Abandoned(3),
    ],
    ids=lambda record: type(record).__name__,
)
def test_a_record_that_does_not_fit_is_damage(record):
    journal = ListJournal()
    bandit = Bandit(PLAN, journal)
    bandit.ask(user="a")
    journal.append(canonical.encode(record))
    with pytest.raises(JournalDamaged):
        Bandit(PLAN, journal)


def test_a_report_in_a_joint_study_is_damage():
    from discreet import JointDP

    journal = ListJournal()
    plan = make_plan(privacy=JointDP(1.0, 1e-3))
    Bandit(plan, journal)
    journal.append(canonical.encode(Report("ab" * 16, "cd" * 32, np.array([1]))))
    with pytest.raises(JournalDamaged):
        Bandit(plan, journal)


def test_a_forged_report_in_the_journal_is_damage():
    journal = ListJournal()
    bandit = Bandit(PLAN, journal)
    bandit.tell(bandit.ask(user="a"), 0.5)
    report = decoded(Bandit, journal.kept.pop())
    forged = Report(report.id, report.epoch, report.integers * 1000)
    journal.append(canonical.encode(forged))
    with pytest.raises(Refused, match="larger than any honest client's"):
        Bandit(PLAN, journal)


def test_threads_may_share_a_local_bandit():
    bandit = Bandit(make_plan(schedule=Schedule(first=1_000, growth=1.5)))

    def work(name):
        for n in range(25):
            bandit.tell(bandit.ask(user=f"{name} {n}"), 0.5)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bandit.finish()
    assert (bandit.study.releases[0].asks, bandit.study.releases[0].reports) == (100, 100)


# -- no side door, and small reports


def test_an_action_does_not_depend_on_what_others_do_in_the_same_epoch():
    plan = make_plan(decisions="candidates", schedule=Schedule(first=50, growth=1.5))
    options = np.linspace(0.0, 10.0, 11)[:, None]
    quiet, busy = (Bandit(plan, simulation=Simulation(1)) for _ in range(2))
    for n in range(20):
        quiet.ask([[0.0]], user=f"u{n}")
        busy.tell(busy.ask([[n / 2]], user=f"u{n}"), 1.0)
        if n % 5 == 0:
            one = quiet.ask(options, user=f"v{n}")
            assert busy.ask(options, user=f"v{n}") == one


def test_a_report_is_25_times_smaller_than_the_papers_dense_one():
    """Algorithm 3 sends a matrix and a vector, m^2 + m doubles; docs/protocol.md has the table."""
    plan = Plan(
        domain=Box({"x": (0, 1), "y": (0, 1)}),
        kernel=SquaredExponential(0.1),
        kernel_error=1e-4,
        privacy=LocalDP(8.0, 0.1),
        encoding="fourier",
        decisions="candidates",
        schedule=Schedule(first=10, growth=2.0),
    )
    journal = ListJournal()
    bandit = Bandit(plan, journal)
    bandit.tell(bandit.ask([[0.5, 0.5]], user="a"), 0.5)
    m, sent = plan.map.dimension, len(journal.kept[-1])
    report = decoded(Bandit, journal.kept[-1])
    assert plan.encoding == "fourier"
    assert 8 * (m * m + m) / sent > 25
    assert report.integers.size < 5 * m  # O(m), where the dense triangle has m^2 / 2
    assert (m * (m + 1) // 2 + m) / report.integers.size > 25
    assert (m, report.integers.size, sent) == (305, 1482, 16_068)
