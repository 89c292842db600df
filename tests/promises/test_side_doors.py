"""No side door between users: an action knows plan, releases, index and its own decision set.

Two worlds differ in what one user of an epoch brings, answers or leaves unanswered. Noise comes
from a seed, the same in both, so whatever else differs would have come through a side door.
"""

from functools import cache

import numpy as np
import pytest
from tests.support.journals import ListJournal

from discreet import (
    Bandit,
    Box,
    Exploration,
    JointDP,
    Learned,
    NonPrivate,
    Plan,
    Schedule,
    Simulation,
    SquaredExponential,
    Study,
)
from discreet.storage import canonical

KINDS = ("box", "context", "candidates")
PRIVACY = {
    "none": NonPrivate(),
    "decisions": JointDP(epsilon=2.0, delta=1e-2),
    "rewards": JointDP(epsilon=2.0, delta=1e-2, protect="rewards"),
}
EXPLORATION = {
    "ucb": Exploration(optimism=2.0, sampling=0.0, draws=3),
    "thompson": Exploration(optimism=0.0, sampling=1.0, draws=3),
    "mixed": Exploration(draws=3),
}
#: Every encoding that a plan allows, for each kind of decision set and protection.
CELLS = [
    (kind, protect, encoding)
    for kind in KINDS
    for protect in PRIVACY
    for encoding in ("gram", "fourier", "reward", "announced")
    if encoding in ("gram", "fourier")
    or (encoding == "reward" and kind == "box")
    or (encoding == "announced" and kind != "box" and protect == "rewards")
]
KERNELS = {
    "fixed": SquaredExponential(0.6),
    "learnt": Learned.around(SquaredExponential(0.9), 2.0),
    "additive": Learned((SquaredExponential(0.3), SquaredExponential(0.6)), additive=True),
}
#: Under every kernel that an encoding allows.
LEARNERS = [
    (*cell, kernel)
    for cell in CELLS
    for kernel in KERNELS
    if kernel != "additive" or cell[2] != "fourier"
]
EPOCH = (4, 5, 6, 7)  # the asks of the second epoch
REPLACED = 5
#: A seed under which no noise is so large that every answer is clipped at the same end.
SIMULATION = Simulation(2)


@cache
def make_plan(kind, protect, encoding, exploration="mixed", kernel="fixed"):
    return Plan(
        domain=Box({"dose": (0, 10), "age": (18, 90)}, context=["age"] * (kind == "context")),
        privacy=PRIVACY[protect],
        kernel=KERNELS[kernel],
        kernel_error=0.05,
        decisions=kind,
        public_decisions=protect == "rewards",
        encoding=encoding,
        exploration=EXPLORATION[exploration],
        schedule=Schedule(first=4, growth=2.0),
        name=f"{kind} {protect} {encoding} {exploration}",
    )


def choices(kind, number):
    """What user `number` brings: the arguments of an ask."""
    rng = np.random.Generator(np.random.Philox(number))
    own = {"user": f"user {number}"}
    if kind == "context":
        return own | {"context": {"age": float(rng.uniform(18, 90))}}
    if kind == "candidates":
        return own | {"candidates": rng.uniform((0, 18), (10, 90), (5, 2))}
    return own


def reward(number):
    return (number * 0.6180339887498949) % 1.0


@cache
def first_epoch(plan):
    """The records of a study whose first epoch is over but for its turn."""
    journal = ListJournal()
    bandit = Bandit(plan, journal, simulation=SIMULATION)
    for number in range(4):
        bandit.ask(**choices(plan.decisions, number))
        if number != 2:  # user 2 will answer late
            bandit.tell(number, reward(number))
    return journal.kept


def second_epoch(plan, *, bring=REPLACED, answers=None, others="told"):
    """Every action of the second epoch, and the bandit after it.

    User 5 brings what user `bring` would; `answers` replaces rewards (None: no answer); the rest
    is told at once, told when the epoch is over, abandoned or left open.
    """
    bandit = Bandit(plan, ListJournal(first_epoch(plan)), simulation=SIMULATION)
    actions, late = [], []
    for number in EPOCH:
        brought = choices(plan.decisions, bring if number == REPLACED else number)
        trial = bandit.ask(**(brought | {"user": f"user {number}"}))
        actions.append((trial.number, trial.chosen, tuple(trial.action.values())))
        if number == EPOCH[0] and answers and 2 in answers:
            bandit.tell(2, answers[2])
        answer = (answers or {}).get(number, reward(number))
        if answer is None or others == "abandoned":
            bandit.abandon(trial)
        elif others == "told":
            bandit.tell(trial, answer)
        elif others == "late":
            late.append((trial, answer))
    for trial, answer in late:
        bandit.tell(trial, answer)
    bandit.ask(**choices(plan.decisions, 8))
    return actions, bandit


def without(actions):
    """The actions of everyone but the replaced user."""
    return [action for action in actions if action[0] != REPLACED]


