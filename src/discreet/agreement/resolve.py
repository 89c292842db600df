"""The arguments of a plan: what is refused, and what is filled in where its author said nothing.

Each function takes what was written and the arguments it depends on. What it returns is stored in
the plan and never worked out again: a later version may choose another default for new plans.
"""

import math
from collections.abc import Mapping
from typing import Any, Literal, Protocol, get_args

from discreet import checks
from discreet.agreement.elimination import Elimination, doubling
from discreet.agreement.index_reports import index_variance, is_pure, tells_more
from discreet.agreement.prior import Prior
from discreet.agreement.schedule import (
    Exploration,
    Schedule,
    exact_schedule,
    index_schedule,
    joint_schedule,
    local_schedule,
    personal_schedule,
    shuffled_schedule,
)
from discreet.domain.box import Box
from discreet.errors import InvalidArgument
from discreet.features.choose import FeatureChoice
from discreet.features.difference_grid import difference_grid
from discreet.features.fourier import FourierFeatures
from discreet.features.kernels import Kernel, Learned, Structured
from discreet.features.maps import FeatureMap
from discreet.features.nystrom import NystromFeatures
from discreet.features.products import ProductFeatures
from discreet.privacy.budget import JointDP, LocalDP, NonPrivate, Privacy
from discreet.privacy.correlation import BLT
from discreet.privacy.encodings import INDEXED, EncodingChoice, EncodingName
from discreet.privacy.looks import Looks
from discreet.privacy.reward import MOST_DIRECTIONS
from discreet.privacy.shuffled import ShuffledDP
from discreet.privacy.streams import NoiseChoice

Decisions = Literal["box", "context", "candidates"]
Confidence = Literal["practical", "theory"]

#: Sums over a study without end stay within 64 bits for so many asks.
MOST_ASKS = 1 << 32
#: How many standard deviations the prefix estimator's practical rule adds: about the best of a
#: small grid at mu = 0.92 on the synthetic problem.
OPTIMISM = 0.3
#: Reward noise at every draw of the last few epochs is estimated with f: more would be slow.
MOST_DRAWS = 512
#: Where reports are mixed, a menu has few rows: people of one row hide each other.
SHUFFLED_DRAWS = 16


def check_types(arguments: Mapping[str, Any]) -> None:
    """Refuse an argument of another class than the plan's."""
    expected: list[tuple[str, Any, str]] = [
        ("domain", Box, "a Box"),
        (
            "privacy",
            (JointDP, LocalDP, ShuffledDP, NonPrivate),
            "JointDP(epsilon, delta), LocalDP(epsilon), ShuffledDP(epsilon, delta) or NonPrivate()",
        ),
        ("public_decisions", bool, "True or False"),
        ("name", str, "text"),
        ("exploration", (Exploration, type(None)), "an Exploration"),
        ("schedule", (Schedule, type(None)), "a Schedule"),
        ("prior", (Prior, type(None)), "Study.prior() of an earlier study"),
        ("buffers", (BLT, type(None)), "a BLT"),
        ("elimination", (Elimination, type(None)), "an Elimination"),
        ("kernel", Kernel, "a kernel such as SquaredExponential(0.2)"),
    ]
    for name, kind, words in expected:
        if not isinstance(arguments[name], kind):
            raise InvalidArgument(name, words)
    features = arguments["features"]
    named = isinstance(features, str) and features in get_args(FeatureChoice)
    if not named and not isinstance(features, FeatureMap):
        words = " or ".join(repr(method) for method in get_args(FeatureChoice))
        raise InvalidArgument("features", f"{words}, or a feature map")
    choices = {"encoding": EncodingChoice, "noise": NoiseChoice, "confidence": Confidence}
    for name, choice in choices.items():
        optional = () if name == "encoding" else (None,)
        if arguments[name] not in (*get_args(choice), *optional):
            words = ", ".join(repr(each) for each in get_args(choice))
            raise InvalidArgument(name, f"one of {words}")


def range_of(rewards: Any) -> tuple[float, float]:
    """The range that rewards are clipped to."""
    words = "a pair (low, high) of finite numbers with low < high"
    try:
        low, high = (checks.number("rewards", end) for end in rewards)
    except (TypeError, ValueError):
        raise InvalidArgument("rewards", words) from None
    centre = (low + high) / 2
    if not (low < centre < high and math.isfinite(high - low)):
        raise InvalidArgument("rewards", words, (low, high))
    return low, high


