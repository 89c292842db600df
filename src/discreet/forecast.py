"""What a plan will cost and learn, before any data: how to choose epsilon.

Everything here follows from the plan, which is public. What noise does to learning is computed;
what it does to regret is simulated, on functions drawn from the plan's own prior: a forecast is
as good as the kernel, signal and noise that the plan assumes.
"""

import math
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import checks
from discreet.bank import bank_of
from discreet.belief import Belief
from discreet.budget import JointDP, LocalDP, NonPrivate, Privacy, Protect, Simulation
from discreet.domain import Box
from discreet.epoch import foreseen, of_sum
from discreet.errors import InvalidArgument, LargeDelta
from discreet.plan import Plan
from discreet.search import Score, maximise, spread
from discreet.simulation import (
    BanditPlayer,
    Curve,
    Options,
    UniformPlayer,
    play,
    regret_curve,
    row_of,
    rows_of,
    standard_error,
    values_of,
)
from discreet.study import Study, Value

Floats = NDArray[np.float64]

#: Signal exceeds noise when this share of the prior variance of f is explained.
HALF = 0.5
#: Candidates of a simulated round are drawn from so many points of the domain, and contexts from
#: so many people; the final recommendation is judged on the first of these.
POINTS, PEOPLE, JUDGES = 2048, 64, 16


@dataclass(frozen=True)
class Estimate:
    """A mean over simulated functions and its standard error, which one function does not have."""

    mean: float
    sem: float | None

    @classmethod
    def of(cls, values: Floats) -> "Estimate":
        """The mean of the values."""
        return cls(float(values.mean()), standard_error(values))

    @classmethod
    def ratio(cls, values: Floats, yardstick: Floats) -> "Estimate":
        """sum of values / sum of yardstick, paired; the error to first order.

        >>> Estimate.ratio(np.array([1.0, 3.0]), np.array([2.0, 6.0]))
        Estimate(mean=0.5, sem=0.0)
        """
        ratio = float(values.sum() / yardstick.sum())
        error = standard_error(values - ratio * yardstick)
        return cls(ratio, None if error is None else error / float(yardstick.mean()))


@dataclass(frozen=True)
class Outlook:
    """What one privacy level costs and learns; rewards and regrets in the plan's reward units.

    Known beforehand (None for uniform play, which releases nothing):

    - `mu`: what one round costs, in Gaussian privacy; None without privacy.
    - `encoding`, `epochs`, `first_epoch`: how rounds become integers, how many releases the
      schedule makes, and how many rounds the first of them sums.
    - `noise_std`: the noise on each reward sum of the first release; `noise_in_answers`: the same
      in units of the most that one answer can add.
    - `rounds_to_signal`: the smallest n for which n spread-out asks, released once, explain half
      of the prior variance of f,

          1 - E_x Var[f(x) | release of n asks] / E_x Var[f(x)] >= 1/2        (x over the domain),

      or None when that is beyond the rounds of the study.
    - `explained`: that share when all rounds of the study are spread out and released once.

    Simulated, all over the same functions and users:

    - `regret` over all rounds; `relative_regret`, as a share of that of uniform play;
      `late_regret` a round, in the last tenth; `simple_regret`, what the action that `best()`
      recommends at the end falls short by; and the `curve` of the regret so far.
    """

    label: str
    epsilon: float | None
    mu: float | None
    encoding: str | None
    epochs: int | None
    first_epoch: int | None
    noise_std: float | None
    noise_in_answers: float | None
    rounds_to_signal: int | None
    explained: float | None
    regret: Estimate
    relative_regret: Estimate
    late_regret: Estimate
    simple_regret: Estimate | None
    curve: Curve

    @property
    def meaning(self) -> str:
        """What the noise of the first release means."""
        if self.noise_std is None or self.noise_in_answers is None:
            return "Nothing is released and nothing is learnt."
        if self.noise_std == 0.0:
            return f"The first release sums {self.first_epoch:,} rounds exactly: no noise."
        return (
            f"The first release sums {self.first_epoch:,} rounds; each of its reward sums gets "
            f"Gaussian noise of standard deviation {self.noise_std:.3g}, as much as "
            f"{self.noise_in_answers:.3g} people who all answer at the end of the range."
        )


