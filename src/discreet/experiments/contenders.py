"""Every way to play that is compared, by name; a trial of one is a pure function of what it says.

Five families. *Ours* plays a study, the default or with one thing changed. The *paper's
algorithm*, calibrated exactly, has a noise that is correlated over releases (`prefix`). *As
printed* is the same with the noise the paper prints (`as_printed`), read as a variance unless the
name says otherwise. `..., as proven` plays by the width of the theorem instead of a practical
constant. *Elimination* plays phases (`phases`). *Successors* are what others published later
(`private_covariance`, `private_rewards`).

The paper's algorithm releases every round. Where users bring candidates it also looks at every
release; over a whole box it looks when some share was added (`prefix`), and takes one kernel and
one constant for each problem, the best for it of a few that were tried (`TUNED`).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np

from discreet.agreement.plan import Confidence
from discreet.arrays import Floats
from discreet.errors import InvalidArgument
from discreet.experiments.as_printed import Form, Printed, simulate_printed
from discreet.experiments.phases import camelback_mean, camelback_plan, play_phases
from discreet.experiments.prefix import simulate_prefix, simulate_seldom
from discreet.experiments.private_covariance import simulate_private_covariance
from discreet.experiments.private_rewards import Rewards, laplace_scale, simulate_private_rewards
from discreet.features.kernels import Additive, Kernel, SquaredExponential
from discreet.learning.belief import Spending
from discreet.learning.directions import Prospect, best_directions
from discreet.learning.posterior import Posterior
from discreet.learning.theory import calibrated
from discreet.privacy.budget import JointDP, LocalDP, NonPrivate
from discreet.privacy.clipping import Noise
from discreet.privacy.correlation import BLT, SquareRoot, Strategy, Tree
from discreet.privacy.cost import GaussianPrivacy
from discreet.privacy.encodings import EncodingChoice
from discreet.privacy.looks import ONE_LOOK
from discreet.simulation.people import Problem
from discreet.simulation.play import Setting, simulate
from discreet.simulation.problems import CAMELBACK, MICHALEWICZ, STYBLINSKI_TANG, find_problem
from discreet.simulation.worlds import MakeProblem

#: More than any problem has features: a release has them all.
EVERY_DIRECTION = 1 << 20
#: Regret is kept after so many of the rounds, evenly spaced.
POINTS = 32


@dataclass(frozen=True)
class Trial:
    """One run of one way; an epsilon of infinity is no privacy at all."""

    problem: str
    way: str
    epsilon: float
    delta: float
    rounds: int
    seed: int
    run: int


@dataclass(frozen=True)
class Played(Trial):
    """What it cost, and on the way: `rounds:regret` for growing rounds."""

    regret: float
    curve: str

    @property
    def regrets(self) -> dict[int, float]:
        """The regret so far, by the number of rounds.

        >>> Played("synthetic", "ours", 1.0, 0.1, 8, 0, 0, 3.5, "4:2.0 8:3.5").regrets
        {4: 2.0, 8: 3.5}
        """
        pairs = (pair.split(":") for pair in self.curve.split())
        return {int(rounds): float(regret) for rounds, regret in pairs}


@dataclass(frozen=True)
class Tuned:
    """The kernel and the constant that serve the paper's algorithm on a problem."""

    kernel: Kernel
    beta: float


#: Of lengthscales 0.05 to 0.3 and constants 0.3 and 1: the best for it, without privacy.
TUNED = {
    "camelback": Tuned(SquaredExponential(0.25), 1.0),
    "styblinski-tang": Tuned(
        Additive.over(SquaredExponential(0.1), STYBLINSKI_TANG.dimension), 1.0
    ),
    "michalewicz": Tuned(Additive.over(SquaredExponential(0.05), MICHALEWICZ.dimension), 1.0),
}


#: How far a batch's bounds lie from its means: the best for both problems of a few
#: (`successors`, on other seeds).
DEVIATIONS = 0.5