def decisions_of(written: Decisions | None, domain: Box) -> Decisions:
    """What an ask chooses from: a context where the domain names one, else the whole box."""
    natural: Decisions = "context" if domain.has_context else "box"
    kind = natural if written is None else written
    if kind not in get_args(Decisions):
        raise InvalidArgument("decisions", "'box', 'context' or 'candidates'", kind)
    if kind not in ("candidates", natural):
        reason = "no context coordinates" if kind == "context" else "context coordinates"
        raise InvalidArgument("decisions", f"{natural!r}: the domain has {reason}", kind)
    return kind


# -- the prefix algorithm: arguments that only correlated noise reads


def noise_of(
    written: NoiseChoice | None, privacy: Privacy, kernel: Kernel, prior: Prior | None
) -> NoiseChoice | None:
    """How noise is correlated over releases; None where it is independent."""
    if written in (None, "independent"):
        return None
    reasons = (
        (
            isinstance(privacy, LocalDP),
            "'independent' with LocalDP: each report has noise of its own",
        ),
        (not isinstance(privacy, JointDP), "'independent': no noise is there to correlate"),
        (prior is not None, "'independent' with a prior: prefix sums begin at zero"),
        (
            isinstance(kernel, Learned),
            "'independent' with Learned: the prefix estimator has one kernel",
        ),
    )
    for is_wrong, reason in reasons:
        if is_wrong:
            raise InvalidArgument("noise", reason)
    return written


def confidence_of(
    written: Confidence | None,
    noise: NoiseChoice | None,
    norm: float | None,
    buffers: BLT | None,
    exploration: Exploration | None,
) -> Confidence | None:
    """The rule of the prefix estimator; with independent noise None, or that of elimination."""
    if noise is None and written != "theory":
        given = {"confidence": written, "norm": norm, "buffers": buffers}
        for name in (name for name, value in given.items() if value is not None):
            raise InvalidArgument(
                name, "nothing with independent noise: it is part of the prefix estimator"
            )
        return None
    if buffers is not None and noise != "blt":
        raise InvalidArgument("buffers", "a BLT, with noise='blt' alone")
    confidence = written or "practical"
    if (norm is None) == (confidence == "theory"):
        raise InvalidArgument("norm", "the bound on f that confidence='theory' rests on, only")
    if confidence == "theory" and exploration not in (None, Exploration(0.0, 0.0, 1)):
        raise InvalidArgument("exploration", "nothing with confidence='theory', which sets it")
    return confidence


def check_beginning(
    explore: object, start: object, decisions: Decisions | None, confidence: Confidence | None
) -> None:
    """Refuse first actions where they would not be given out."""
    for name, given in (("explore", explore), ("start", start)):
        if given is not None and decisions == "candidates":
            raise InvalidArgument(name, "nothing where people bring candidates: they bring actions")
        if given is not None and confidence == "theory":
            raise InvalidArgument(name, "nothing with confidence='theory', which sets first asks")
    if explore is not None and start is not None:
        raise InvalidArgument("start", "nothing beside explore, which lists the first actions")


def elimination_of(plan: "Arguments", *, fill: bool) -> Elimination | None:
    """What elimination takes for granted, where the plan runs it; else nothing."""
    local = isinstance(plan.privacy, LocalDP) and plan.decisions != "box"
    if plan.confidence != "theory" or plan.noise is not None or local:
        if plan.elimination is not None:
            raise InvalidArgument(
                "elimination",
                "nothing without confidence='theory', independent noise and decisions='box'",
            )
        if plan.confidence == "theory" and plan.noise is None:
            _check_local_theory(plan)
        return None
    reasons = (
        (
            plan.decisions != "box",
            "decisions",
            "'box' with confidence='theory' and independent noise: elimination chooses from public "
            "arms (for what people bring, add noise='tree', 'square root' or 'blt')",
        ),
        (plan.prior is not None, "prior", "nothing with elimination, which believes nothing"),
        (isinstance(plan.kernel, Learned), "kernel", "one kernel: elimination learns none"),
        (
            plan.encoding not in ("auto", "reward"),
            "encoding",
            "'reward' with elimination, whose actions are public",
        ),
        (
            plan.looks is not None and len(plan.looks) > 1,
            "looks",
            "one: a phase of elimination has its own people",
        ),
    )
    for is_wrong, argument, expectation in reasons:
        if is_wrong:
            raise InvalidArgument(argument, expectation)
    premises = plan.elimination or Elimination()
    return premises.settled(plan.domain, plan.rewards) if fill else premises


