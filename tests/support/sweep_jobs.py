"""Jobs for the tests of sweeps: they leave a trace of every time they are played."""

import os
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from discreet.experiments.sweep import sweep


@dataclass(frozen=True)
class Toy:
    folder: str
    number: int


@dataclass(frozen=True)
class Toyed(Toy):
    value: float


def value_of(number: int) -> float:
    side = np.random.default_rng(number).standard_normal((60, 60))
    return float(np.linalg.slogdet(side @ side.T)[1])


def play(job: Toy) -> Toyed:
    with (Path(job.folder) / "played").open("a") as file:
        file.write(f"{job.number}\n")
    return Toyed(**asdict(job), value=value_of(job.number))


def play_and_die_once(job: Toy) -> Toyed:
    """The third job takes its process with it, the first time."""
    mark = Path(job.folder) / "died"
    if job.number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return play(job)


def always_die(job: Toy) -> Toyed:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def jobs(folder: Path) -> list[Toy]:
    return [Toy(str(folder), number) for number in range(8)]


def killed_after_three(done: int, total: int, row: object) -> None:
    if done == 3:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    import sweep_jobs  # by its name, as workers find it

    place, cluster = Path(sys.argv[1]), sys.argv[2] or None
    sweep(
        sweep_jobs.Toyed,
        place / "toys.csv",
        sweep_jobs.jobs(place),
        sweep_jobs.play,
        workers=2,
        cluster=cluster,
        heard=killed_after_three,
    )