def play(trial: Trial) -> Played:
    """The regret of a trial, in all and on the way.

    >>> play(Trial("camelback", "uniform play", math.inf, 0.0, 4, 0, 0)).regrets.keys()
    dict_keys([1, 2, 3, 4])
    """
    if trial.way not in CONTENDERS:
        raise InvalidArgument("way", f"one of {', '.join(CONTENDERS)}", trial.way)
    return play_with(CONTENDERS[trial.way], trial)


def play_with(regrets: Callable[[Trial], Floats], trial: Trial) -> Played:
    """The regret of a trial that is played so, in all and on the way."""
    so_far = np.cumsum(regrets(trial))
    shown = np.unique(np.linspace(0, trial.rounds, POINTS + 1).astype(np.int64)[1:])
    curve = " ".join(f"{t}:{so_far[t - 1]:.3f}" for t in shown[shown > 0])
    return Played(**asdict(trial), regret=round(float(so_far[-1]), 3), curve=curve)


# -- ours


def ours(
    encoding: EncodingChoice = "auto",
    *,
    local: bool = False,
    fixed_width: bool = False,
    all_directions: bool = False,
    one_look: bool = False,
) -> Callable[[Trial], Floats]:
    """The default, or with something changed or taken away."""

    spending = Spending(
        width_in_stds=math.inf if fixed_width else 1.0,
        directions=_every_direction if all_directions else best_directions,
    )

    changes: dict[str, object] = {"looks": ONE_LOOK} if one_look else {}
    if all_directions:
        changes["directions"] = EVERY_DIRECTION

    def regrets(trial: Trial) -> Floats:
        return simulate(
            find_problem(trial.problem),
            _setting(trial, encoding, changes, local=local),
            seed=trial.seed,
            run=trial.run,
            spending=spending,
        ).regrets

    return regrets


def _setting(
    trial: Trial, encoding: EncodingChoice, changes: Mapping[str, object], *, local: bool
) -> Setting:
    if math.isinf(trial.epsilon):
        return Setting("none", trial.rounds, encoding)
    if local:
        privacy = LocalDP(trial.epsilon, trial.delta)
        return Setting("local", trial.rounds, encoding, privacy=privacy)
    privacy = JointDP(trial.epsilon, trial.delta)
    return Setting("joint", trial.rounds, encoding, privacy=privacy, changes=changes)


def _every_direction(posterior: Posterior, prospect: Prospect, noise: float, most: int) -> Floats:
    """In place of the best directions: all features as they are."""
    return np.eye(posterior.features.dimension)


# -- the paper's algorithm


def exact(
    strategy: Callable[[int], Strategy], confidence: Confidence = "practical"
) -> Callable[[Trial], Floats]:
    """Calibrated exactly; the strategy may depend on the number of releases."""

    def regrets(trial: Trial) -> Floats:
        correlated = strategy(trial.rounds)
        if trial.problem in TUNED:
            noise = Noise(0.0, 0.0)
            if math.isfinite(trial.epsilon):
                mu = GaussianPrivacy.of(trial.epsilon, trial.delta).mu
                noise = calibrated(correlated, releases=trial.rounds, mu=mu)
            return _looked_at(trial, correlated, noise)
        return simulate_prefix(
            find_problem(trial.problem),
            strategy=correlated,
            privacy_mu=GaussianPrivacy.of(trial.epsilon, trial.delta).mu,
            rounds=trial.rounds,
            seed=trial.seed,
            run=trial.run,
            confidence=confidence,
        ).regrets

    return regrets


def printed(form: Form, confidence: Confidence = "practical") -> Callable[[Trial], Floats]:
    """With the noise that the paper prints."""

    def regrets(trial: Trial) -> Floats:
        noise = Printed(form, alpha=trial.epsilon, beta=trial.delta, horizon=trial.rounds)
        if trial.problem in TUNED:
            return _looked_at(trial, noise.strategy, noise.noise)
        return simulate_printed(
            find_problem(trial.problem),
            noise,
            seed=trial.seed,
            run=trial.run,
            confidence=confidence,
        ).regrets

    return regrets


