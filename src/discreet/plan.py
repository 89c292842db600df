"""The frozen public agreement of a study. Everything in a plan is public.

A plan is complete: defaults are resolved to numbers and the features to arrays when it is
made, so what is stored, digested and resumed is what was used.
"""

import math
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeVar, get_args

import numpy as np

from discreet import canonical, checks
from discreet.budget import GaussianPrivacy, JointDP, LocalDP, NonPrivate, Privacy
from discreet.differences import difference_grid
from discreet.domain import Box
from discreet.encodings import ENCODINGS, Encoding, EncodingChoice, EncodingName
from discreet.errors import InvalidArgument, LargeDelta
from discreet.features import FeatureMap, FourierFeatures, Method, choose
from discreet.kernels import Kernel, SquaredExponential
from discreet.prior import Prior
from discreet.residuals import SLACK_PER_INTEGER, Residual

T = TypeVar("T")
Decisions = Literal["box", "context", "candidates"]


@dataclass(frozen=True)
class Schedule:
    """Epochs as intervals of ask indices: `first` asks, `second`, then a fraction of all so far.

        length(0) = first    length(first) = second    length(n) = max(1, ceil((growth - 1) n))

    A short first epoch finds the level and the spread of rewards, so that the second, which
    fills the domain, gets less noise; without `second`, growth begins after the first.

    >>> Schedule(first=20, growth=1.1).length(0), Schedule(first=20, growth=1.1).length(1000)
    (20, 100)
    """

    first: int
    growth: float = 1.1
    second: int | None = None

    def __post_init__(self) -> None:
        first = checks.count("schedule.first", self.first)
        if self.second is not None:
            object.__setattr__(self, "second", checks.count("schedule.second", self.second))
        growth = checks.number("schedule.growth", self.growth, above=1.0)
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "growth", growth)

    def length(self, asked: int) -> int:
        """The length of the epoch that opens after `asked` asks."""
        if asked == 0:
            return self.first
        if asked == self.first and self.second is not None:
            return self.second
        return max(1, math.ceil(round((self.growth - 1) * asked, 9)))


