"""BLAS has one thread while we compute, and the process has its own number back after."""

import os
import threading

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  # its BLAS is another one than numpy's
from threadpoolctl import ThreadpoolController, threadpool_limits

import discreet
from discreet.learning import next_epoch, search
from discreet.simulation.forecast import forecast
from discreet.simulation.play import Setting, simulate
from discreet.simulation.problems import find_problem
from discreet.threads import OneThread, one_thread

BLAS = ThreadpoolController().select(user_api="blas")


def counts():
    return {library["num_threads"] for library in BLAS.info()}


@pytest.fixture(autouse=True)
def two_threads():
    """Tests run with one thread: here the process starts with two.

    Who was interrupted between two bytecodes, in another test, may never have left.
    """
    one_thread._inside, one_thread._limited = 0, []
    with BLAS.limit(limits=2):
        assert counts() == {2}
        yield
        assert counts() == {2}


def test_inside_there_is_one_thread_and_after_it_as_many_as_before():
    with one_thread:
        assert counts() == {1}
        with one_thread:
            assert counts() == {1}
        assert counts() == {1}
    assert counts() == {2}


def test_an_error_gives_the_threads_back():
    @one_thread
    def fails():
        assert counts() == {1}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert counts() == {2}


def test_each_library_gets_its_own_number_back():
    (first, *others) = BLAS.lib_controllers
    first.set_num_threads(1)
    with one_thread:
        assert counts() == {1}
    assert first.get_num_threads() == 1
    assert {each.get_num_threads() for each in others} <= {2}
    first.set_num_threads(2)


def test_the_last_thread_to_leave_gives_the_threads_back():
    inside, leave = threading.Event(), threading.Event()
    seen = []

    def second():
        with one_thread:
            inside.set()
            leave.wait(10)
            seen.append(counts())

    other = threading.Thread(target=second)
    with one_thread:
        other.start()
        assert inside.wait(10)
    assert counts() == {1}  # the other one is still inside
    leave.set()
    other.join()
    assert seen == [{1}]
    assert counts() == {2}


def test_a_limit_of_the_users_own_stays():
    with threadpool_limits(1):
        with one_thread:
            assert counts() == {1}
        assert counts() == {1}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_forked_while_another_thread_enters_does_not_wait_for_ever():
    mine = OneThread()
    mine._lock.acquire()
    os.register_at_fork(after_in_child=mine.after_fork)
    child = os.fork()
    if child == 0:
        entered = mine._lock.acquire(timeout=1)
        os._exit(0 if entered else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# -- where it holds


@pytest.fixture
def seen(monkeypatch):
    """How many threads the work that matters saw, wherever it was called from."""
    found = []

    def watched(place, name):
        work = getattr(place, name)

        def watching(*args, **options):
            found.append((name, counts()))
            return work(*args, **options)

        monkeypatch.setattr(place, name, watching)

    watched(search.Score, "values")
    watched(search.Score, "values_and_gradient")
    for belief in (next_epoch.Belief, next_epoch.PersonalBelief):
        watched(belief, "encoding_for")
        watched(belief, "after")
    return found


def plan_of(decisions):
    context = ["age"] if decisions == "context" else []
    return discreet.Plan(
        domain=discreet.Box({"dose": (0, 10), "age": (18, 90)}, context=context),
        privacy=discreet.JointDP(8.0, 1e-6),
        schedule=discreet.Schedule(first=8),
        decisions=decisions,
        horizon=40,
    )


@pytest.mark.parametrize("decisions", ["box", "context", "candidates"])
def test_a_study_computes_on_one_thread(decisions, seen):
    given = {
        "box": {},
        "context": {"context": {"age": 61}},
        "candidates": {"candidates": np.array([[1.0, 61.0], [9.0, 61.0]])},
    }[decisions]
    bandit = discreet.Bandit(plan_of(decisions))
    for user in range(20):
        bandit.tell(bandit.ask(**given, user=f"u{user}"), 0.5)
        assert counts() == {2}
    bandit.finish()
    bandit.best(context=given.get("context"))
    names = {"after", "encoding_for"}
    assert names <= {name for name, _ in seen}
    assert {frozenset(each) for _, each in seen} == {frozenset({1})}


def test_simulations_and_forecasts_compute_on_one_thread(seen):
    simulate(find_problem("camelback"), Setting(rounds=20), seed=0)
    forecast(plan_of("box"), [8.0], functions=1, rounds=20)
    assert {name for name, _ in seen} >= {"encoding_for", "after"}
    assert {frozenset(each) for _, each in seen} == {frozenset({1})}


def test_a_lock_that_an_interrupt_left_held_stops_nobody(monkeypatch):
    monkeypatch.setattr("discreet.threads.ABANDONED", 0.01)
    own = OneThread()
    own._lock.acquire()
    with own:
        assert counts() == {1}
    assert counts() == {2}
