"""The paper's algorithms with the calibrations it prints. **Not for data: some are not private.**

Kept so that experiments can compare and audits can catch; an import contract keeps everything
else away. Each `Printed` knows what it truly costs: `private` says whether that is what the paper
claims, and `label` says it in words.

Two lemmas calibrate noise. The joint one (Lemma 2) prints a bound on sigma whose proof sketch is
about sigma^2, and the appendix restates it with alpha^2 on the wrong side:

    joint       16 n (1 + B^2 + 2 rho^2 ln(8 T / beta)) ln(10 / beta)^2 / alpha^2
    appendix    16 n (1 + B^2 + rho^2 ln(4 T / beta)) ln(4 / beta)^2 alpha^2
    local       sigma_X^2 = 8 ln(5 / (2 beta)) / alpha^2
                sigma_u^2 = 8 (B^2 + 2 ln(8 m / delta)) ln(5 / beta) / alpha^2

with n = 1 + ceil(log2 T), and in the last line delta taken for beta.

For bounded rewards, as in the paper's experiments, the terms with rho (for the local lemma, with
m: the *tail*) are left out, as its Section 6 does. Noise sits where the text of the proof has it:
once on each node of a tree, at most n nodes in a prefix. (Read literally, Algorithm 2 puts it on
leaves, where it grows with t, and draws it again at every insertion, which averages it out.)
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import minimize_scalar

from discreet import checks
from discreet.agreement.plan import Confidence, Plan
from discreet.errors import InvalidArgument
from discreet.experiments.prefix import PrefixPlayer, release_times
from discreet.learning.posterior import Posterior
from discreet.learning.prefix_belief import FAILURE, Practical, Prefix, Proven
from discreet.learning.theory import Assumptions, Spectrum, log_determinant
from discreet.privacy.clipping import Noise
from discreet.privacy.correlation import Independent, Strategy, Tree
from discreet.privacy.cost import GaussianPrivacy
from discreet.simulation.play import Run, Setting, plan_for
from discreet.simulation.worlds import MakeProblem, World

#: The joint lemma read as a variance and as a standard deviation, its appendix form, the local one.
Form = Literal["variance", "std", "appendix", "local"]
FORMS: tuple[Form, ...] = ("variance", "std", "appendix", "local")


@dataclass(frozen=True)
class Printed:
    """A calibration as printed for `horizon` rounds: its noise, what it claims, what it costs.

    `norm` is B, which bounds rewards; `tail` adds the terms for unbounded ones (rho = 1), for
    this many features m.

    >>> Printed("appendix", alpha=0.1, beta=0.01, horizon=1024).label
    'NOT PRIVATE: delta is 0.195, not 0.01'
    >>> Printed("variance", alpha=10.0, beta=0.1, horizon=1024).label
    'private, with 4.6 times the noise it takes'
    """

    form: Form
    alpha: float
    beta: float
    horizon: int
    norm: float = 1.0
    tail: int | None = None

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise InvalidArgument("form", f"one of {', '.join(FORMS)}", self.form)
        checks.number("alpha", self.alpha, above=0.0)
        if not 0.0 < checks.number("beta", self.beta) < 1.0:
            raise InvalidArgument("beta", "a number between 0 and 1", self.beta)
        checks.count("horizon", self.horizon)
        checks.number("norm", self.norm, above=0.0)

    @property
    def nodes(self) -> int:
        """n = 1 + ceil(log2 T), as the paper counts."""
        return 1 + (self.horizon - 1).bit_length()

    @property
    def strategy(self) -> Strategy:
        """A tree in the joint model, a sum of reports in the local one."""
        return Independent() if self.form == "local" else Tree()

    @property
    def noise(self) -> Noise:
        """The std of a node (of a report, in the local model)."""
        if self.form == "local":
            return self._local()
        a, b, t = self.alpha, self.beta, self.horizon
        tail = 0.0 if self.tail is None else 1.0
        if self.form == "appendix":
            bounded = 1.0 + self.norm**2 + tail * math.log(4.0 * t / b)
            value = 16.0 * self.nodes * bounded * math.log(4.0 / b) ** 2 * a**2
        else:
            bounded = 1.0 + self.norm**2 + tail * 2.0 * math.log(8.0 * t / b)
            value = 16.0 * self.nodes * bounded * math.log(10.0 / b) ** 2 / a**2  # Lemma 2
        std = value if self.form == "std" else math.sqrt(value)
        return Noise(std, std)

    @property
    def claim(self) -> float:
        """The mu of (alpha, beta)."""
        return GaussianPrivacy.of(self.alpha, self.beta).mu

    @property
    def cost(self) -> float:
        """The mu that rewards within [-B, B] truly cost (docs/errata).

        A tree: `change` sqrt(floor(log2 T) + 1) / sigma. A report, whose diagonal has no more
        noise than the rest: the largest 2 (1 - c^2) / sigma_X^2 + 2 B^2 (1 + c) / sigma_u^2.
        """
        if self.form != "local":
            return self.change * Tree().sensitivity(self.horizon) / self.noise.gram
        return math.sqrt(self._report(self.worst_overlap))

    @property
    def change(self) -> float:
        """How far zz^T moves at most, z = (phi, y), in coordinates where a GOE is round.

        (|z|^4 + |z'|^4 - 2 (z z')^2) / 2 is largest for y = B and some y' = -r: 1 + B^2 for
        B <= 1, where phi phi' = B r makes z z' = 0.
        """
        return math.sqrt(_apart(self.norm, self.worst_reward))

    @property
    def worst_reward(self) -> float:
        """The r of `change`: B, or where the derivative r^3 - (B^2 - 1) r + B vanishes."""
        bound = self.norm
        roots = np.roots([1.0, 0.0, 1.0 - bound**2, bound])
        inside = [float(r.real) for r in roots if abs(r.imag) < 1e-9 and 1 / bound < r.real < bound]
        return max([bound, *inside], key=lambda reward: _apart(bound, reward))

    @property
    def worst_overlap(self) -> float:
        """The inner product c of the features of the two reports that are easiest to tell apart."""
        found = minimize_scalar(lambda c: -self._report(c), bounds=(0.0, 1.0), method="bounded")
        return float(found.x)

    @property
    def private(self) -> bool:
        """Whether it costs what it claims, or less."""
        return self.cost <= self.claim

    @property
    def label(self) -> str:
        """What a table should say of it."""
        if self.private:
            return f"private, with {self.claim / self.cost:.2g} times the noise it takes"
        delta = GaussianPrivacy(self.cost).delta(self.alpha)
        return f"NOT PRIVATE: delta is {delta:.3f}, not {self.beta:g}"

    def spectrum(self, dimension: int, failure: float) -> Spectrum:
        """Lemmas 3 and 6 as printed: Lambda with 2 ln(2T / zeta) where a root belongs.

        >>> form = Printed("variance", alpha=1.0, beta=0.1, horizon=1024)
        >>> round(form.spectrum(69, 0.1).smallest / form.noise.gram)
        249
        """
        t, m, noise = self.horizon, checks.count("dimension", dimension), self.noise
        logs = math.log(2.0 * t / failure)
        if self.form == "local":
            plain = math.sqrt(t) * (4.0 * math.sqrt(m) + 2.0 * logs)
            bound, kappa = noise.gram * plain, noise.cross * math.sqrt(m * t / plain)
        else:
            bound = noise.gram * math.sqrt(2.0 * self.nodes) * (4.0 * math.sqrt(m) + 2.0 * logs)
            length = math.sqrt(m) + math.sqrt(2.0 * logs)
            kappa = noise.gram * math.sqrt(self.nodes / bound) * length
        return Spectrum(2.0 * bound, bound, 3.0 * bound, kappa)

    def _local(self) -> Noise:
        a, b = self.alpha, self.beta
        tail = 0.0 if self.tail is None else 2.0 * math.log(8.0 * self.tail / b)
        gram = 8.0 / a**2 * math.log(2.5 / b)
        cross = 8.0 / a**2 * (self.norm**2 + tail) * math.log(5.0 / b)  # Lemma 5
        return Noise(math.sqrt(gram), math.sqrt(cross))

    def _report(self, overlap: float) -> float:
        noise, square = self.noise, self.norm**2
        gram = 2.0 * (1.0 - overlap**2) / noise.gram**2
        return gram + 2.0 * square * (1.0 + overlap) / noise.cross**2


@dataclass(frozen=True)
class PrintedWidth(Proven):
    """Theorem 1 as printed: lambda_max + rho^2 and sqrt(lambda_min), where lambda belongs.

    The printed algorithm multiplies by beta_t; the theorem, and so this, by its square root.
    """

    def width(self, prefix: Prefix, found: Posterior) -> float:
        """rho beta_t^(1/2)."""
        a, spectrum = self.assumptions, self.spectrum
        rho, floor = a.noise, a.regularisation + spectrum.smallest
        volume = log_determinant(found) - len(prefix.cross) * math.log(floor)
        return (
            a.norm * math.sqrt(spectrum.largest + rho**2)
            + prefix.rounds * a.norm * a.error / math.sqrt(spectrum.smallest)
            + spectrum.kappa
            + rho * math.sqrt(max(volume, 0.0) + 2.0 * math.log(2.0 / a.failure))
        )


class LocalPlayer(PrefixPlayer):
    """Algorithm 3: each report's matrix has the same noise on its diagonal as elsewhere."""

    diagonal = 1.0


