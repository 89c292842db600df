"""Games against the printed lemmas: does the noise they print keep the promise they make?

Each game is the worst pair for its lemma, in the smallest feature space that has one, and plays
nothing but the printed formula. Seeded: it is about published formulas, not about anyone.

In a tree the releases after 1, 2, 4, ... rounds are single nodes with noise of their own, and
every one holds the first round. No other node does: these releases are all there is to see.

    python -m discreet.experiments.printed_audit
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Floats
from discreet.audit.contest import FALSE_ALARM, lower_bound
from discreet.audit.streams import Normals
from discreet.experiments.as_printed import Printed
from discreet.privacy.correlation import Tree

#: What the errata says of each: the first two leak, the last two do not.
CASES = (
    Printed("appendix", alpha=0.1, beta=0.01, horizon=1024),
    Printed("local", alpha=10.0, beta=0.1, horizon=1),
    Printed("variance", alpha=10.0, beta=0.1, horizon=1024),
    Printed("local", alpha=1.0, beta=0.1, horizon=1),
)


@dataclass(frozen=True, eq=False)
class PrintedGame:
    """Two rounds under a printed calibration: everything that is released about them."""

    printed: Printed
    worlds: tuple[Floats, Floats]
    stds: Floats

    @property
    def name(self) -> str:
        """Which lemma, and where."""
        p = self.printed
        return f"{p.form}, alpha {p.alpha:g}, beta {p.beta:g}"

    @property
    def claim(self) -> float:
        """The mu of (alpha, beta)."""
        return self.printed.claim

    @property
    def weights(self) -> Floats:
        """The likelihood ratio's, for independent noise."""
        return (self.worlds[1] - self.worlds[0]) / np.square(self.stds)

    @classmethod
    def of(cls, printed: Printed) -> "PrintedGame":
        """The worst pair of rounds."""
        return _local(printed) if printed.form == "local" else _joint(printed)


def printed_play(game: PrintedGame, world: Floats, draws: int, bits: Normals) -> Floats:
    """The release in so many draws."""
    return world + game.stds * bits.normals(draws * len(world)).reshape(draws, -1)


def audit_printed(
    draws: int, *, rng: np.random.Generator, cases: tuple[Printed, ...] = CASES
) -> list[float]:
    """What each case is shown to cost: a lower bound on its mu. Together they hold but for 1e-6."""
    confidence = 1.0 - FALSE_ALARM / len(cases)
    games, bits = [PrintedGame.of(printed) for printed in cases], _Dice(rng)
    return [lower_bound(game, printed_play, draws, confidence, bits) for game in games]


def _joint(printed: Printed) -> PrintedGame:
    """z = (phi, B) against (phi', -r), as far apart as they come, in all their nodes."""
    bound, other = printed.norm, printed.worst_reward
    nodes = round(Tree().sensitivity(printed.horizon) ** 2)
    pair = zip(_pair(min(bound * other, 1.0)), (bound, -other), strict=True)
    # In coordinates where a GOE is round: a diagonal entry has sqrt(2) times the noise.
    rows, columns = np.triu_indices(3)
    scale = np.where(rows == columns, math.sqrt(2.0), 1.0)
    joined = [np.append(phi, reward) for phi, reward in pair]
    worlds = [np.tile(np.outer(z, z)[rows, columns], nodes) for z in joined]
    return PrintedGame(printed, (worlds[0], worlds[1]), printed.noise.gram * np.tile(scale, nodes))


def _local(printed: Printed) -> PrintedGame:
    """Linear features on two axes, at the same angle from either: the diagonal moves most."""
    rows, columns = np.triu_indices(2)
    worlds = [
        np.concatenate([np.outer(phi, phi)[rows, columns], sign * printed.norm * phi])
        for phi, sign in zip(_pair(printed.worst_overlap), (1.0, -1.0), strict=True)
    ]
    stds = np.repeat([printed.noise.gram, printed.noise.cross], [3, 2])
    return PrintedGame(printed, (worlds[0], worlds[1]), stds)


def _pair(overlap: float) -> tuple[Floats, Floats]:
    """Unit vectors with this inner product, mirror images in the diagonal of the plane."""
    angle = math.pi / 4 - math.acos(overlap) / 2
    near = np.array([math.cos(angle), math.sin(angle)])
    return near, near[::-1].copy()


class _Dice:
    """Seeded normals."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def normals(self, count: int) -> Floats:
        """The next of the stream."""
        return self._rng.standard_normal((count,))


def report(show: Callable[[str], object], draws: int = 30_000) -> None:
    """One line for each case."""
    bounds = audit_printed(draws, rng=np.random.Generator(np.random.Philox(1)))
    for printed, bound in zip(CASES, bounds, strict=True):
        seen = "caught" if bound > printed.claim else "not caught"
        show(
            f"{PrintedGame.of(printed).name}: claims mu {printed.claim:.3f}, costs "
            f"{printed.cost:.3f}, shown {bound:.3f}: {seen} ({printed.label})"
        )


if __name__ == "__main__":
    import sys

    report(lambda line: sys.stdout.write(line + "\n"))
