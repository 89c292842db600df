"""A process to be killed: it asks and tells with a journal, and says so after each.

    python crash_writer.py JOURNAL DESCRIPTOR [private]

writes a line to the descriptor when it starts (`s`), and after each ask (`a 17`), tell (`t 17`)
and abandon (`x 17`) has returned. What it does next depends only on what the journal holds.
With `private` the study is private, its epochs are tiny, and there is a line when a release was
drawn (`d 3 DIGEST`), when it was committed (`c 3 DIGEST`) and when it can be seen (`r 3 DIGEST`).
"""

import os
import sys
from pathlib import Path

from discreet import Bandit, Box, JointDP, Linear, NonPrivate, Plan, Schedule
from discreet.agreement.release import Release
from discreet.storage import canonical
from discreet.storage.journal import SQLiteJournal
from discreet.trusted.custody import Custody
from discreet.trusted.privatizer import Privatizer

PLAN = Plan(
    domain=Box({"dose": (0, 10)}),
    privacy=NonPrivate(),
    kernel=Linear(),
    schedule=Schedule(first=5, growth=1.3),
    expire_after=20,
    name="to be killed",
)

PRIVATE_PLAN = Plan(
    domain=Box({"dose": (0, 10)}),
    privacy=JointDP(epsilon=1.0, delta=1e-3),
    kernel=Linear(),
    schedule=Schedule(first=2, growth=1.01),
    expire_after=20,
    name="to be killed around its releases",
)


def reward(number: int) -> float:
    """The answer of round `number`; no two are equal."""
    return (number * 0.6180339887498949) % 1.0


def step(bandit: Bandit) -> str:
    """Do the next thing: keep up to three rounds open, answer some late, drop every ninth."""
    waiting = bandit.open_trials
    if len(waiting) < 3:
        return f"a {bandit.ask().number}"
    number = waiting[(7 * bandit.asked) % 3]
    if number % 9 == 4:
        bandit.abandon(number)
        return f"x {number}"
    bandit.tell(number, reward(number))
    return f"t {number}"


def main(journal: Path, acknowledge: int) -> None:
    """Write until killed."""
    os.write(acknowledge, b"s\n")
    with Bandit(PLAN, journal) as bandit:
        while True:
            os.write(acknowledge, f"{step(bandit)}\n".encode())


def show_releases(journal: Path, acknowledge: int) -> None:
    """Ask and tell until killed; nearly every ask ends an epoch, and its release is shown."""

    def say(kind: str, release: Release) -> None:
        os.write(acknowledge, f"{kind} {release.epoch} {release.digest}\n".encode())

    class SayingPrivatizer(Privatizer):
        def release(self) -> Release:
            say("d", super().release())
            return super().release()

    class SayingJournal(SQLiteJournal):
        def append(self, *records: bytes) -> None:
            super().append(*records)
            for record in records:
                if b'"type":"Release"' in record:
                    say("c", canonical.decode(Release, record))

    os.write(acknowledge, b"s\n")
    Custody.PRIVATIZER = SayingPrivatizer
    with Bandit(PRIVATE_PLAN, SayingJournal(journal)) as bandit:
        while True:
            trial = bandit.ask(user=f"user {bandit.asked}")
            if bandit.study.releases:
                say("r", bandit.study.releases[-1])
            bandit.tell(trial, reward(trial.number))


if __name__ == "__main__":
    write = show_releases if "private" in sys.argv[3:] else main
    write(Path(sys.argv[1]), int(sys.argv[2]))
