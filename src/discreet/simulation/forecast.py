"""What a plan will cost and learn, before any data: how to choose epsilon.

Everything here follows from the plan, which is public. What noise does to learning is computed;
what it does to regret is simulated, on functions drawn from the plan's own prior: a forecast is
as good as the kernel, signal and noise that the plan assumes.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from discreet import checks
from discreet.agreement.plan import Plan
from discreet.arrays import Floats
from discreet.errors import InvalidArgument
from discreet.learning.belief import Belief
from discreet.learning.inference import expected_posterior
from discreet.learning.next_epoch import learner, menu_only
from discreet.learning.search import public_points
from discreet.learning.study import Study
from discreet.privacy.budget import NonPrivate
from discreet.simulation.campaign import Campaign
from discreet.simulation.epochs import begin, play_study
from discreet.simulation.forecast_report import Estimate, Forecast, Outlook
from discreet.simulation.levels import levels_of, quiet, rounds_of, under
from discreet.simulation.play import Curve, noise_of_first, regrets_shown
from discreet.simulation.prior_problem import Drawn
from discreet.simulation.worlds import World, generator_of
from discreet.threads import one_thread

#: Signal exceeds noise when this share of the prior variance of f is explained.
HALF = 0.5


@one_thread
def forecast(
    plan: Plan,
    epsilons: Iterable[float] = (0.1, 1.0, 10.0),
    *,
    delta: float | None = None,
    functions: int = 8,
    rounds: int | None = None,
    candidates: int = 25,
    seed: int = 0,
    resume: Path | None = None,
    advance: Callable[[int], None] = lambda rounds: None,
) -> Forecast:
    """What the plan would cost and learn under each epsilon, without privacy, and by chance.

    `delta` is the plan's unless given; `rounds` its horizon. Where the plan has the default
    schedule or encoding, each epsilon gets its own. Every setting plays the same `functions`
    draws from the plan's prior for the same people: over the whole box, with contexts spread over
    the domain, or with `candidates` uniform points each. An answer is Gaussian with the plan's
    `noise_std` around f, which is clipped to the range, and is clipped itself.

    What is played is kept in the file `resume`, if one is given, a line a study: the same call
    goes on where it was stopped, and one with more epsilons or functions plays those alone.
    `advance` is called with the number of rounds just played: (epsilons + 2) functions x rounds in
    all.

    >>> from discreet.domain.box import Box
    >>> from discreet.privacy.budget import JointDP
    >>> plan = Plan(domain=Box({"dose": (0, 10)}), privacy=JointDP(1.0, 1e-6), horizon=200)
    >>> found = forecast(plan, [1, 8], functions=2)
    >>> noisy, clear = found.private
    >>> clear.label, clear.epochs > noisy.epochs, clear.rounds_to_signal < noisy.rounds_to_signal
    ('epsilon = 8', True, True)
    """
    if not isinstance(plan, Plan):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument("plan", "a Plan")
    length = rounds_of(plan, rounds)
    seed, functions = checks.whole("seed", seed), checks.count("functions", functions)
    levels = levels_of(plan, epsilons, delta)
    plans = [under(plan, privacy, length) for privacy in (*levels, NonPrivate())]
    count = checks.count("candidates", candidates)
    settings = {"seed": seed, "rounds": length, "candidates": count, "plan": plan.digest}
    stage = _Stage(Campaign(resume, {"forecast": settings}), length, advance)
    worlds = [_Function.draw(plan, count, seed=seed, number=i) for i in range(functions)]
    uniform = [stage.play_uniformly(world) for world in worlds]
    yardstick = np.array([played.regret for played in uniform])
    outlooks = [
        _outlook(each, length, [stage.play(world, each) for world in worlds], yardstick)
        for each in plans
    ]
    return Forecast(
        rounds=length,
        functions=functions,
        seed=seed,
        delta=levels[0].delta if levels else None,
        decisions=plan.decisions or "box",
        features=plan.map.dimension,
        kernel_error=plan.map.error_bound,
        rewards=plan.rewards,
        private=tuple(outlooks[:-1]),
        not_private=outlooks[-1],
        uniform=_uniform_outlook(length, uniform, yardstick),
    )


def rounds_to_signal(plan: Plan, rounds: int) -> tuple[int | None, float]:
    """The smallest n up to `rounds` whose spread-out asks, released once, explain half of f.

    None if there is none; and the share that all rounds explain. By bisection: more rounds under
    the same noise never tell less.
    """
    before = learner(plan)
    explained = foreseen(plan, before, rounds)
    if explained < HALF:
        return None, explained
    too_few, enough = 0, rounds
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if foreseen(plan, before, middle) < HALF:
            too_few = middle
        else:
            enough = middle
    return enough, explained


def foreseen(plan: Plan, belief: Belief, asks: int) -> float:
    """The share of the variance of f that one release of `asks` spread-out asks would explain.

        1 - E_x Var[f(x) - f | release] / E_x Var[f(x) - f]        x over the public points

    where f is taken around its mean over them: a level is no reason to prefer an action.

    A Gaussian posterior's variance does not depend on what is answered: this takes no data.
    """
    points, posterior = public_points(plan.domain), belief.posterior
    if plan.correlated is None:
        after = belief.expected(asks, menu_only(plan, points))
    else:
        encoding = plan.correlated.prefix_of(plan.releases_of(asks))
        unknown = float(posterior.variance(points).mean())
        line = belief.line(encoding.residual, unknown)
        after = expected_posterior(posterior, encoding, asks, line, points)
    return 1.0 - after.shape_variance(points) / max(posterior.shape_variance(points), 1e-12)


@dataclass(frozen=True)
class _Played:
    """What is kept of a study: regret in all, a round at the end, on the way; and best()'s."""

    regret: float
    late_regret: float
    curve: list[float]
    simple_regret: float | None = None

    @classmethod
    def of(cls, regrets: Floats, simple_regret: float | None = None) -> "_Played":
        late = regrets[-math.ceil(len(regrets) / 10) :]
        total = float(regrets.sum())
        return cls(total, float(late.mean()), regrets_shown(regrets), simple_regret)