def _check_local_theory(plan: "Arguments") -> None:
    """Refuse what Algorithm 3, on what people bring, is not proven for."""
    reasons = (
        (plan.horizon is None, "horizon", "a number of asks: the shift of Algorithm 3 needs it"),
        (plan.prior is not None, "prior", "nothing with confidence='theory': sums begin at zero"),
        (isinstance(plan.kernel, Learned), "kernel", "one kernel with confidence='theory'"),
    )
    for is_wrong, argument, expectation in reasons:
        if is_wrong:
            raise InvalidArgument(argument, expectation)


# -- how a round is encoded


class Arguments(Protocol):
    """What the default of one argument of a plan may depend on."""

    @property
    def domain(self) -> Box: ...
    @property
    def kernel(self) -> Kernel: ...
    @property
    def privacy(self) -> Privacy: ...
    @property
    def decisions(self) -> Decisions | None: ...
    @property
    def public_decisions(self) -> bool: ...
    @property
    def encoding(self) -> EncodingChoice: ...
    @property
    def noise(self) -> NoiseChoice | None: ...
    @property
    def confidence(self) -> Confidence | None: ...
    @property
    def looks(self) -> Looks | None: ...
    @property
    def elimination(self) -> Elimination | None: ...
    @property
    def prior(self) -> Prior | None: ...
    @property
    def rewards(self) -> tuple[float, float]: ...
    @property
    def noise_std(self) -> float | None: ...
    @property
    def horizon(self) -> int | None: ...
    @property
    def features(self) -> FeatureMap | FeatureChoice: ...
    @property
    def directions(self) -> int | None: ...


def encoding_of(plan: Arguments, features: FeatureMap) -> EncodingName:
    """By default the least noise that is safe for what is protected and how actions come about."""
    protect = plan.privacy.protect
    rewards_only = protect == "rewards" and plan.decisions != "box"
    pure = is_pure(plan.privacy)
    name = _safest_encoding(plan, features) if plan.encoding == "auto" else plan.encoding
    if name == "fourier":
        difference_grid(features)
    reasons = (
        (
            rewards_only and not plan.public_decisions,
            "public_decisions",
            "True: protect='rewards' publishes the actions that contexts and candidates lead "
            "to, so say that these are public, or use protect='decisions'",
        ),
        (
            plan.public_decisions and protect == "decisions",
            "public_decisions",
            "False, or privacy with protect='rewards', which it is for",
        ),
        (
            name == "reward" and plan.decisions != "box",
            "encoding",
            "'gram' or 'fourier' here: 'reward' needs actions that are public beforehand, "
            "which only the whole box gives",
        ),
        (
            plan.noise is not None and name in ("reward", "announced", "directed"),
            "encoding",
            "'gram' or 'fourier' with correlated noise: it is for both prefix sums",
        ),
        (
            name == "directed"
            and (not isinstance(plan.privacy, JointDP) or plan.decisions == "box"),
            "encoding",
            "another one: 'directed' is for JointDP where people bring contexts or candidates",
        ),
        (
            name == "announced" and not rewards_only,
            "encoding",
            "another one: 'announced' publishes the actions, which only protect='rewards' with "
            "public contexts or candidates allows",
        ),
        (
            pure and (plan.confidence == "theory" or name not in INDEXED),
            "privacy",
            "LocalDP(epsilon, delta): Gaussian noise, which this encoding or confidence='theory' "
            "is about, needs a delta",
        ),
        (
            name in INDEXED and not isinstance(plan.privacy, LocalDP | ShuffledDP),
            "encoding",
            f"another one: {name!r} is for LocalDP, where each person sends a report",
        ),
        (
            name == "interval" and plan.decisions != "box",
            "encoding",
            "'codebook' here: 'interval' tells the residual alone, which needs a public action",
        ),
    )
    for is_wrong, argument, expectation in reasons:
        if is_wrong:
            raise InvalidArgument(argument, expectation)
    return name


def directions_of(plan: Arguments, features: FeatureMap, *, fill: bool) -> int | None:
    """How many directions a release over the whole box has at most; None: one a feature.

    Phases of elimination need every direction that their arms span.
    """
    joint = plan.encoding == "reward" and isinstance(plan.privacy, JointDP)
    if plan.elimination is not None or not joint:
        if plan.directions is not None and not isinstance(plan.privacy, NonPrivate):
            words = "nothing but with JointDP and encoding='reward', without elimination"
            raise InvalidArgument("directions", words)
        return None
    if plan.directions is not None:
        return checks.count("directions", plan.directions)
    return MOST_DIRECTIONS if fill and features.dimension > MOST_DIRECTIONS else None


