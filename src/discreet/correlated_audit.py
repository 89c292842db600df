"""Games against correlated noise: all releases of a stream, against a stream that differs once.

Two streams of integers differ in their first item, whose column of C is the longest. The real
strategy makes the noise of every prefix, and the test looks at the whole path of releases at
once: with noise N(0, std^2 B B^T) and worlds d apart, the likelihood ratio is the statistic

    w y,    w = (B B^T)^-1 d / std^2,

whose means lie mu^2 = d w apart. Each control breaks the mechanism and is judged by the test that
knows how: a calibration that forgets the norm of C, and noise that is drawn anew for each release.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from discreet.noise import BLT, SquareRoot, State, Strategy, Tree, multiplier

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

RELEASES = 16
#: What one item may change by, in integers: rounding the noise then costs nothing that matters.
CHANGE = 1 << 20


class Normals(Protocol):
    """Where standard normals come from."""

    def normals(self, count: int) -> Floats:
        """So many, independent."""
        ...


@dataclass(frozen=True, eq=False)
class Stream:
    """All releases of a stream of numbers, in two worlds."""

    name: str
    strategy: Strategy
    claim: float

    @property
    def worlds(self) -> tuple[Integers, Integers]:
        """The prefix sums; in the second, the first item is higher by all it may change."""
        items = CHANGE * np.arange(RELEASES, dtype=np.int64)
        return np.cumsum(items), np.cumsum(items) + CHANGE

    @property
    def std(self) -> float:
        """Of one normal, in integers."""
        mu = self.claim
        return CHANGE * multiplier(self.strategy, horizon=RELEASES, mu=mu)

    @cached_property
    def decoder(self) -> Floats:
        """B, from the strategy itself: what each normal adds to each release."""
        return _path(self.strategy, np.eye(RELEASES))

    @property
    def weights(self) -> Floats:
        """The likelihood ratio's."""
        difference = (self.worlds[1] - self.worlds[0]).astype(np.float64)
        whitened = solve_triangular(self.decoder, difference, lower=True)
        return solve_triangular(self.decoder.T, whitened, lower=False) / self.std**2

    def noise(self, draws: int, bits: Normals) -> Floats:
        """The noise of a path of releases, one path a row."""
        normals = bits.normals(RELEASES * draws).reshape(RELEASES, draws)
        return self.std * _path(self.strategy, normals).T


class UnpaidNorm(Stream):
    """Broken on purpose: calibrated as if no item were in more than one node."""

    @property
    def std(self) -> float:
        """Without the norm of a column of C."""
        return CHANGE / self.claim


class Redrawn(Stream):
    """Broken on purpose: each release draws all of its noise again, "on the inserted path"."""

    @property
    def weights(self) -> Floats:
        """Releases are independent now, each with its own std."""
        difference = (self.worlds[1] - self.worlds[0]).astype(np.float64)
        return difference / np.square(self.std * self.strategy.stds(RELEASES))

    def noise(self, draws: int, bits: Normals) -> Floats:
        """As large as it should be, and new each time."""
        fresh = bits.normals(RELEASES * draws).reshape(draws, RELEASES)
        return self.std * self.strategy.stds(RELEASES) * fresh


StreamPlay = Callable[[Stream, Integers, int, Normals], Integers]


def streamed(stream: Stream, world: Integers, draws: int, bits: Normals) -> Integers:
    """Every release of so many streams, on the integer lattice."""
    return world + np.rint(stream.noise(draws, bits)).astype(np.int64)


def stream_trials(claims: tuple[float, ...]) -> Iterator[tuple[Stream, str | None, StreamPlay]]:
    """Each strategy at each claim, and the controls at the first."""
    strategies: dict[str, Strategy] = {
        "tree": Tree(),
        "square root": SquareRoot(),
        "BLT": BLT.fit(RELEASES),
    }
    for kind, strategy in strategies.items():
        for claim in claims:
            name = f"{kind}, {RELEASES} releases, mu {claim:g}"
            yield Stream(name, strategy, claim), None, streamed
            if claim == claims[0]:
                yield UnpaidNorm(name, strategy, claim), "norm of the strategy forgotten", streamed
                yield Redrawn(name, strategy, claim), "noise redrawn at each release", streamed


def _path(strategy: Strategy, normals: Floats) -> Floats:
    """The noise of each release (row), from the normals of each: as many streams as columns."""
    state = State.start(strategy, size=normals.shape[1], horizon=len(normals))
    rows: list[Floats] = []
    for fresh in normals:
        row, state = strategy.advance(state, fresh)
        rows.append(row)
    return np.array(rows)