@pytest.mark.parametrize("exploration", EXPLORATION)
@pytest.mark.parametrize(("kind", "protect", "encoding"), CELLS)
def test_nothing_of_one_user_reaches_an_action_of_another_in_the_same_epoch(
    kind, protect, encoding, exploration
):
    plan = make_plan(kind, protect, encoding, exploration)
    actions, bandit = second_epoch(plan)
    release = bandit.study.releases[1]
    if kind != "box":
        assert len({action[2] for action in actions}) > 1  # actions differ, so they could tell
    variants = [
        ({"answers": {REPLACED: 0.987}}, True),  # another answer
        ({"answers": {REPLACED: None}}, True),  # no answer
        ({"answers": {2: 0.123}}, True),  # a late answer of the epoch before
        ({"others": "late"}, False),  # nobody has answered while others ask
        ({"others": "abandoned"}, True),
        ({"others": "open"}, True),
    ]
    if kind != "box":
        variants.append(({"bring": 99}, True))  # another decision set or context
    for changes, heard in variants:
        others, other = second_epoch(plan, **changes)
        assert without(others) == without(actions), changes
        assert other.study.epochs[1].digest == bandit.study.epochs[1].digest
        # What was changed is heard of in the release, and in nothing before it.
        assert (other.study.releases[0].digest) == bandit.study.releases[0].digest
        assert (other.study.releases[1].digest != release.digest) == heard, changes
        if "bring" in changes:
            assert others != actions
        else:
            assert others == actions


@pytest.mark.parametrize(("kind", "protect", "encoding"), CELLS)
def test_a_third_party_computes_every_action_from_the_export_alone(
    kind, protect, encoding, tmp_path
):
    """And for a context or candidates from what that one user brought."""
    plan = make_plan(kind, protect, encoding)
    actions, bandit = second_epoch(plan)
    bandit.export(tmp_path / "study.json")
    study = Study.load(tmp_path / "study.json")
    features, domain, epoch = study.plan.map, study.plan.domain, study.epochs[1]
    assert (epoch.first, epoch.length) == (4, 4)
    for number, chosen, action in actions:
        index, own = number - epoch.first, choices(kind, number)
        if kind == "box":
            point = epoch.policy.menu[index % len(epoch.policy.menu)]
        elif kind == "context":
            fixed = domain.encode_context(own["context"])
            point = epoch.policy.search(features, np.array([index]), domain, fixed[None])[0][0]
        else:
            options = domain.encode(own["candidates"])
            assert epoch.policy.choose(features, np.array([index]), [options])[0] == chosen
            point = options[chosen]
        assert tuple(domain.decode(point).values()) == action


@pytest.mark.parametrize("kind", KINDS)
def test_an_epoch_over_the_box_publishes_its_menu_and_no_model_beside_it(kind):
    for epoch in second_epoch(make_plan(kind, "decisions", "gram"))[1].study.epochs:
        policy = epoch.policy
        parts = (len(policy.menu) > 0, policy.tilts.size > 0, policy.packed_whitening.size > 0)
        assert parts == ((True, False, False) if kind == "box" else (False, True, True))


# -- everything public is a function of plan and releases


def same_belief(one, two):
    """Whether the prior, the scales and the sums of two beliefs are the same bit for bit."""
    return (
        (one.choice, one.scales) == (two.choice, two.scales)
        and one.precision.tobytes() == two.precision.tobytes()
        and one.information.tobytes() == two.information.tobytes()
    )


@pytest.mark.parametrize(("kind", "protect", "encoding", "kernel"), LEARNERS)
def test_everything_public_follows_from_plan_and_releases(
    kind, protect, encoding, kernel, tmp_path
):
    _, bandit = second_epoch(make_plan(kind, protect, encoding, kernel=kernel))
    bandit.finish()
    bandit.export(tmp_path / "study.json")
    loaded = Study.load(tmp_path / "study.json")
    study = Study(loaded.plan, simulated=loaded.simulated)
    for epoch, release in zip(loaded.epochs, loaded.releases, strict=True):
        anew = study.next_epoch()  # policy, encoding, width, directions, noise, length
        assert canonical.encode(anew) == canonical.encode(epoch)
        study = study.opened(anew).released(release)
    assert canonical.encode(study) == canonical.encode(bandit.study)
    context = {"age": 40.0} if kind == "context" else None
    assert study.best(context=context) == bandit.best(context=context)
    assert same_belief(study.belief, bandit.study.belief)
    assert same_belief(study.belief, loaded.belief)
    assert (study.posterior.precision == bandit.study.posterior.precision).all()
    assert study.next_epoch().digest == bandit.study.next_epoch().digest


@pytest.mark.parametrize(("kind", "protect", "encoding", "kernel"), LEARNERS)
def test_other_raw_sums_behind_the_same_releases_change_nothing(
    kind, protect, encoding, kernel, monkeypatch, tmp_path
):
    plan = make_plan(kind, protect, encoding, kernel=kernel)
    _, original = second_epoch(plan)
    ghost = Bandit(plan, simulation=SIMULATION)
    releases = {release.epoch: release for release in original.study.releases}
    counted = ghost._sides._custody._privatizer
    monkeypatch.setattr(counted, "release", lambda: releases[counted._epoch.digest])
    for number in range(9):
        arguments = choices(kind, number if number == 8 else 50 + number)
        trial = ghost.ask(**arguments)
        if number % 3 and number < 8:
            ghost.tell(trial, 1 - reward(number))
        if number == 3:
            first = counted._sums.total
    replay = Bandit(plan, ListJournal(first_epoch(plan)), simulation=SIMULATION)
    assert (first != replay._sides._custody._privatizer._sums.total).any()  # the raw sums do differ
    for bandit, name in ((original, "original"), (ghost, "ghost")):
        bandit.export(tmp_path / name)
    assert (tmp_path / "ghost").read_bytes() == (tmp_path / "original").read_bytes()
    assert ghost.study.open_epoch.digest == original.study.open_epoch.digest
    assert same_belief(ghost.study.belief, original.study.belief)
    assert ghost.guarantee == original.guarantee
    context = {"age": 40.0} if kind == "context" else None
    assert ghost.best(context=context) == original.best(context=context)
    following = choices(kind, 9)
    assert ghost.ask(**following) == original.ask(**following)
