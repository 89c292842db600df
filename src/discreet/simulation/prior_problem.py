"""Problems drawn from what a plan believes: the functions that a forecast plays."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.agreement.plan import Plan
from discreet.arrays import Floats
from discreet.domain.box import Box
from discreet.learning.belief import Belief
from discreet.learning.kernel_bank import bank_of
from discreet.learning.search import Score, maximise, spread
from discreet.learning.study import Study, Value
from discreet.simulation.worlds import Options, row_of, rows_of, values_of

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
        points = rows_of(domain, spread(domain, count, rng)) if count else np.empty((0, 0))
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

    def mean(self, x: Floats) -> Floats:
        """f, within the range."""
        return self._clipped(self.plan.map(self.domain.encode(values_of(self.domain, x))))

    def reward(self, x: Floats, rng: np.random.Generator) -> float:
        """Gaussian around the mean; telling clips it."""
        noise_std = math.sqrt(self.plan.noise_variance) * self.plan.half_width
        return float(self.mean(x[None, :])[0] + noise_std * rng.standard_normal())

    @cached_property
    def maximum(self) -> float:
        """The highest mean over the box."""
        return self._highest(None)

    def maximum_under(self, context: dict[str, Value]) -> float:
        """The highest mean under the context of one of the people."""
        return self._ceilings[tuple(context.values())]

    def simple_regret(self, study: Study) -> float:
        """What the study's recommendation falls short by; a mean over people, if they differ."""
        judges: list[dict[str, Value] | None] = list(self.people[:JUDGES]) or [None]
        return float(np.mean([self._shortfall(study, context) for context in judges]))

    def _shortfall(self, study: Study, context: dict[str, Value] | None) -> float:
        highest = self.maximum if context is None else self.maximum_under(context)
        action = row_of(self.domain, study.best(context=context).action)
        return highest - float(self.mean(action[None, :])[0])

    @cached_property
    def _ceilings(self) -> dict[tuple[Value, ...], float]:
        return {
            tuple(context.values()): self._highest(self.domain.encode_context(context))
            for context in self.people
        }

    def _highest(self, context: Floats | None) -> float:
        score = Score(self.plan.map, np.empty((0, 0)), optimism=0.0)
        best = maximise(score, self.domain, self.coefficients[None, :], context=context)
        return float(self._clipped(self.plan.map(best))[0])

    def _clipped(self, phi: Floats) -> Floats:
        plan = self.plan
        return np.clip(plan.centre + plan.half_width * (phi @ self.coefficients), *plan.rewards)
