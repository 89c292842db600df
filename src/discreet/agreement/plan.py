"""The frozen public agreement of a study. Everything in a plan is public.

A plan is complete: defaults are resolved to numbers and the features to arrays when it is
made, so what is stored, digested and resumed is what was used.
"""

import math
import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeVar, get_args

import numpy as np

from discreet import checks
from discreet.agreement.prior import Prior
from discreet.agreement.schedule import (
    Exploration,
    Schedule,
    exact_schedule,
    joint_schedule,
    local_schedule,
    prefix_schedule,
)
from discreet.domain.box import Box
from discreet.errors import InvalidArgument, LargeDelta
from discreet.features.choose import Method, choose
from discreet.features.difference_grid import difference_grid
from discreet.features.kernels import Kernel, Learned, SquaredExponential
from discreet.features.maps import FeatureMap, FourierFeatures
from discreet.privacy.budget import GaussianPrivacy, JointDP, LocalDP, NonPrivate, Privacy
from discreet.privacy.clipping import SLACK_PER_INTEGER, Noise, Residual
from discreet.privacy.correlation import BLT
from discreet.privacy.encodings import ENCODINGS, Encoding, EncodingChoice, EncodingName
from discreet.privacy.looks import FOUR_LOOKS, ONE_LOOK, Looks, check_looks
from discreet.privacy.streams import MOST, NoiseChoice, Stream, fitted_buffers
from discreet.storage import canonical

T = TypeVar("T")
Decisions = Literal["box", "context", "candidates"]
Confidence = Literal["practical", "theory"]

