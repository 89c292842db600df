"""Games against correlated noise: all releases of a stream, against a stream that differs once.

Two streams of integers differ in their first item, whose column of C is the longest. The real
strategy makes the noise of every prefix, and the test looks at the whole path of releases at
once: with noise N(0, std^2 B B^T) and worlds d apart, the likelihood ratio is the statistic

    w y,    w = (B B^T)^-1 d / std^2,

whose means lie mu^2 = d w apart. Each control breaks the mechanism and is judged by the test that
knows how: a calibration that forgets the norm of C, and noise that is drawn anew for each release.

`NodeGame` is played against the privatizer itself. It takes in two studies that differ in the
first answer, epoch after epoch, and shows the nodes that it would add noise to; the test sees all
releases of a study at once. Their noise is independent, so the likelihood ratio is a plain sum.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.arrays import Floats, Integers
from discreet.audit.contest import Normals, audited_plan
from discreet.learning.study import Study
from discreet.privacy.budget import Simulation
from discreet.privacy.correlation import BLT, SquareRoot, State, Strategy, Tree, multiplier
from discreet.privacy.encodings import EncodingName
from discreet.privacy.streams import CORRELATIONS, Correlation
from discreet.protocol.records import Asked, Told
from discreet.trusted import mechanism
from discreet.trusted.privatizer import Privatizer
from discreet.trusted.randomness import Source

RELEASES = 16
#: What one item may change by, in integers: rounding the noise then costs nothing that matters.
CHANGE = 1 << 20


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


# -- against the privatizer


class GlassPrivatizer(Privatizer):
    """A privatizer that shows what it adds noise to."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan, Simulation(1))
        self.nodes: list[Integers] = []
        self.sums: list[Integers] = []

    def release(self) -> Release:
        """The real one, and a look at the node and the sums behind it."""
        self.nodes.append(mechanism.total(self._plan, self._sums, self._past))
        self.sums.append(self._sums.total)
        return super().release()


@dataclass(frozen=True, eq=False)
class NodeGame:
    """Every integer that a first answer moves, in all releases of two studies."""

    name: str
    plan: Plan
    worlds: tuple[Integers, Integers]
    stds: Floats

    @classmethod
    def of(cls, plan: Plan, name: str) -> "NodeGame":
        """Answers at both ends of the range, to the same action: the worst pair."""
        low, high = (_nodes(plan, first) for first in plan.rewards)
        moved = low != high
        return cls(name, plan, (low[moved], high[moved]), _node_stds(plan)[moved])

    @property
    def claim(self) -> float:
        """The mu that the plan promises."""
        return self.plan.mu or 0.0

    @property
    def weights(self) -> Floats:
        """The likelihood ratio's, for independent noise."""
        return (self.worlds[1] - self.worlds[0]).astype(np.float64) / np.square(self.stds)


def unpaid(game: NodeGame) -> NodeGame:
    """Broken on purpose: noise as if an answer were in one release."""
    stream = game.plan.stream
    norm = 1.0 if stream is None else stream.norm
    return NodeGame(game.name, game.plan, game.worlds, game.stds / norm)


def redrawn(plan: Plan, name: str) -> NodeGame:
    """Broken on purpose: prefix sums instead of nodes, and all of their noise drawn each time."""
    stds = _node_stds(plan)
    if plan.stream is not None:
        stds = stds * plan.stream.strategy.stds(RELEASES)[:, None]
    low, high = (_nodes(plan, first, prefixes=True) for first in plan.rewards)
    moved = low != high
    return NodeGame(name, plan, (low[moved], high[moved]), stds[moved])


def from_nodes(game: NodeGame, world: Integers, draws: int, bits: Source) -> Integers:
    """The noise of the real mechanism, once for each draw."""
    return mechanism.noisy(np.tile(world, (draws, 1)), game.stds, bits=bits)


NodePlay = Callable[[NodeGame, Integers, int, Source], Integers]


def node_trials(claims: tuple[float, ...]) -> Iterator[tuple[NodeGame, str | None, NodePlay]]:
    """Each kind of noise at each claim, and the controls at the first."""
    for noise in CORRELATIONS:
        for encoding in ENCODED[noise]:
            for claim in claims:
                parts = {"decisions": "candidates", "encoding": encoding, "noise": noise}
                plan = audited_plan(claim, **parts, horizon=RELEASES)
                name = f"privatizer with {noise}, {encoding}, mu {claim:g}"
                game = NodeGame.of(plan, name)
                yield game, None, from_nodes
                if claim == claims[0]:
                    yield unpaid(game), "norm of the strategy forgotten", from_nodes
                    yield redrawn(plan, name), "noise redrawn at each release", from_nodes


ENCODED: dict[Correlation, tuple[EncodingName, ...]] = {
    "tree": ("gram", "fourier"),
    "square root": ("gram",),
    "blt": ("fourier",),
}


def _nodes(plan: Plan, first: float, *, prefixes: bool = False) -> Integers:
    """What the privatizer would release in every round but for noise, the first answer given."""
    privatizer, study = GlassPrivatizer(plan), Study(plan)
    for number in range(RELEASES):
        epoch = study.next_epoch()
        privatizer.open(epoch)
        privatizer.ask(Asked(number, np.array([0.1 * number % 1.0])))
        privatizer.tell(Told(number, first if number == 0 else 0.5))
        study = study.opened(epoch).released(privatizer.release())
    return np.cumsum(privatizer.sums, axis=0) if prefixes else np.array(privatizer.nodes)


def _node_stds(plan: Plan) -> Floats:
    if plan.correlated is None:
        raise TypeError("a plan with correlated noise")
    return np.tile(plan.correlated.encoding.stds(plan.map), (RELEASES, 1))