@dataclass(frozen=True, eq=False)
class _Function:
    """One function with its people and answers, the same for everyone who plays it."""

    problem: Drawn
    number: int
    label: str
    streams: tuple[np.random.SeedSequence, ...]

    @classmethod
    def draw(cls, plan: Plan, candidates: int, *, seed: int, number: int) -> "_Function":
        function, *streams = np.random.SeedSequence([seed, number]).spawn(4)
        problem = Drawn.draw(plan, candidates, generator_of(function))
        return cls(problem, number, f"forecast {seed}.{number}", tuple(streams))

    def world(self) -> World:
        """To be played once."""
        answers, player, people = map(generator_of, self.streams)
        decisions = self.problem.plan.decisions or "box"
        best = self.problem.maximum if decisions == "box" else None
        return World(self.problem, decisions, best, people, answers, player)


@dataclass(frozen=True, eq=False)
class _Stage:
    """Where functions are played, unless that is finished and kept."""

    campaign: Campaign
    rounds: int
    advance: Callable[[int], None]

    def play(self, function: _Function, plan: Plan) -> _Played:
        """A study under a plan."""

        def played() -> _Played:
            with quiet():
                study = begin(replace(plan, name=function.label))
            regrets, study = play_study(function.world(), study, self.rounds, self.advance)
            return _Played.of(regrets, function.problem.simple_regret(study))

        return self._once(function, plan.digest, played)

    def play_uniformly(self, function: _Function) -> _Played:
        """Uniform play."""

        def played() -> _Played:
            return _Played.of(function.world().play_uniformly(self.rounds, self.advance))

        return self._once(function, "uniform play", played)

    def _once(self, function: _Function, what: str, played: Callable[[], _Played]) -> _Played:
        name = f"function {function.number}, {what}"
        if self.campaign.has(name):
            self.advance(self.rounds)
        return _Played(**self.campaign.run(name, lambda: asdict(played())))


def _outlook(plan: Plan, rounds: int, played: list[_Played], yardstick: Floats) -> Outlook:
    """What a private or non-private plan costs and learns."""
    first = Study(plan).next_epoch()
    noise = noise_of_first(plan, first)
    epsilon = None if isinstance(plan.privacy, NonPrivate) else plan.privacy.epsilon
    signal, explained = rounds_to_signal(plan, rounds)
    return Outlook(
        label="not private" if epsilon is None else f"epsilon = {epsilon:g}",
        epsilon=epsilon,
        mu=None if plan.sends_indices else plan.mu,
        encoding=plan.encoding,
        epochs=sum(1 for _ in _epoch_lengths(plan, rounds)),
        first_epoch=plan.epoch_length(0),
        noise_std=noise * plan.half_width,
        noise_in_answers=noise / first.encoding.residual.width,
        rounds_to_signal=signal,
        explained=explained,
        simple_regret=Estimate.of(np.array([each.simple_regret for each in played])),
        **_regrets(rounds, played, yardstick),
    )


def _uniform_outlook(rounds: int, played: list[_Played], yardstick: Floats) -> Outlook:
    return Outlook(
        label="uniform play",
        epsilon=None,
        mu=None,
        encoding=None,
        epochs=None,
        first_epoch=None,
        noise_std=None,
        noise_in_answers=None,
        rounds_to_signal=None,
        explained=None,
        simple_regret=None,
        **_regrets(rounds, played, yardstick),
    )


def _regrets(rounds: int, played: list[_Played], yardstick: Floats) -> dict[str, Any]:
    totals = np.array([each.regret for each in played])
    return {
        "regret": Estimate.of(totals),
        "relative_regret": Estimate.ratio(totals, yardstick),
        "late_regret": Estimate.of(np.array([each.late_regret for each in played])),
        "curve": Curve.of(rounds, [each.curve for each in played]),
    }


def _epoch_lengths(plan: Plan, rounds: int) -> Iterator[int]:
    asked = 0
    while asked < rounds:
        yield (length := plan.epoch_length(asked))
        asked += length
