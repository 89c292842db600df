"""How regret grows where no gap helps: camelback over its whole box, by three ways to play.

With a gap between the best candidate and the rest regret stops growing. Here actions as good as the
best within any error are allowed, so it goes on. The paper's algorithm is calibrated exactly;
elimination plays as proven; ours is the default. What their theorems promise is shown beside them:
for ours, nothing.
"""

from collections.abc import Iterator, Sequence
from itertools import product

from discreet.experiments.contenders import Played, Trial
from discreet.experiments.growth import DELTA, EPSILON, Growth, growth_of_way
from discreet.experiments.phases import camelback_plan
from discreet.learning.theory_report import theory_report
from discreet.privacy.budget import JointDP

#: Regret is read after 2^12, ..., 2^17 rounds.
OCTAVES = tuple(range(12, 18))
QUICK_OCTAVES = tuple(range(7, 12))
WAYS = {"tree": "paper's, exact", "elimination": "elimination", "ours": "ours"}
#: The exponent of T that each theorem promises, up to logarithms, and its name.
PROMISED = {"tree": "Theorem 3, tree", "elimination": "elimination"}


def no_gap_trials(runs: int, octaves: Sequence[int] = OCTAVES, seed: int = 0) -> Iterator[Trial]:
    """Runs of all ways, each as long as the last octave."""
    for run, way in product(range(runs), WAYS):
        yield Trial("camelback", way, EPSILON, DELTA, 1 << octaves[-1], seed, run)


def octaves_of(rows: Sequence[Played]) -> tuple[int, ...]:
    """Those of a whole sweep, or of a quick one."""
    return OCTAVES if rows[0].rounds == 1 << OCTAVES[-1] else QUICK_OCTAVES


def grown(rows: Sequence[Played]) -> list[Growth]:
    """Means and exponents of every way."""
    octaves = octaves_of(rows)
    return [growth_of_way(rows, way, name, octaves=octaves) for way, name in WAYS.items()]


def promised(rounds: Sequence[int]) -> dict[str, tuple[float, ...]]:
    """The bounds on regret that are proven for each way, by its name."""
    found = theory_report(camelback_plan(JointDP(EPSILON, DELTA)), rounds)
    bounds = {each.name: each.regret for each in found.bounds}
    return {WAYS[way]: bounds[name] for way, name in PROMISED.items()}