def simulate_printed(
    make_problem: MakeProblem,
    printed: Printed,
    *,
    seed: int,
    run: int = 0,
    confidence: Confidence = "practical",
) -> Run:
    """Play the printed algorithm for its horizon, in the world that `simulate` draws.

    `confidence="theory"` has the printed spectrum and width; `"practical"` the rule of `prefix`,
    which knows how large the noise is.

    >>> from discreet.simulation.problems import find_problem
    >>> printed = Printed("variance", alpha=1.0, beta=0.1, horizon=5)
    >>> simulate_printed(find_problem("synthetic"), printed, seed=1).regrets.shape
    (5,)
    """
    rounds = printed.horizon
    world = World.draw(make_problem, seed=seed, run=run)
    plan = plan_for(world.problem, Setting(rounds=rounds), world.decisions, f"printed {seed}.{run}")
    if confidence not in ("practical", "theory"):
        raise InvalidArgument("confidence", "'practical' or 'theory'", confidence)
    rule = Practical(releases=rounds) if confidence == "practical" else _printed_rule(plan, printed)
    kind = LocalPlayer if printed.form == "local" else PrefixPlayer
    times = release_times(rounds)
    player = kind(plan, printed.strategy, printed.noise, times, rule, world.player)
    regrets, seconds = world.play(player, rounds)
    return Run(world.problem, regrets, None, seconds)


def _apart(bound: float, reward: float) -> float:
    """For z = (phi, B) and z' = (phi', -r), with phi phi' as near to B r as it can be."""
    overlap = max(bound * reward - 1.0, 0.0)
    return ((1.0 + bound**2) ** 2 + (1.0 + reward**2) ** 2 - 2.0 * overlap**2) / 2.0


def _printed_rule(plan: Plan, printed: Printed) -> PrintedWidth:
    assumptions = Assumptions(
        norm=printed.norm,
        noise=plan.half_width / float(np.max(np.abs(plan.rewards))),
        error=plan.map.error_bound,
        failure=FAILURE,
    )
    return PrintedWidth(printed.spectrum(plan.map.dimension, FAILURE), assumptions)