#: Sums over a study without end stay within 64 bits for so many asks.
MOST_ASKS = 1 << 32
#: How many standard deviations the prefix estimator's practical rule adds: about the best of a
#: small grid at mu = 0.92 on the synthetic problem.
OPTIMISM = 0.3
#: Reward noise at every draw of the last few epochs is estimated with f: more would be slow.
MOST_DRAWS = 512


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
    - `noise`: `"independent"` for every epoch, or correlated over releases: `"tree"`, `"square
      root"` or `"blt"`. The study then runs the paper's algorithm: prefix sums of fixed clipped
      rewards, released in every round unless a `schedule` says otherwise (see `prefixes`).
    - `confidence`: of that algorithm, a `"practical"` constant, or `"theory"`: exactly as proven,
      for functions of at most this `norm` (in reward units).
    - `buffers`: of `"blt"`; by default the best for the number of releases.
    - `looks`: how a round's budget is divided over the release of its own epoch and the next ones,
      as weights whose squares add up to at most 1; by default four over the whole box, else one.

    >>> from discreet.domain.box import Box
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
    noise: NoiseChoice | None = field(default=None, metadata=canonical.OPTIONAL)
    confidence: Confidence | None = field(default=None, metadata=canonical.OPTIONAL)
    norm: float | None = field(default=None, metadata=canonical.OPTIONAL)
    buffers: BLT | None = field(default=None, metadata=canonical.OPTIONAL)
    looks: Looks | None = field(default=None, metadata=canonical.OPTIONAL)

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
        self._check_correlation()
        self._resolve("encoding", self._checked_encoding())
        self._resolve("looks", self._checked_looks())
        if self.horizon is not None:
            self._resolve("horizon", checks.count("horizon", self.horizon))
        self._resolve("expire_after", checks.count("expire_after", self.expire_after))
        self._resolve("schedule", self.schedule or self._default_schedule())
        if self.noise == "blt":
            self._resolve("buffers", self.buffers or fitted_buffers(self._releases))
        self._resolve("exploration", self.exploration or self._default_exploration())
        if self.looks_again and self.explore.draws > MOST_DRAWS:
            raise InvalidArgument(
                "exploration", f"at most {MOST_DRAWS} draws where rounds are looked at again"
            )
        for name in ("signal_std", "noise_std"):
            if (given := getattr(self, name)) is not None:
                self._resolve(name, checks.number(name, given, above=0.0))
        if self.prior is not None:
            self.prior.check(
                domain=canonical.digest(self.domain),
                features=canonical.digest(self.map),
                rewards=self.rewards,
                private=not isinstance(self.privacy, NonPrivate),
            )
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
    def looks_again(self) -> bool:
        """Whether a round is part of more than one release."""
        return self.looks is not None and len(self.looks) > 1

    def looks_from(self, first: int) -> Looks:
        """How the rounds of the epoch after `first` asks count in its release and in the next ones.

        The first epoch, which finds level and spread, is looked at once.
        """
        return ONE_LOOK if first == 0 else self.looks or ONE_LOOK

    def most_rounds(self, first: int, length: int) -> int:
        """How many rounds a release may sum, of an epoch of so many asks after `first`.

        Late answers of earlier epochs come in, and rounds that are looked at again.
        """
        earlier = first if self.looks_again else 0
        return length + (0 if self.is_local else self.expire_after) + earlier

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
        touched *= len(self._checked_looks() or ONE_LOOK)
        if self.stream is not None:
            touched = min(touched * self.stream.touched, self.stream.releases)
        growth = math.exp(min(privacy.epsilon, 700.0))  # beyond, no float holds it
        slack = touched * (1.0 + growth) * size * SLACK_PER_INTEGER
        if slack > privacy.delta / 2:
            least = f"delta of at least {2 * slack:.1g}, or " if 2 * slack < 1.0 else ""
            raise InvalidArgument(
                "privacy",
                f"{least}a smaller epsilon{'' if self.stream is None else ', or fewer releases'}: "
                "the finite precision of noise could not be certified",
                privacy.delta if least else privacy.epsilon,
            )
        cost = GaussianPrivacy.of(privacy.epsilon, privacy.delta - slack)
        return privacy.per_round(cost.mu) * (1.0 - 1e-9)

    @property
    def is_local(self) -> bool:
        """Whether every round is a report with noise of its own."""
        return isinstance(self.privacy, LocalDP)

    def allows(self, encoding: Encoding) -> bool:
        """Whether an epoch with this encoding keeps the promise; a hair is for rounding alone.

        Where noise is correlated all epochs have one encoding, and no other will do.
        """
        if self.fixed is not None:
            noise, least = encoding.noise, self.fixed.noise
            enough = min(noise.gram / least.gram, noise.cross / least.cross) >= 1.0 - 1e-11
            same = replace(encoding, noise=least)
            return enough and canonical.digest(same) == canonical.digest(self.fixed)
        return self.mu is None or encoding.bound(self.map) <= self.mu * (1.0 + 1e-11)

    @cached_property
    def stream(self) -> Stream | None:
        """How noise is correlated over the releases of the study; None where it is not."""
        if self.noise is None or self.noise == "independent":
            return None
        if self._releases is not None:
            return Stream.of(self.noise, self._releases, self.buffers)
        return Stream.without_end(self.noise, self._certified_releases(), self.buffers)

    @property
    def _releases(self) -> int | None:
        if self.horizon is None:
            return None
        return _resolved(self.schedule).releases(self.horizon)

    @cached_property
    def fixed(self) -> Encoding | None:
        """The one encoding of all epochs where noise is correlated: clipped rewards, no residuals.

        A round costs the norm of its column of C times the encoding's bound, and the rounding of
        nodes (see `streams`): the noise is as large as makes that mu.
        """
        stream, mu = self.stream, self.mu
        if stream is None or mu is None:
            return None
        nothing = Residual(np.zeros(self.map.dimension), 1.0)
        rounds = _resolved(self.last) + self.expire_after
        plain = self.encode_with.fit(self.map, nothing, mu / stream.norm, 1.0, rounds)
        cost = stream.norm * plain.bound(self.map) + stream.rounding(plain.stds(self.map))
        noise = plain.noise
        return replace(plain, noise=Noise(noise.gram * cost / mu, noise.cross * cost / mu))

    @cached_property
    def last(self) -> int | None:
        """How many asks the study has at most: its horizon, or what correlated noise allows."""
        if self.horizon is not None or self.stream is None:
            return self.horizon
        return _resolved(self.schedule).asks(self.stream.releases, MOST_ASKS)

    @property
    def guarantee(self) -> str:
        """The sentence for the review board."""
        parts = [self.privacy.guarantee]
        if self.stream is not None:
            parts.append(self.stream.guarantee)
        if self.looks_again:
            parts.append(
                f"A round is part of up to {len(_resolved(self.looks))} releases, priced together: "
                "what it can move in each, squared and summed, is what one whole release may move."
            )
        return " ".join(parts)

    @property
    def centre(self) -> float:
        """What the model calls zero: the middle of the reward range.

        In theory zero itself: f, and not f minus a constant, has a bounded norm.
        """
        return 0.0 if self.confidence == "theory" else (self.rewards[0] + self.rewards[1]) / 2

    @property
    def half_width(self) -> float:
        """What the model calls one: the furthest that the reward range goes from `centre`."""
        if self.confidence == "theory":
            return max(map(abs, self.rewards))
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
        return length if self.last is None else min(length, self.last - asked)

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
            ("buffers", (BLT, type(None)), "a BLT"),
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

    def _check_correlation(self) -> None:
        """Refuse what does not go with correlated noise, or only with it."""
        if self.noise in (None, "independent"):
            self._resolve("noise", None)
            for name in ("confidence", "norm", "buffers"):
                if getattr(self, name) is not None:
                    raise InvalidArgument(
                        name, "nothing with independent noise: it is part of the prefix estimator"
                    )
            return
        words = ", ".join(repr(name) for name in get_args(NoiseChoice))
        reasons = (
            (self.noise not in get_args(NoiseChoice), f"one of {words}"),
            (self.is_local, "'independent' with LocalDP: each report has noise of its own"),
            (
                not isinstance(self.privacy, JointDP),
                "'independent': no noise is there to correlate",
            ),
            (self.prior is not None, "'independent' with a prior: prefix sums begin at zero"),
            (
                isinstance(self.kernel, Learned),
                "'independent' with Learned: the prefix estimator has one kernel",
            ),
        )
        for is_wrong, reason in reasons:
            if is_wrong:
                raise InvalidArgument("noise", reason)
        if self.buffers is not None and self.noise != "blt":
            raise InvalidArgument("buffers", "a BLT, with noise='blt' alone")
        self._resolve("confidence", self.confidence or "practical")
        if self.confidence not in get_args(Confidence):
            raise InvalidArgument("confidence", "'practical' or 'theory'")
        if (self.norm is None) == (self.confidence == "theory"):
            raise InvalidArgument("norm", "the bound on f that confidence='theory' rests on, only")
        if self.norm is not None:
            self._resolve("norm", checks.number("norm", self.norm, above=0.0))
        if self.confidence == "theory" and self.exploration not in (None, Exploration(0.0, 0.0, 1)):
            raise InvalidArgument("exploration", "nothing with confidence='theory', which sets it")

    def _certified_releases(self) -> int:
        """For how many releases finite precision takes at most a quarter of delta."""
        privacy, size = self.privacy, self.encode_with.most_integers(self.map)
        if not isinstance(privacy, JointDP):
            return 1
        each = (1.0 + math.exp(privacy.epsilon)) * size * SLACK_PER_INTEGER
        return max(1, int(min(privacy.delta / (4.0 * each), MOST)))

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
        if self.noise is not None and name in ("reward", "announced"):
            raise InvalidArgument(
                "encoding", "'gram' or 'fourier' with correlated noise: it is for both prefix sums"
            )
        if name == "announced" and not rewards_only:
            raise InvalidArgument(
                "encoding",
                "another one: 'announced' publishes the actions, which only protect='rewards' with "
                "public contexts or candidates allows",
            )
        return name

    def _checked_looks(self) -> Looks | None:
        again = self._checked_encoding() == "reward" and isinstance(self.privacy, JointDP)
        if self.looks is None:
            return FOUR_LOOKS if again else None
        try:
            looks = tuple(checks.number("looks", weight) for weight in self.looks)
        except TypeError:
            raise InvalidArgument("looks", "a sequence of weights") from None
        check_looks(looks)
        if isinstance(self.privacy, NonPrivate):
            return None  # there is no budget to divide
        if len(looks) > 1 and not again:
            raise InvalidArgument(
                "looks", "one: only JointDP over the whole box looks at a round again", looks
            )
        return looks

    def _safest_encoding(self) -> EncodingName:
        """The least noise that is safe for what is protected and how actions come about."""
        if isinstance(self.privacy, NonPrivate):
            return "gram"
        if self.decisions == "box" and self.noise is None:
            return "reward"
        if self.privacy.protect == "rewards" and self.noise is None:
            return "announced"
        lattice = isinstance(self.map, FourierFeatures) and self.map.indices is not None
        proven = self.confidence == "theory"  # as printed; and with gram silence is silence
        return "fourier" if lattice and not proven else "gram"

    @property
    def design_asks(self) -> int:
        """How many asks fill the domain before what was learnt guides them."""
        schedule = _resolved(self.schedule)
        return schedule.first + (schedule.second or 0)

    def _default_schedule(self) -> Schedule:
        if self.noise is not None:
            return prefix_schedule(endless=self.horizon is None)
        if self.mu is None:
            return exact_schedule(self.domain, box=self.decisions == "box")
        box = self.decisions == "box"
        if self.is_local:
            return local_schedule(self.mu, self.domain, self.map, box=box)
        return joint_schedule(self.mu, self.domain, self.map, box=box, again=self.looks_again)

    def _default_exploration(self) -> Exploration:
        """Over the whole box only draws explore; sets that people bring already differ.

        Noise explores, too: without it, a little more.
        """
        if self.noise is not None:
            return Exploration(0.0 if self.confidence == "theory" else OPTIMISM, 0.0, 1)
        if self.decisions == "box":
            return Exploration(0.0, 0.7)
        return Exploration(0.5, 0.5) if self.mu is None else Exploration(0.3, 0.3)

    def _check_noise_fits(self) -> None:
        """Noise and sums of the longest epoch fit 64-bit integers: said now, not at release."""
        if self.stream is not None:
            _resolved(self.fixed)
            return
        rounds = (self.horizon or MOST_ASKS) + self.expire_after
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
