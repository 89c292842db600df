"""The frozen public agreement of a study. Everything in a plan is public.

A plan is resolved once, when its author writes it: defaults become numbers and features become
arrays (`resolve`). From then on it travels as bytes. What is read back is what was stored, and no
field of it is filled in again; one that a stored plan does not have means what it meant before
there was such a field.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from discreet import checks
from discreet.agreement import resolve
from discreet.agreement.beginning import (
    ContextLaws,
    FirstActions,
    Setting,
    context_laws,
    first_actions,
    start_action,
)
from discreet.agreement.cautions import cautions
from discreet.agreement.correlated import Correlated, stream_of
from discreet.agreement.elimination import Elimination
from discreet.agreement.index_reports import IndexReports, codewords_of, index_cost
from discreet.agreement.open_kernel import kernel_of
from discreet.agreement.plan_features import chosen_features
from discreet.agreement.prior import Prior
from discreet.agreement.resolve import MOST_ASKS, MOST_DRAWS, Confidence, Decisions
from discreet.agreement.reward_units import RewardUnits
from discreet.agreement.round_looks import RoundLooks, looks_of, weights_of
from discreet.agreement.schedule import Exploration, Schedule
from discreet.agreement.wording import Wording
from discreet.domain.box import Box
from discreet.errors import InvalidArgument
from discreet.features.choose import FeatureChoice
from discreet.features.kernels import Kernel, Structured, on_columns
from discreet.features.maps import FeatureMap
from discreet.privacy.budget import JointDP, NonPrivate, Privacy
from discreet.privacy.clipping import Residual
from discreet.privacy.correlation import BLT
from discreet.privacy.cost import GaussianPrivacy, PrivacyCost
from discreet.privacy.encodings import ENCODINGS, Encoding, EncodingChoice, EncodingName, Indexed
from discreet.privacy.looks import ONE_LOOK, Looks
from discreet.privacy.shuffled import ShuffledDP
from discreet.privacy.streams import NoiseChoice, Stream, fitted_buffers
from discreet.storage import canonical

T = TypeVar("T")
#: What stands before the promise of a plan whose noise came from a seed.
SIMULATED = "A simulation: nothing here is private. With real noise the plan would promise:"


@dataclass(frozen=True, eq=False)
class Plan(RewardUnits, IndexReports, RoundLooks):
    """Everything a study agrees on before it begins.

    - `domain`: where the function lives.
    - `kernel`: how smooth it is, with lengthscales in units of the scaled domain. By default nobody
      needs to know: structures and lengthscales are weighed by the releases (see `Structured`);
      what rests on one kernel, and candidates, have `SquaredExponential()`.
    - `rewards`: the public range that rewards are clipped to.
    - `privacy`: what is promised, `JointDP(epsilon, delta)`, `ShuffledDP(epsilon, delta)`, or
      `LocalDP(epsilon)` where nobody is trusted; `NonPrivate()` has to be written out. Under
      `protect="rewards"` contexts and candidates must be declared public too, by
      `public_decisions=True`.
    - `horizon`: the number of asks, or None when unknown.
    - `decisions`: what an ask may choose from: the whole `"box"`, the free coordinates under a
      `"context"`, or the `"candidates"` the user brings. By default `"context"` when the domain
      names context coordinates, else `"box"`.
    - `features`: `"grid"`, `"hermite"` or `"random"` within `kernel_error`; the `"leading"` few of
      any kernel in any dimension; or a map, which then stands for the kernel. By default leading
      ones where people bring contexts or candidates, or where a grid would be too large.
    - `encoding`: how a round becomes integers; `"auto"` picks the least noise that is safe.
    - `schedule`: epochs; by default longer ones where noise must be averaged out.
    - `exploration`: how asks trade learning for reward; by default small.
    - `signal_std`, `noise_std`: the spread of the function and of a reward around it, in reward
      units; by default learnt from the releases, which costs nothing.
    - `expire_after`: a trial that was not answered within this many asks is closed.
    - `prior`: what an earlier study learnt (`Study.prior`).
    - `noise`: `"independent"` for every epoch, or correlated over releases: `"tree"`, `"square
      root"` or `"blt"`. The study then runs the paper's algorithm: prefix sums of fixed clipped
      rewards, released in every round unless a `schedule` says otherwise (see `prefix_belief`).
    - `confidence`: of that algorithm, a `"practical"` constant, or `"theory"`: exactly as proven,
      for functions of at most this `norm` (in reward units). With independent noise `"theory"` is
      elimination: phases that drop arms which are proven not to be best (see `elimination`); under
      `LocalDP` and what people bring, the paper's Algorithm 3.
    - `buffers`: of `"blt"`; by default the best for the number of releases.
    - `elimination`: its arms, and what is assumed of f (see `Elimination`); rewards are
      `noise_std`-sub-Gaussian around f, by default with half of their range.
    - `looks`: how a round's budget is divided over the release of its own epoch and the next ones,
      as weights whose squares add up to at most 1; by default four where that is proven, else one.
    - `explore`: the actions of the first asks: a list of them, or a region, a `Box` of some
      coordinates. `start`: an action to begin around. By default first asks fill the domain.
    - `public_contexts`: who is expected to come: for each context a pair (mean, standard deviation)
      or the shares of its categories, or a public sample of which these are taken. **It is
      published with the plan: no participant's row belongs in it.**
    - `codewords`: of reports that are indices, how many there are to choose from.
    - `directions`: over the whole box, how many a release has at most. Each has noise of finite
      precision, which is paid for. By default 32, or one a feature where there are no more.

    >>> from discreet.domain.box import Box
    >>> plan = Plan(domain=Box({"dose": (0, 10)}), privacy=NonPrivate())
    >>> plan.features.dimension, plan.decisions, plan.schedule.first
    (9, 'box', 10)
    """

    domain: Box
    privacy: Privacy
    kernel: Kernel = field(default_factory=Structured)
    rewards: tuple[float, float] = (0.0, 1.0)
    horizon: int | None = None
    name: str = "study"
    decisions: Decisions | None = None
    features: FeatureMap | FeatureChoice = "auto"
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
    explore: FirstActions | None = field(default=None, metadata=canonical.OPTIONAL)
    start: Mapping[str, Setting] | None = field(default=None, metadata=canonical.OPTIONAL)
    public_contexts: ContextLaws | None = field(default=None, metadata=canonical.OPTIONAL)
    elimination: Elimination | None = field(default=None, metadata=canonical.OPTIONAL)
    codewords: int | None = field(default=None, metadata=canonical.OPTIONAL)
    directions: int | None = field(default=None, metadata=canonical.OPTIONAL)
    wording: Wording | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check_arguments()
        self._resolve("wording", Wording.of(self))
        self._settle(fill=True)
        for message, kind in cautions(self):
            warnings.warn(message, kind, stacklevel=3)

    @classmethod
    def restored(cls, **stored: Any) -> "Plan":
        """The plan whose fields these are: checked like any other, and nothing is filled in."""
        plan = object.__new__(cls)
        for name, value in {**stored, "wording": None}.items():
            plan._resolve(name, value)
        plan._check_arguments()
        plan._settle(fill=False)
        return plan

    def _check_arguments(self) -> None:
        """Refuse what an argument says by itself."""
        resolve.check_types({each.name: getattr(self, each.name) for each in fields(self)})
        self._resolve("rewards", resolve.range_of(self.rewards))
        self._resolve("kernel_error", checks.number("kernel_error", self.kernel_error, above=0.0))
        for name in ("max_features", "expire_after", "horizon"):
            if name != "horizon" or self.horizon is not None:
                self._resolve(name, checks.count(name, getattr(self, name)))
        for name in ("signal_std", "noise_std", "norm"):
            if (number := getattr(self, name)) is not None:
                self._resolve(name, checks.number(name, number, above=0.0))
        if self.looks is not None:
            self._resolve("looks", weights_of(self.looks))
        if self.explore is not None:
            self._resolve("explore", first_actions(self.explore, self.domain))
        if self.start is not None:
            self._resolve("start", start_action(self.start, self.domain))
        if self.public_contexts is not None:
            self._resolve("public_contexts", context_laws(self.public_contexts, self.domain))
        self._resolve("kernel", on_columns(self.kernel, self.domain.columns))
        self.kernel.check(self.domain.dimension)
        if not isinstance(self.features, str) and self.features.inputs != self.domain.dimension:
            raise InvalidArgument("features", f"a map of {self.domain.dimension} inputs")

    def _settle(self, *, fill: bool) -> None:
        """Refuse what does not go together, and fill in what the author left open.

        A stored plan has nothing left to fill in.
        """
        open_ended = (self.decisions, self.schedule, self.exploration).count(None)
        if not fill and (open_ended or isinstance(self.features, str) or self.encoding == "auto"):
            raise InvalidArgument("plan", "one that is resolved")
        self._resolve("decisions", resolve.decisions_of(self.decisions, self.domain))
        self._resolve("kernel", kernel_of(self, fill=fill))
        if isinstance(self.features, str):
            self._resolve("features", chosen_features(self, self.features))
        self._resolve("noise", resolve.noise_of(self.noise, self.privacy, self.kernel, self.prior))
        rule = (self.confidence, self.noise, self.norm, self.buffers, self.exploration)
        self._resolve("confidence", resolve.confidence_of(*rule))
        self._resolve("elimination", resolve.elimination_of(self, fill=fill))
        self._resolve("encoding", resolve.encoding_of(self, self.map))
        self._resolve("codewords", codewords_of(self.codewords, self.encoding, fill=fill))
        self._resolve("directions", resolve.directions_of(self, self.map, fill=fill))
        again = fill and not self.eliminates
        looks = looks_of(self.looks, self._encoding_name, self.privacy, fill=again)
        self._resolve("looks", looks)
        if self.schedule is None:  # the mu of correlated noise depends on it
            mu = None if self.noise is not None or self.sends_indices else self.mu
            self._resolve("schedule", resolve.schedule_of(self, self.map, mu))
        if self.noise == "blt" and self.buffers is None:
            self._resolve("buffers", fitted_buffers(self._releases))
        self._resolve("exploration", self.exploration or resolve.exploration_of(self))
        resolve.check_exploration(self, self.exploring)
        resolve.check_beginning(self.explore, self.start, self.decisions, self.confidence)
        if self.looks_again and self.exploring.draws > MOST_DRAWS:
            raise InvalidArgument(
                "exploration", f"at most {MOST_DRAWS} draws where rounds are looked at again"
            )
        if self.prior is not None:
            self.prior.check(
                domain=canonical.digest(self.domain),
                features=canonical.digest(self.map),
                rewards=self.rewards,
                private=not isinstance(self.privacy, NonPrivate),
            )
        # Noise and sums fit 64 bits, and a threshold keeps epsilon: said now, not at a release.
        if self.sends_indices:
            self.check_caps()
        elif self.correlated is None:
            rounds = (self.horizon or MOST_ASKS) + self.expire_after
            nothing = Residual(np.zeros(self.map.dimension), 1.0)
            self.encode_with.fit(self.map, nothing, self.mu, 1.0, rounds)

    def _resolve(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    # -- what is agreed

    @cached_property
    def digest(self) -> str:
        """The digest of the whole plan."""
        return canonical.digest(self)

    @property
    def map(self) -> FeatureMap:
        """The resolved feature map."""
        return _resolved(None if isinstance(self.features, str) else self.features)

    @property
    def exploring(self) -> Exploration:
        """The resolved exploration."""
        return _resolved(self.exploration)

    @property
    def _encoding_name(self) -> EncodingName:
        return _resolved(None if self.encoding == "auto" else self.encoding)

    @property
    def encode_with(self) -> type[Encoding]:
        """The kind of encoding that epochs use, where rounds are integers with noise."""
        if self.sends_indices:
            raise TypeError("reports of this plan are indices: no noise is added to them")
        return ENCODINGS[self._encoding_name]

    @property
    def is_directed(self) -> bool:
        """Whether rounds of people whose options nobody may see are encoded along directions."""
        return self._encoding_name == "directed"

    @property
    def designs_for_people(self) -> bool:
        """Whether first asks of people with contexts get listed actions, whoever comes."""
        begins = self.explore is not None or self.start is not None
        return self.decisions == "context" and (self.is_directed or self.sends_indices or begins)

    @property
    def eliminates(self) -> bool:
        """Whether the study plays phases that drop arms, with a certificate."""
        return self.elimination is not None

    @property
    def premises(self) -> Elimination:
        """What elimination takes for granted."""
        return _resolved(self.elimination)

    @property
    def guarantee(self) -> str:
        """The sentence for the review board."""
        return self.promise(simulated=False)

    def promise(self, *, simulated: bool) -> str:
        """The sentence for the review board, which a simulation does not earn."""
        parts = [self.promised.guarantee]
        if simulated and not isinstance(self.privacy, NonPrivate):
            parts.insert(0, SIMULATED)
        if self.stream is not None:
            parts.append(self.stream.guarantee)
        if self.looks_again:
            parts.append(
                f"A round is part of up to {len(_resolved(self.looks))} releases, priced together: "
                "what it can move in each, squared and summed, is what one whole release may move."
            )
        return " ".join(parts)

    # -- what a round costs

    @cached_property
    def cost(self) -> PrivacyCost | None:
        """What all rounds of a person cost together, at most; None without privacy.

        Each integer of each release that their rounds touch adds to the slack of finite precision
        (see `randomness`). Every other release has the same law whatever they do. Reports that are
        indices cost the epsilon itself.

        >>> from discreet.domain.box import Box
        >>> plan = Plan(domain=Box({"dose": (0, 10)}), privacy=JointDP(8.0, 1e-5))
        >>> round(plan.cost.epsilon(1e-5), 6), round(plan.cost.epsilon(1e-6), 2)
        (8.0, 8.86)
        >>> plan.cost.epsilon(1e-9)  # finite precision of the noise alone takes more
        inf
        """
        privacy = self.privacy
        if isinstance(privacy, NonPrivate):
            return None
        if isinstance(privacy, ShuffledDP) or self.sends_indices:
            return index_cost(privacy)
        releases = (1 if self.is_local else 2) * privacy.rounds_per_user
        releases *= len(self.looks or ONE_LOOK)
        if self.stream is not None:
            releases = min(releases * self.stream.touched, self.stream.releases)
        return privacy.certified(releases * self.most_integers * self.encode_with.slack)

    @property
    def most_integers(self) -> int:
        """How many integers a release has at most: so many are paid for."""
        most = self.encode_with.most_integers(self.map)
        return most if self.directions is None else min(most, self.directions + 1)

    @cached_property
    def mu(self) -> float | None:
        """What one round may cost; None without privacy, and `report_epsilon` for indices.

        It leaves a relative 1e-9 for the rounding of norms, which are at most 1 within 1e-12.
        """
        if isinstance(self.privacy, NonPrivate) or self.cost is None:
            return None
        if isinstance(self.privacy, ShuffledDP) or not isinstance(self.cost, GaussianPrivacy):
            raise TypeError("reports of this plan are indices: they cost an epsilon, and no mu")
        return self.privacy.per_round(self.cost.mu) * (1.0 - 1e-9)

    def allows(self, encoding: Encoding | Indexed, group: int = 1) -> bool:
        """Whether an epoch with this encoding keeps the promise; a hair is for rounding alone.

        `group`: how many asks the smallest group has, among which mixed reports hide.
        Where noise is correlated all epochs have one encoding. More integers than the plan pays for
        would exceed the slack of `cost`.
        """
        if self.sends_indices or isinstance(encoding, Indexed):
            return self.allows_index(encoding, group)
        if self.mu is None:
            return True
        if type(encoding) is not self.encode_with or not encoding.is_noisy:
            return False
        if encoding.size(self.map) > self.most_integers:
            return False
        if self.correlated is not None:
            return self.correlated.allows(encoding)
        return encoding.bound(self.map) <= self.mu * (1.0 + 1e-11)

    def noise_of_sum(self, encoding: Encoding, rounds: int) -> Encoding:
        """The encoding with the noise that a sum of so many rounds has: what a posterior needs.

        Under joint privacy noise is drawn once for a sum, whatever it sums. In the local model
        each report brings its own, and n reports have sqrt(n) times that of one.
        """
        if not self.is_local:
            return encoding
        return replace(encoding, noise=encoding.noise.of_sum(rounds))

    @cached_property
    def stream(self) -> Stream | None:
        """How noise is correlated over the releases of the study; None where it is not."""
        if self.noise in (None, "independent") or not isinstance(self.privacy, JointDP):
            return None
        return stream_of(
            self.noise,
            self.buffers,
            releases=self._releases,
            privacy=self.privacy,
            integers=self.most_integers,
        )

    @property
    def _releases(self) -> int | None:
        return None if self.horizon is None else self.releases_of(self.horizon)

    def releases_of(self, asks: int) -> int:
        """How many epochs so many asks take."""
        return _resolved(self.schedule).releases(asks)

    @cached_property
    def correlated(self) -> Correlated | None:
        """What only the prefix algorithm reads; None where noise is independent."""
        if self.stream is None or self.mu is None:
            return None
        return Correlated.of(
            self.stream,
            self.encode_with,
            self.map,
            mu=self.mu,
            rounds=_resolved(self.last) + self.expire_after,
            norm=self.norm,
        )

    # -- when a study looks

    @cached_property
    def last(self) -> int | None:
        """How many asks the study has at most: its horizon, or what correlated noise allows."""
        if self.horizon is not None or self.stream is None:
            return self.horizon
        return _resolved(self.schedule).asks(self.stream.releases, MOST_ASKS)

    def epoch_length(self, asked: int) -> int:
        """The length of the epoch that opens after `asked` asks, cut at the horizon."""
        length = _resolved(self.schedule).length(asked)
        return length if self.last is None else min(length, self.last - asked)

    def is_design(self, first: int) -> bool:
        """Whether the epoch after `first` asks fills the domain, whatever is believed."""
        return self.prior is None and first < self.design_asks

    @property
    def design_asks(self) -> int:
        """How many asks fill the domain before what was learnt guides them."""
        schedule = _resolved(self.schedule)
        return schedule.first + (schedule.second or 0)


def _resolved(value: T | None) -> T:
    if value is None:
        raise TypeError("a plan resolves its defaults when it is made")
    return value