def _looked_at(trial: Trial, strategy: Strategy, noise: Noise) -> Floats:
    return simulate_seldom(
        tuned_problem(trial.problem),
        strategy=strategy,
        noise=noise,
        rounds=trial.rounds,
        seed=trial.seed,
        run=trial.run,
        beta=TUNED[trial.problem].beta,
    ).regrets


def tuned_problem(name: str) -> MakeProblem:
    """A problem with the kernel that the paper's algorithm takes for it."""

    def make(rng: np.random.Generator) -> Problem:
        found = find_problem(name)(rng)
        return replace(found, kernel=TUNED[name].kernel)  # pyright: ignore[reportArgumentType, reportUnknownVariableType]

    return make


def _eliminating(trial: Trial) -> Floats:
    """As proven, with premises measured on camelback; within a phase regret is even."""
    if trial.problem != "camelback":
        raise InvalidArgument("problem", "camelback, whose premises are known", trial.problem)
    private = math.isfinite(trial.epsilon)
    plan = camelback_plan(JointDP(trial.epsilon, trial.delta) if private else NonPrivate())
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([trial.seed, trial.run])))
    best = CAMELBACK.maximum
    played = play_phases(plan, camelback_mean, rounds=trial.rounds, best=best, rng=rng)
    ends = np.array([0, *(each.asks for each in played)])
    so_far = np.array([0.0, *(each.regret for each in played)])
    return np.repeat(np.diff(so_far) / np.diff(ends), np.diff(ends))[: trial.rounds]


# -- successors


def _private_covariance(trial: Trial) -> Floats:
    return simulate_private_covariance(
        find_problem(trial.problem),
        mu=GaussianPrivacy.of(trial.epsilon, trial.delta).mu,
        rounds=trial.rounds,
        seed=trial.seed,
        run=trial.run,
        beta=DEVIATIONS,
    )


def private_rewards(groups: int) -> Callable[[Trial], Floats]:
    """With medians of means of so many groups, or of one: plainly."""

    def regrets(trial: Trial) -> Floats:
        scale = laplace_scale(trial.epsilon, trial.delta)
        return simulate_private_rewards(
            find_problem(trial.problem),
            Rewards(scale, groups),
            rounds=trial.rounds,
            seed=trial.seed,
            run=trial.run,
        )

    return regrets


def _uniform(trial: Trial) -> Floats:
    setting = Setting("random", trial.rounds)
    return simulate(find_problem(trial.problem), setting, seed=trial.seed, run=trial.run).regrets


CONTENDERS: dict[str, Callable[[Trial], Floats]] = {
    "uniform play": _uniform,
    "as printed": printed("variance"),
    "as printed, std": printed("std"),
    "tree": exact(lambda releases: Tree()),
    "square root": exact(lambda releases: SquareRoot()),
    "BLT": exact(BLT.fit),
    "as printed, as proven": printed("variance", "theory"),
    "as printed, std, as proven": printed("std", "theory"),
    "tree, as proven": exact(lambda releases: Tree(), "theory"),
    "square root, as proven": exact(lambda releases: SquareRoot(), "theory"),
    "BLT, as proven": exact(BLT.fit, "theory"),
    "gram, fixed width": ours("gram", fixed_width=True),
    "gram": ours("gram"),
    "fourier, fixed width": ours("fourier", fixed_width=True),
    "fourier": ours("fourier"),
    "fixed width": ours(fixed_width=True),
    "all directions": ours(all_directions=True, one_look=True),
    "one look": ours(one_look=True),
    "ours": ours(),
    "ours, local": ours(local=True),
    "elimination": _eliminating,
    "private covariance": _private_covariance,
    "private rewards": private_rewards(1),
    "private rewards, medians": private_rewards(3),
}
