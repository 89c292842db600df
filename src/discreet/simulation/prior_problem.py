"""Problems drawn from what a plan believes: the functions that a forecast plays."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.agreement.plan import Plan
from discreet.arrays import Floats
from discreet.domain.box import Box
from discreet.learning.belief import Belief
from discreet.learning.kernel_bank import bank_of
from discreet.learning.search import Score, maximise, maximise_under, spread
from discreet.learning.structures import structures_of
from discreet.learning.study import Study, Value
from discreet.simulation.people import Columns, Options

#: Candidates of a simulated round are drawn from so many points of the domain, and contexts from
#: so many people; the final recommendation is judged on the first of these.
POINTS, PEOPLE, JUDGES = 2048, 64, 16


def draw_function(plan: Plan, rng: np.random.Generator) -> Floats:
    """Coefficients of one f from what the plan believes; the only place that draws from it.

    Of a kernel to be learnt, any option; around the middle of the range, where the plan has no
    better guess of the level.
    """
    normals = rng.standard_normal(plan.map.dimension)
    if plan.prior is not None:
        return Belief.before(plan).posterior.draws(normals[None, :])[0]
    if (structures := structures_of(plan)) is not None:
        return structures.draw(plan.signal_variance, rng)
    bank = bank_of(plan)
    option = int(rng.integers(len(bank.variances[0])))
    variances = np.concatenate([group[option] for group in bank.variances])
    return normals * np.sqrt(plan.signal_variance * variances)


@dataclass(frozen=True, eq=False)
class Drawn:
    """A problem whose mean is a function from the plan's prior, clipped to the reward range.

    `people` are the contexts users come with, if the domain has any; `points` rows in natural
    units that candidates are drawn from.
    """

    plan: Plan
    coefficients: Floats
    candidates: int
    points: Floats
    people: tuple[dict[str, Value], ...]

    @classmethod
    def draw(cls, plan: Plan, candidates: int, rng: np.random.Generator) -> "Drawn":
        """A function, and users spread over the domain."""
        coefficients, domain = draw_function(plan, rng), plan.domain
        count = max(POINTS, candidates) if plan.decisions == "candidates" else 0
        points = domain.numbers(spread(domain, count, rng)) if count else np.empty((0, 0))
        users = spread(domain, PEOPLE, rng) if domain.has_context else ()
        people = tuple(
            {name: value for name, value in domain.decode(user).items() if name in domain.context}
            for user in users
        )
        return cls(plan, coefficients, candidates, points, people)

    @property
    def domain(self) -> Box:
        """The plan's."""
        return self.plan.domain

    @property
    def rewards(self) -> tuple[float, float]:
        """The plan's."""
        return self.plan.rewards

    def decision_set(self, rng: np.random.Generator) -> Options:
        """Nothing, the context of one of the people, or some of the points: as the plan says."""
        if self.plan.decisions == "box":
            return None
        if self.plan.decisions == "context":
            return self.people[rng.integers(len(self.people))]
        return self.points[rng.choice(len(self.points), self.candidates, replace=False)]

    def decision_sets(self, count: int, rng: np.random.Generator) -> Floats | Columns:
        """As `decision_set`, of many: columns of contexts, or (people, candidates, coordinates)."""
        if self.plan.decisions == "context":
            chosen: list[int] = rng.integers(len(self.people), size=count).tolist()
            return {name: [self.people[i][name] for i in chosen] for name in self.domain.context}
        order = rng.random((count, len(self.points))).argpartition(self.candidates - 1, axis=1)
        return self.points[order[:, : self.candidates]]

    def mean(self, x: Floats) -> Floats:
        """f, within the range."""
        return self._clipped(self.plan.map(self.domain.encode_numbers(x)))

    def reward(self, x: Floats, rng: np.random.Generator) -> float:
        """Gaussian around the mean; telling clips it."""
        return float(self.answers(x[None, :], rng)[0])

    def answers(self, x: Floats, rng: np.random.Generator) -> Floats:
        """As `reward`, to every row."""
        noise_std = math.sqrt(self.plan.noise_variance) * self.plan.half_width
        return self.mean(x) + noise_std * rng.standard_normal(len(x))

    @cached_property
    def maximum(self) -> float:
        """The highest mean over the box."""
        best = maximise(self._score, self.domain, self.coefficients[None, :])
        return float(self._clipped(self.plan.map(best))[0])

    def maximum_under(self, context: dict[str, Value]) -> float:
        """The highest mean under the context of one of the people."""
        return self._ceilings[tuple(context.values())]

    def maxima_under(self, contexts: Columns) -> Floats:
        """As `maximum_under`, of many."""
        people = zip(*contexts.values(), strict=True)
        return np.array([self._ceilings[values] for values in people])

    def simple_regret(self, study: Study) -> float:
        """What the study's recommendation falls short by; a mean over people, if they differ."""
        if not self.people:
            best = self.domain.encode([study.best().action])
            return self.maximum - float(self._clipped(self.plan.map(best))[0])
        posterior, judges = study.posterior, self.people[:JUDGES]
        score = Score(self.plan.map, posterior.whitening, optimism=0.0)
        best = self._highest(score, posterior.coefficients, judges)
        reached = self._clipped(self.plan.map(best))
        return float(np.mean([self.maximum_under(each) for each in judges] - reached))

    @cached_property
    def _ceilings(self) -> dict[tuple[Value, ...], float]:
        best = self._highest(self._score, self.coefficients, self.people)
        reached = self._clipped(self.plan.map(best)).tolist()
        people = (tuple(context.values()) for context in self.people)
        return dict(zip(people, reached, strict=True))

    def _highest(
        self, score: Score, coefficients: Floats, people: Sequence[dict[str, Value]]
    ) -> Floats:
        """The best scaled action for each of some people, by these coefficients."""
        contexts = np.array([self.domain.encode_context(each) for each in people])
        tilts = np.repeat(coefficients[None, :], len(people), axis=0)
        return maximise_under(score, self.domain, tilts, contexts)

    @property
    def _score(self) -> Score:
        return Score(self.plan.map, np.empty((0, 0)), optimism=0.0)

    def _clipped(self, phi: Floats) -> Floats:
        plan = self.plan
        return np.clip(plan.centre + plan.half_width * (phi @ self.coefficients), *plan.rewards)