@dataclass(frozen=True)
class Exploration:
    """How an ask trades learning for reward, in posterior standard deviations.

        score_j(x) = mean(x) + optimism std(x) + sampling (draw_j(x) - mean(x))

    `optimism` alone is UCB, `sampling=1` alone is Thompson sampling. An epoch holds `draws`
    draws and gives them to its asks in turn, so asks in flight differ without looking at each
    other.

    >>> Exploration(optimism=2.0, sampling=0.0)
    Exploration(optimism=2.0, sampling=0.0, draws=64)
    """

    optimism: float = 0.3
    sampling: float = 0.3
    draws: int = 64

    def __post_init__(self) -> None:
        for name in ("optimism", "sampling"):
            value = checks.number(f"exploration.{name}", getattr(self, name), at_least=0.0)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "draws", checks.count("exploration.draws", self.draws))


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything a study agrees on before it begins.

    - `domain`, `kernel`: where the function lives and how smooth it is (lengthscales in units
      of the scaled domain).
    - `rewards`: the public range that rewards are clipped to.
    - `privacy`: what is promised, `JointDP(epsilon, delta)`, or `LocalDP(epsilon, delta)` where
      nobody is trusted; `NonPrivate()` has to be written out. Under `protect="rewards"` contexts
      and candidates must be declared public too, by `public_decisions=True`.
    - `horizon`: the number of asks, or None when unknown.
    - `decisions`: what an ask may choose from: the whole `"box"`, the free coordinates under a
      `"context"`, or the `"candidates"` the user brings. By default `"context"` when the domain
      names context coordinates, else `"box"`.
    - `features`: `"grid"`, `"hermite"` or `"random"` within `kernel_error`, or a map, which then
      stands for the kernel.
    - `encoding`: how a round becomes integers; `"auto"` picks the least noise that is safe.
    - `schedule`: epochs; by default longer ones where noise must be averaged out.
    - `exploration`: how asks trade learning for reward; by default small.
    - `signal_std`, `noise_std`: the spread of the function and of a reward around it, in reward
      units; by default learnt from the releases, which costs nothing.
    - `expire_after`: a trial that was not answered within this many asks is closed.
    - `prior`: what an earlier study learnt (`Study.prior`).

    >>> from discreet.domain import Box
    >>> plan = Plan(domain=Box({"dose": (0, 10)}), privacy=NonPrivate())
    >>> plan.features.dimension, plan.decisions, plan.schedule.first
    (11, 'box', 10)
    """

    domain: Box
    privacy: Privacy
    kernel: Kernel = field(default_factory=SquaredExponential)
    rewards: tuple[float, float] = (0.0, 1.0)
    horizon: int | None = None
    name: str = "study"
    decisions: Decisions | None = None
    features: FeatureMap | Method = "grid"
    kernel_error: float = 1e-3
    max_features: int = 2048
    encoding: EncodingChoice = "auto"
    schedule: Schedule | None = None
    exploration: Exploration | None = None
    signal_std: float | None = None
    noise_std: float | None = None
    expire_after: int = 10_000
    public_decisions: bool = False
    prior: Prior | None = None

    def __post_init__(self) -> None:
        self._check_types()
        self._resolve("rewards", _checked_range(self.rewards))
        self._resolve("decisions", self._checked_decisions())
        self._resolve("kernel_error", checks.number("kernel_error", self.kernel_error, above=0.0))
        self._resolve("max_features", checks.count("max_features", self.max_features))
        self.kernel.check(self.domain.dimension)
        if isinstance(self.features, str):
            self._resolve("features", self._chosen_features(self.features))
        elif self.features.inputs != self.domain.dimension:
            raise InvalidArgument("features", f"a map of {self.domain.dimension} inputs")
        self._resolve("encoding", self._checked_encoding())
        if self.horizon is not None:
            self._resolve("horizon", checks.count("horizon", self.horizon))
        self._resolve("expire_after", checks.count("expire_after", self.expire_after))
        self._resolve("schedule", self.schedule or self._default_schedule())
        self._resolve("exploration", self.exploration or self._default_exploration())
        for name in ("signal_std", "noise_std"):
            if (given := getattr(self, name)) is not None:
                self._resolve(name, checks.number(name, given, above=0.0))
        if self.prior is not None:
            self._check_prior(self.prior)
        self._check_noise_fits()
        self._warn_of_large_delta()

    @cached_property
    def digest(self) -> str:
        """The digest of the whole plan."""
        return canonical.digest(self)

    @property
    def map(self) -> FeatureMap:
        """The resolved feature map."""
        return _resolved(None if isinstance(self.features, str) else self.features)

    @property
    def explore(self) -> Exploration:
        """The resolved exploration."""
        return _resolved(self.exploration)

    @property
    def encode_with(self) -> type[Encoding]:
        """The kind of encoding that epochs use."""
        return ENCODINGS[self._checked_encoding()]

    @cached_property
    def mu(self) -> float | None:
        """What one round may cost; None without privacy.

        A hair less than promised: norms are at most 1 up to rounding (a relative 1e-12), and
        finite precision of the noise takes its share of delta (see `randomness`).
        """
        privacy = self.privacy
        if isinstance(privacy, NonPrivate):
            return None
        size = self.encode_with.most_integers(self.map)
        touched = (1.0 if self.is_local else 2.0) * privacy.rounds_per_user
        growth = math.exp(min(privacy.epsilon, 700.0))  # beyond, no float holds it
        slack = touched * (1.0 + growth) * size * SLACK_PER_INTEGER
        if slack > privacy.delta / 2:
            least = f"delta of at least {2 * slack:.1g}, or " if 2 * slack < 1.0 else ""
            raise InvalidArgument(
                "privacy",
                f"{least}a smaller epsilon: the finite precision of noise could not be certified",
                privacy.delta if least else privacy.epsilon,
            )
        cost = GaussianPrivacy.of(privacy.epsilon, privacy.delta - slack)
        return privacy.per_round(cost.mu) * (1.0 - 1e-9)

    @property
    def is_local(self) -> bool:
        """Whether every round is a report with noise of its own."""
        return isinstance(self.privacy, LocalDP)

    def allows(self, bound: float) -> bool:
        """Whether what costs one round so much keeps the promise; a hair is for rounding alone."""
        return self.mu is None or bound <= self.mu * (1.0 + 1e-11)

    @property
    def centre(self) -> float:
        """The middle of the reward range: what the model calls zero."""
        return (self.rewards[0] + self.rewards[1]) / 2

    @property
    def half_width(self) -> float:
        """Half the reward range: what the model calls one."""
        return (self.rewards[1] - self.rewards[0]) / 2

    @property
    def signal_variance(self) -> float:
        """The variance of the function to begin with, in half-widths squared."""
        return 0.25 if self.signal_std is None else (self.signal_std / self.half_width) ** 2

    @property
    def noise_variance(self) -> float:
        """The variance of a reward around the function to begin with, in half-widths squared."""
        return 0.25 if self.noise_std is None else (self.noise_std / self.half_width) ** 2

    def clip(self, reward: float) -> float:
        """The reward, moved to the nearest end of the range if it lies outside."""
        return min(max(reward, self.rewards[0]), self.rewards[1])

    def centred(self, reward: float) -> float:
        """A clipped reward as a number in [-1, 1]."""
        return (self.clip(reward) - self.centre) / self.half_width

    def epoch_length(self, asked: int) -> int:
        """The length of the epoch that opens after `asked` asks, cut at the horizon."""
        length = _resolved(self.schedule).length(asked)
        return length if self.horizon is None else min(length, self.horizon - asked)

    def _resolve(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_types(self) -> None:
        expected: list[tuple[str, type | tuple[type, ...], str]] = [
            ("domain", Box, "a Box"),
            (
                "privacy",
                (JointDP, LocalDP, NonPrivate),
                "JointDP(epsilon, delta), LocalDP(epsilon, delta) or NonPrivate()",
            ),
            ("public_decisions", bool, "True or False"),
            ("name", str, "text"),
            ("exploration", (Exploration, type(None)), "an Exploration"),
            ("schedule", (Schedule, type(None)), "a Schedule"),
            ("prior", (Prior, type(None)), "Study.prior() of an earlier study"),
        ]
        for name, kind, words in expected:
            if not isinstance(getattr(self, name), kind):
                raise InvalidArgument(name, words)
        if not isinstance(self.kernel, Kernel):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument("kernel", "a kernel such as SquaredExponential(0.2)")
        named = isinstance(self.features, str) and self.features in get_args(Method)
        if not named and not isinstance(self.features, FeatureMap):
            words = " or ".join(repr(method) for method in get_args(Method))
            raise InvalidArgument("features", f"{words}, or a feature map")
        if self.encoding not in get_args(EncodingChoice):
            words = ", ".join(repr(choice) for choice in get_args(EncodingChoice))
            raise InvalidArgument("encoding", f"one of {words}")

    def _checked_decisions(self) -> Decisions:
        natural: Decisions = "context" if self.domain.has_context else "box"
        kind = natural if self.decisions is None else self.decisions
        if kind not in ("box", "context", "candidates"):
            raise InvalidArgument("decisions", "'box', 'context' or 'candidates'", kind)
        if kind != "candidates" and kind != natural:
            reason = "no context coordinates" if kind == "context" else "context coordinates"
            raise InvalidArgument("decisions", f"{natural!r}: the domain has {reason}", kind)
        return kind

    def _chosen_features(self, method: Method) -> FeatureMap:
        return choose(
            self.kernel,
            widths=self.domain.widths,
            diameter=self.domain.diameter,
            error=self.kernel_error,
            method=method,
            limit=self.max_features,
        )

    def _checked_encoding(self) -> EncodingName:
        rewards_only = self.privacy.protect == "rewards" and self.decisions != "box"
        if rewards_only and not self.public_decisions:
            raise InvalidArgument(
                "public_decisions",
                "True: protect='rewards' publishes the actions that contexts and candidates lead "
                "to, so say that these are public, or use protect='decisions'",
            )
        if self.public_decisions and self.privacy.protect == "decisions":
            raise InvalidArgument(
                "public_decisions", "False, or privacy with protect='rewards', which it is for"
            )
        name = self._safest_encoding() if self.encoding == "auto" else self.encoding
        if name == "fourier":
            difference_grid(self.map)
        if name == "reward" and self.decisions != "box":
            raise InvalidArgument(
                "encoding",
                "'gram' or 'fourier' here: 'reward' needs actions that are public beforehand, "
                "which only the whole box gives",
            )
        if name == "announced" and not rewards_only:
            raise InvalidArgument(
                "encoding",
                "another one: 'announced' publishes the actions, which only protect='rewards' with "
                "public contexts or candidates allows",
            )
        return name

    def _safest_encoding(self) -> EncodingName:
        """The least noise that is safe for what is protected and how actions come about."""
        if isinstance(self.privacy, NonPrivate):
            return "gram"
        if self.decisions == "box":
            return "reward"
        if self.privacy.protect == "rewards":
            return "announced"
        lattice = isinstance(self.map, FourierFeatures) and self.map.indices is not None
        return "fourier" if lattice else "gram"

    @property
    def design_asks(self) -> int:
        """How many asks fill the domain before what was learnt guides them."""
        schedule = _resolved(self.schedule)
        return schedule.first + (schedule.second or 0)

    def _default_schedule(self) -> Schedule:
        """Enough asks to see the function at all, then epochs that grow.

        The gram of n spread rounds has n / d_eff in a typical direction, d_eff = 1 / mean k^2,
        against noise of about 1 / mu; what an epoch tells grows with the square of its length
        over its noise. Over the whole box a first epoch of 25 / mu finds level and spread.

        In the local model the noise of n rounds is sqrt(n) / mu: a signal of s times the noise
        takes (s d_eff / mu)^2 rounds, and splitting them over epochs loses nothing. So s is small:
        2 in a typical direction, 8 for the level.
        """
        if self.mu is None:  # looking costs no privacy: often, where it costs little time either
            box = self.decisions == "box"
            return Schedule((10 if box else 5) * self.domain.dimension, 1.1 if box else 1.05)
        rng = np.random.Generator(np.random.Philox(0))
        points = self.domain.spread(rng.random((512, len(self.domain.names))))
        phi = self.map(points)
        if self.decisions == "box":
            shape = phi - phi.mean(axis=0)
            size = float(np.sum(np.square(shape))) / len(phi)
            phi = shape / math.sqrt(size) if size > 1e-12 else phi  # a constant has no shape
        effective = 1.0 / float(np.mean(np.square(phi @ phi.T)))
        least, typical = 10 * self.domain.dimension, math.ceil((2 * effective / self.mu) ** 2)
        if self.decisions == "box" and self.is_local:
            level = max(25, math.ceil((8 / self.mu) ** 2))
            return Schedule(level, growth=1.3, second=max(least, typical))
        if self.decisions == "box":
            first, second = math.ceil(25 / min(self.mu, 1.0)), math.ceil(5 * effective / self.mu)
            return Schedule(first, growth=1.3, second=second)
        if not self.is_local:
            typical = math.ceil(5.5 * effective / self.mu)
        return Schedule(max(least, typical), growth=1.1 + 0.3 / max(1.0, self.mu))

    def _default_exploration(self) -> Exploration:
        """Over the whole box only draws explore; sets that people bring already differ.

        Noise explores, too: without it, a little more.
        """
        if self.decisions == "box":
            return Exploration(0.0, 0.7)
        return Exploration(0.5, 0.5) if self.mu is None else Exploration(0.3, 0.3)

    def _check_noise_fits(self) -> None:
        """Noise and sums of the longest epoch fit 64-bit integers: said now, not at release."""
        rounds = (self.horizon or 1 << 32) + self.expire_after
        nothing = Residual(np.zeros(self.map.dimension), 1.0)
        self.encode_with.fit(self.map, nothing, self.mu, 1.0, rounds)

    def _warn_of_large_delta(self) -> None:
        if isinstance(self.privacy, NonPrivate) or self.horizon is None:
            return
        if self.privacy.delta * self.horizon > 1.0:
            warnings.warn(
                f"delta = {self.privacy.delta:g} would allow publishing some of {self.horizon} "
                "people outright: take delta well below 1 / horizon",
                LargeDelta,
                stacklevel=4,
            )

    def _check_prior(self, prior: Prior) -> None:
        if prior.features != canonical.digest(self.map):
            raise InvalidArgument(
                "prior", "a study with these features: give features=study.plan.map"
            )
        if prior.domain != canonical.digest(self.domain):
            raise InvalidArgument("prior", "a study on the same domain")
        if not prior.releasable and not isinstance(self.privacy, NonPrivate):
            raise InvalidArgument(
                "prior",
                "a private study, or Study.prior(public_data=True) if the people behind it need no "
                "privacy: a plan is public",
            )
        if prior.rewards != self.rewards:
            raise InvalidArgument("prior", f"a study with rewards {self.rewards}", prior.rewards)


def _resolved(value: T | None) -> T:
    if value is None:
        raise TypeError("a plan resolves its defaults when it is made")
    return value


def _checked_range(rewards: tuple[float, float]) -> tuple[float, float]:
    words = "a pair (low, high) of finite numbers with low < high"
    try:
        low, high = (checks.number("rewards", end) for end in rewards)
    except (TypeError, ValueError):
        raise InvalidArgument("rewards", words) from None
    centre = (low + high) / 2
    if not (low < centre < high and math.isfinite(high - low)):
        raise InvalidArgument("rewards", words, (low, high))
    return low, high
