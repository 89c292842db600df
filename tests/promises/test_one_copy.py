"""One process, one copy: a fork, a pickle or a copy of a role would draw noise again."""

import copy
import inspect
import multiprocessing
import os
import pickle
import threading
from functools import partial
from multiprocessing.reduction import ForkingPickler

import pytest
from tests.support.acts import LOCAL_PLAN, ROLES, custodian, joint
from tests.support.crash_writer import PRIVATE_PLAN
from tests.support.forks import in_fork
from tests.support.journals import ListJournal

from discreet import Bandit
from discreet.errors import SecondCopy
from discreet.storage.journal import SQLiteJournal
from discreet.trusted.custody import Custody
from discreet.trusted.in_process import Joint, Local
from discreet.trusted.participants import Participants
from discreet.trusted.privatizer import Privatizer

PARTS = {
    "privatizer": lambda: Privatizer(PRIVATE_PLAN),
    "custody": lambda: Custody(PRIVATE_PLAN),
    "participants": lambda: Participants(PRIVATE_PLAN),
    "joint sides": lambda: Joint(PRIVATE_PLAN, None),
    "local sides": lambda: Local(LOCAL_PLAN, None),
    "journal": lambda: SQLiteJournal(":memory:"),
}
THINGS = {begin.__name__: lambda begin=begin: begin(None) for begin in ROLES} | PARTS
#: What a fork may still use: what is public whatever happened, and letting go.
HARMLESS = {"plan", "check", "close", "is_home", "check_process", "guarded", "RECORDS", "CUSTODY"}


@pytest.mark.parametrize("name", THINGS)
@pytest.mark.parametrize(
    "duplicate",
    [pickle.dumps, copy.copy, copy.deepcopy, ForkingPickler.dumps, lambda one: pickle.dumps([one])],
)
def test_nothing_that_draws_or_holds_answers_is_copied(name, duplicate):
    with pytest.raises(SecondCopy, match=r"twice.*open its journal there"):
        duplicate(THINGS[name]())


def use(thing, name):
    """Read a property, or call a method with nothing for each argument that it needs."""
    member = getattr(thing, name)
    if callable(member):
        arguments = inspect.signature(member).parameters.values()
        needed = [each for each in arguments if each.default is each.empty and each.kind < 2]
        member(*[None] * len(needed))


@pytest.mark.parametrize("begin", ROLES, ids=lambda begin: begin.__name__)
@pytest.mark.parametrize("kept", [False, True])
def test_a_fork_is_refused_by_everything_that_a_role_does(begin, kept, tmp_path):
    path = tmp_path / "study.db"
    with begin(path if kept else None) as role:
        names = {name for name in dir(type(role)) if not name.startswith("_")} - HARMLESS

        def refused():
            return [name for name in sorted(names) if is_refused(partial(use, role, name))]

        assert in_fork(refused) == sorted(names)
        assert in_fork(lambda: role.close()) is None
        assert in_fork(lambda: role.plan.digest) == role.plan.digest
    if kept:
        begin(path).close()


def is_refused(call):
    try:
        call()
    except SecondCopy as refusal:
        return "let others ask that one" in str(refusal)
    return False


class WaitingJournal(ListJournal):
    """Says when an append has begun, and does not end it until it may."""

    def __init__(self):
        super().__init__()
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.may_end.set()

    def append(self, *records):
        self.begun.set()
        self.may_end.wait()
        super().append(*records)


def test_a_fork_is_refused_though_a_thread_of_its_parent_held_the_lock():
    journal = WaitingJournal()
    bandit = Bandit(PRIVATE_PLAN, journal)
    journal.begun.clear()
    journal.may_end.clear()
    thread = threading.Thread(target=lambda: bandit.ask(user="u-1"))
    thread.start()
    journal.begun.wait()
    try:
        assert in_fork(lambda: is_refused(lambda: bandit.asked))
        assert in_fork(lambda: is_refused(lambda: bandit.ask(user="u-2")))
    finally:
        journal.may_end.set()
        thread.join()
    assert bandit.asked == 1


def _act(role, answers):
    answers.put(is_refused(role.finish))


@pytest.mark.parametrize("begin", [custodian, joint], ids=["custodian", "bandit"])
def test_a_forked_worker_is_refused(begin):
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    worker = context.Process(target=_act, args=(begin(None), answers))
    worker.start()
    assert answers.get()
    worker.join()


def test_a_fork_that_was_given_its_ancestors_number_is_refused(monkeypatch):
    bandit, number = joint(None), os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: number)
    assert in_fork(lambda: is_refused(lambda: bandit.asked))
    assert bandit.asked == 0


def test_a_privatizer_draws_in_its_own_process_alone():
    privatizer = Privatizer(PRIVATE_PLAN)
    assert in_fork(lambda: is_refused(privatizer.release))