def _safest_encoding(plan: Arguments, features: FeatureMap) -> EncodingName:
    if plan.elimination is not None:
        return "reward"
    if isinstance(plan.privacy, NonPrivate):
        return "gram"
    if plan.confidence != "theory" and tells_more(plan.privacy, box=plan.decisions == "box"):
        return "interval" if plan.decisions == "box" else "codebook"
    if plan.decisions == "box" and plan.noise is None:
        return "reward"
    if plan.privacy.protect == "rewards" and plan.noise is None:
        return "announced"
    if isinstance(plan.privacy, JointDP) and plan.noise is None:
        leading = isinstance(features, ProductFeatures | NystromFeatures)
        if plan.decisions == "context" or leading:
            return "directed"
    lattice = isinstance(features, FourierFeatures) and features.indices is not None
    # As proven: the paper's own, and with gram silence is silence.
    return "fourier" if lattice and plan.confidence != "theory" else "gram"


# -- when a study looks, and how it explores


def schedule_of(plan: Arguments, features: FeatureMap, mu: float | None) -> Schedule:
    """Longer epochs where noise must be averaged out.

    Where it is correlated, in every round as in the paper; without end, less and less often.
    """
    box = plan.decisions == "box"
    if plan.elimination is not None:
        return _doubling(plan, plan.elimination, features, mu)
    if plan.noise is not None or plan.confidence == "theory":
        return Schedule(1, growth=1.01 if plan.horizon is None else 1.0)
    if isinstance(plan.privacy, ShuffledDP):
        return shuffled_schedule(plan.privacy.shortest)
    if plan.encoding in INDEXED and isinstance(plan.privacy, LocalDP):
        told = index_variance(plan.privacy, box=plan.encoding == "interval")
        return index_schedule(told, plan, features)
    if mu is None:
        return exact_schedule(plan.domain, box=box)
    if isinstance(plan.privacy, LocalDP):
        return local_schedule(mu, plan.domain, features, box=box)
    if plan.encoding == "directed":
        return personal_schedule(mu, plan.horizon)
    again = plan.looks is not None and len(plan.looks) > 1
    return joint_schedule(mu, plan.domain, features, box=box, again=again, horizon=plan.horizon)


def _doubling(
    plan: Arguments, premises: Elimination, features: FeatureMap, mu: float | None
) -> Schedule:
    half = (plan.rewards[1] - plan.rewards[0]) / 2.0
    low, high = premises.means or plan.rewards
    return doubling(
        premises,
        features=features.dimension,
        noise=1.0 if plan.noise_std is None else min(plan.noise_std / half, 1.0),
        private=0.0 if mu is None else 2.0 / mu,
        spread=(high - low) / half,
        local=isinstance(plan.privacy, LocalDP),
        horizon=plan.horizon,
    )


def check_exploration(plan: Arguments, exploration: Exploration) -> None:
    """Refuse bold scores where nobody would get them."""
    if exploration.bold is not None and not _can_be_bold(plan):
        words = (
            "nothing here: bold scores need contexts and a horizon, JointDP or NonPrivate, "
            'encoding="directed" with JointDP, and neither noise nor confidence '
            "(exploration=None chooses anew)"
        )
        raise InvalidArgument("exploration.bold", words, exploration.bold)


def _can_be_bold(plan: Arguments) -> bool:
    independent = plan.noise is None and plan.confidence is None
    people = plan.decisions == "context" and plan.horizon is not None
    known = isinstance(plan.privacy, NonPrivate) or plan.encoding == "directed"
    return people and independent and known


def exploration_of(plan: Arguments) -> Exploration:
    """Over the whole box only draws explore; sets that people bring already differ.

    Noise explores, too: without it, a little more. Under contexts that are private, or where the
    kernel is open, draws explore what the horizon still lets the study learn, and a few
    scores are bold (decision 28).
    """
    if plan.noise is not None or plan.confidence == "theory":
        return Exploration(0.0 if plan.confidence == "theory" else OPTIMISM, 0.0, 1)
    if isinstance(plan.privacy, ShuffledDP) and plan.decisions == "box":
        return Exploration(0.0, 0.5, SHUFFLED_DRAWS)
    if plan.encoding in INDEXED:
        return Exploration(0.0, 0.5)
    if plan.decisions == "box":
        return Exploration(0.0, 0.7)
    exact, directed = isinstance(plan.privacy, NonPrivate), plan.encoding == "directed"
    if _can_be_bold(plan) and (directed or isinstance(plan.kernel, Structured)):
        return Exploration(0.0, 0.4, foresight=True, bold=3.0)
    if plan.decisions == "context" and directed:
        return Exploration(0.0, 0.5)
    return Exploration(0.5, 0.5) if exact else Exploration(0.3, 0.3)
