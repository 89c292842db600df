"""Many people in one call against as many single calls, in one run: how many times faster a round.

    python benchmarks/batches.py                      1,000 people of each kind
    python benchmarks/batches.py --kinds context --profile

A round is an ask and a tell. Both ways play the same rounds in turns, in an epoch that what was
learnt guides; the best of a few repetitions counts, for others share the machine. In memory that is
CPU time. With an SQLite journal it is wall time: single rounds wait for the disk twice each, a
batch twice in all.
"""

import argparse
import cProfile
import pstats
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import discreet

KINDS = ("box", "context", "candidates", "local")
CANDIDATES = 25
FIRST = 32


def make_plan(kind: str, asks: int) -> discreet.Plan:
    """Two coordinates, 61 features, and a second epoch of so many asks."""
    local = discreet.LocalDP(epsilon=8.0, delta=1e-6)
    joint = discreet.JointDP(epsilon=8.0, delta=1e-6)
    return discreet.Plan(
        domain=discreet.Box(
            {"dose": (0, 10), "age": (18, 90)}, context=["age"] if kind == "context" else []
        ),
        kernel=discreet.SquaredExponential(0.3),
        kernel_error=0.001,
        privacy=local if kind == "local" else joint,
        decisions="box" if kind == "local" else kind,
        schedule=discreet.Schedule(first=FIRST, growth=1 + asks / FIRST),
        expire_after=asks,
    )


class Study:
    """People come round after round, all at once or one by one."""

    def __init__(self, kind: str, people: int, repetitions: int, journal: Path | None) -> None:
        self.kind, self.people, self.users = kind, people, 0
        plan = make_plan(kind, people * (repetitions + 1))
        self.bandit = discreet.Bandit(plan, journal)
        rng = np.random.Generator(np.random.Philox(7))
        self.ages = rng.uniform(18, 90, people)
        self.sets = rng.uniform((0, 18), (10, 90), (people, CANDIDATES, 2))
        self.rewards = rng.random(people)
        self.at_once(FIRST)
        self.at_once(1)  # turns the first epoch over

    def at_once(self, people: int) -> None:
        own: dict[str, Any] = {"n": people}
        if self.kind == "context":
            own = {"contexts": {"age": self.ages[:people]}}
        elif self.kind == "candidates":
            own = {"candidates": self.sets[:people]}
        trials = self.bandit.ask_many(**own, users=range(self.users, self.users + people))
        self.bandit.tell_many(trials, self.rewards[:people])
        self.users += people

    def one_by_one(self, people: int) -> None:
        for age, options, reward in zip(
            self.ages.tolist(), self.sets, self.rewards.tolist(), strict=True
        ):
            own: dict[str, Any] = {}
            if self.kind == "context":
                own = {"context": {"age": age}}
            elif self.kind == "candidates":
                own = {"candidates": options}
            self.bandit.tell(self.bandit.ask(**own, user=self.users), reward)
            self.users += 1


def seconds(play: Callable[[int], None], people: int, clock: Callable[[], float]) -> float:
    begun = clock()
    play(people)
    return clock() - begun


def compare(kind: str, people: int, repetitions: int, folder: Path | None) -> tuple[float, float]:
    """The best seconds of a batch, and of single calls."""
    places = [None if folder is None else folder / f"{kind} {way}.db" for way in ("many", "single")]
    many, single = (Study(kind, people, repetitions, place) for place in places)
    clock = time.process_time if folder is None else time.perf_counter
    taken = [
        (seconds(many.at_once, people, clock), seconds(single.one_by_one, people, clock))
        for _ in range(repetitions)
    ]
    return min(each[0] for each in taken), min(each[1] for each in taken)


def profile(kind: str, people: int) -> None:
    """Where the time of a batch in memory goes."""
    study = Study(kind, people, 2, None)
    study.at_once(people)
    profiler = cProfile.Profile()
    profiler.runcall(study.at_once, people)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=KINDS)
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        for kind in given.kinds:
            if given.profile:
                profile(kind, given.people)
                continue
            for name, place in (("memory", None), ("journal", Path(folder))):
                many, single = compare(kind, given.people, given.repetitions, place)
                each = (
                    f"{1e6 * many / given.people:7.0f} µs of {1e6 * single / given.people:7.0f} µs"
                )
                print(f"{kind:<10} {name:<8} {each}  {single / many:5.1f}x", flush=True)


if __name__ == "__main__":
    main()