@dataclass(frozen=True)
class Forecast:
    """One outlook for each epsilon, ascending, and two yardsticks beside them."""

    rounds: int
    functions: int
    seed: int
    delta: float | None
    decisions: str
    features: int
    kernel_error: float
    rewards: tuple[float, float]
    private: tuple[Outlook, ...]
    not_private: Outlook
    uniform: Outlook

    @property
    def outlooks(self) -> tuple[Outlook, ...]:
        """Every outlook: the epsilons, then no privacy, then uniform play."""
        return (*self.private, self.not_private, self.uniform)

    def kept(self, outlook: Outlook) -> float | None:
        """The share of what learning gains over uniform play without privacy that is kept.

        None when there is no clear gain (two standard errors) to keep a share of.
        """
        best = self.not_private.relative_regret
        if best.mean + 2.0 * (best.sem or 0.0) >= 1.0:
            return None
        return (1.0 - outlook.relative_regret.mean) / (1.0 - best.mean)

    @property
    def advice(self) -> str:
        """What to take from the numbers, in a few sentences."""
        return " ".join(_advice(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        plain = asdict(self)
        del plain["private"], plain["not_private"], plain["uniform"]
        rows = [
            {**asdict(outlook), "kept": self.kept(outlook), "meaning": outlook.meaning}
            for outlook in self.outlooks
        ]
        return {**plain, "rewards": list(self.rewards), "rows": rows, "advice": self.advice}


def forecast(
    plan: Plan,
    epsilons: Iterable[float] = (0.1, 1.0, 10.0),
    *,
    delta: float | None = None,
    functions: int = 8,
    rounds: int | None = None,
    candidates: int = 25,
    seed: int = 0,
    advance: Callable[[int], None] = lambda rounds: None,
) -> Forecast:
    """What the plan would cost and learn under each epsilon, without privacy, and by chance.

    `delta` is the plan's unless given; `rounds` its horizon. Where the plan has the default
    schedule or encoding, each epsilon gets its own. Every setting plays the same `functions`
    draws from the plan's prior for the same people: over the whole box, with contexts spread over
    the domain, or with `candidates` uniform points each. An answer is Gaussian with the plan's
    `noise_std` around f, which is clipped to the range, and is clipped itself. `advance` is
    called with the number of rounds just played: (epsilons + 2) functions x rounds in all.

    >>> from discreet.domain import Box
    >>> plan = Plan(domain=Box({"dose": (0, 10)}), privacy=JointDP(1.0, 1e-6), horizon=200)
    >>> found = forecast(plan, [1, 8], functions=2)
    >>> noisy, clear = found.private
    >>> clear.label, clear.epochs > noisy.epochs, clear.rounds_to_signal < noisy.rounds_to_signal
    ('epsilon = 8', True, True)
    """
    if not isinstance(plan, Plan):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument("plan", "a Plan")
    if plan.noise is not None:
        raise InvalidArgument("plan", "independent noise: simulate the prefix estimator instead")
    length = _checked_rounds(plan, rounds)
    seed, functions = checks.whole("seed", seed), checks.count("functions", functions)
    levels = _levels(plan, epsilons, delta)
    plans = [_under(plan, privacy, length) for privacy in (*levels, NonPrivate())]
    count = checks.count("candidates", candidates)
    worlds = [_World.draw(plan, count, seed=seed, number=i) for i in range(functions)]
    uniform = [world.play_uniformly(length, advance) for world in worlds]
    yardstick = np.array([played.regrets for played in uniform]).sum(axis=1)
    outlooks = [
        _outlook(each, [world.play(each, length, advance) for world in worlds], yardstick)
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
        uniform=_uniform_outlook(uniform, yardstick),
    )


def rounds_to_signal(plan: Plan, rounds: int) -> tuple[int | None, float]:
    """The smallest n up to `rounds` whose spread-out asks, released once, explain half of f.

    None if there is none; and the share that all rounds explain. By bisection: more rounds under
    the same noise never tell less.
    """
    before = Belief.before(plan)
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
        action = row_of(self.domain, study.best(context).action)
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


@dataclass(frozen=True, eq=False)
class _Played:
    regrets: Floats
    simple_regret: float | None = None


@dataclass(frozen=True, eq=False)
class _World:
    """One function with its users and answers, the same for everyone who plays it."""

    problem: Drawn
    label: str
    users: np.random.SeedSequence
    chance: np.random.SeedSequence

    @classmethod
    def draw(cls, plan: Plan, candidates: int, *, seed: int, number: int) -> "_World":
        function, users, chance = np.random.SeedSequence([seed, number]).spawn(3)
        problem = Drawn.draw(plan, candidates, _generator(function))
        return cls(problem, f"forecast {seed}.{number}", users, chance)

    def play(self, plan: Plan, rounds: int, advance: Callable[[int], None]) -> _Played:
        with _quiet():
            named = replace(plan, name=self.label)
        own = Simulation(int(_generator(self.chance).integers(2**63)))
        player = BanditPlayer(named, own)
        regrets = self._regrets(player, rounds, advance)
        player.bandit.finish()
        return _Played(regrets, self.problem.simple_regret(player.bandit.study))

    def play_uniformly(self, rounds: int, advance: Callable[[int], None]) -> _Played:
        player = UniformPlayer(self.problem.domain, _generator(self.chance))
        return _Played(self._regrets(player, rounds, advance))

    def _regrets(
        self, player: BanditPlayer | UniformPlayer, rounds: int, advance: Callable[[int], None]
    ) -> Floats:
        best = self.problem.maximum if self.problem.plan.decisions == "box" else None
        rng = _generator(self.users)
        return play(self.problem, player, rounds, best=best, rng=rng, advance=advance)


def _outlook(plan: Plan, played: list[_Played], yardstick: Floats) -> Outlook:
    """What a private or non-private plan costs and learns."""
    rounds, first = len(played[0].regrets), Study(plan).next_epoch()
    encoding = of_sum(plan, first.encoding, first.length)
    epsilon = None if isinstance(plan.privacy, NonPrivate) else plan.privacy.epsilon
    signal, explained = rounds_to_signal(plan, rounds)
    return Outlook(
        label="not private" if epsilon is None else f"epsilon = {epsilon:g}",
        epsilon=epsilon,
        mu=plan.mu,
        encoding=plan.encoding,
        epochs=sum(1 for _ in _epoch_lengths(plan, rounds)),
        first_epoch=plan.epoch_length(0),
        noise_std=encoding.noise.cross * plan.half_width,
        noise_in_answers=encoding.noise.cross / encoding.residual.width,
        rounds_to_signal=signal,
        explained=explained,
        simple_regret=Estimate.of(np.array([each.simple_regret for each in played])),
        **_regrets(played, yardstick),
    )


def _uniform_outlook(played: list[_Played], yardstick: Floats) -> Outlook:
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
        **_regrets(played, yardstick),
    )


def _regrets(played: list[_Played], yardstick: Floats) -> dict[str, Any]:
    regrets = np.array([each.regrets for each in played])
    totals = regrets.sum(axis=1)
    late = regrets[:, -math.ceil(regrets.shape[1] / 10) :]
    return {
        "regret": Estimate.of(totals),
        "relative_regret": Estimate.ratio(totals, yardstick),
        "late_regret": Estimate.of(late.mean(axis=1)),
        "curve": regret_curve(regrets),
    }


def _epoch_lengths(plan: Plan, rounds: int) -> Iterator[int]:
    asked = 0
    while asked < rounds:
        yield (length := plan.epoch_length(asked))
        asked += length


def _advice(found: Forecast) -> Iterator[str]:
    best = found.not_private.relative_regret.mean
    if found.kept(found.not_private) is None:
        yield (
            f"Even without privacy {found.rounds:,} rounds are not clearly better than uniform "
            "play: take more rounds, or a smoother kernel, before choosing epsilon."
        )
    else:
        yield f"Without privacy, learning cuts the regret of uniform play to {best:.0%}."
        shares = [(outlook, found.kept(outlook) or 0.0) for outlook in found.private]
        words = [f"{o.label} keeps {max(share, 0.0):.0%}" for o, share in shares]
        half = [o.label for o, share in shares if share >= HALF]
        if words:
            yield f"Of that gain {', '.join(words)}."
            yield (
                f"The strongest privacy here that keeps at least half is {half[0]}."
                if half
                else "None of these keeps half: take more rounds or a larger epsilon."
            )
    drowned = [f"{o.epsilon:g}" for o in found.private if o.rounds_to_signal is None]
    if drowned:
        yield (
            f"At epsilon = {', '.join(drowned)} even all {found.rounds:,} rounds in one release "
            "would hold more noise than signal."
        )
    if found.delta is not None and found.delta * found.rounds > 1.0:
        yield (
            f"delta = {found.delta:g} would allow publishing some of {found.rounds:,} people "
            "outright: take it well below 1 / rounds."
        )


def _levels(
    plan: Plan, epsilons: Iterable[float], delta: float | None
) -> Sequence[JointDP | LocalDP]:
    """The promises to compare, strongest first; what they protect, and from whom, is the plan's."""
    words = "a sequence of positive numbers"
    if isinstance(epsilons, str) or not isinstance(epsilons, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument("epsilons", words)
    wanted = sorted({checks.number("epsilons", epsilon, above=0.0) for epsilon in epsilons})
    given = plan.privacy
    if not isinstance(given, NonPrivate):
        delta = given.delta if delta is None else delta
        return [replace(given, epsilon=epsilon, delta=delta) for epsilon in wanted]
    if wanted and delta is None:
        raise InvalidArgument("delta", "a probability: a plan without privacy has none")
    protect: Protect = "rewards" if plan.public_decisions else "decisions"
    return [JointDP(epsilon, delta or 0.0, protect) for epsilon in wanted]


def _under(plan: Plan, privacy: Privacy, rounds: int) -> Plan:
    """The same plan under other privacy; what is left to defaults follows it."""
    joint = isinstance(privacy, JointDP)
    with _quiet():
        default = replace(plan, schedule=None, exploration=None, encoding="auto", looks=None)
        return replace(
            plan,
            privacy=privacy,
            horizon=rounds,
            schedule=None if default.schedule == plan.schedule else plan.schedule,
            exploration=None if default.exploration == plan.exploration else plan.exploration,
            encoding="auto" if default.encoding == plan.encoding else plan.encoding,
            looks=None if default.looks == plan.looks or not joint else plan.looks,
        )


def _checked_rounds(plan: Plan, rounds: int | None) -> int:
    wanted = plan.horizon if rounds is None else rounds
    if wanted is None:
        raise InvalidArgument("rounds", "a whole number: the plan has no horizon")
    return checks.count("rounds", wanted)


def _generator(stream: np.random.SeedSequence) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(stream))


@contextmanager
def _quiet() -> Generator[None]:
    """The plan itself has warned of a large delta, and the advice does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LargeDelta)
        yield
