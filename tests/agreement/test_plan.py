"""Plans: complete, frozen, the same after storage, and picky about every argument."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.agreement.plan import Exploration, Plan, Schedule
from discreet.agreement.prior import Prior
from discreet.domain.box import Box, Categorical, Integer
from discreet.errors import InvalidArgument, Malformed, OutOfReach
from discreet.features.choose import choose
from discreet.features.kernels import (
    Additive,
    Learned,
    Linear,
    Matern,
    Part,
    Polynomial,
    SquaredExponential,
    Structured,
)
from discreet.privacy.budget import JointDP, LocalDP, NonPrivate
from discreet.privacy.clipping import Residual
from discreet.privacy.cost import PurePrivacy
from discreet.privacy.encodings import ENCODINGS
from discreet.privacy.fourier import FourierEncoding
from discreet.privacy.gram import GramEncoding
from discreet.privacy.reward import RewardEncoding
from discreet.storage import canonical

BOX = Box({"x": (0, 1), "y": (0, 1)})
CONTEXT = Box({"dose": (0, 10), "age": (18, 90)}, context=["age"])


def _plan(**changes):
    return Plan(**{"domain": BOX, "privacy": NonPrivate(), **changes})


def _prior(plan, **changes):
    m = plan.map.dimension
    given = {
        "releasable": True,
        "domain": canonical.digest(BOX),
        "features": canonical.digest(plan.map),
        "rewards": plan.rewards,
        "precision": np.eye(m),
        "information": np.zeros(m),
    }
    return Prior(**{**given, **changes})


NOT_POSITIVE = [0.0, -1.0, math.nan, math.inf, -math.inf, "1", None, True, [1.0]]
NOT_COUNTS = [0, -1, 1.5, 2.0, math.nan, "10", True, [1]]
BAD = [
    *(("domain", bad) for bad in [None, {"x": (0, 1)}, [(0, 1)], "box"]),
    *(("privacy", bad) for bad in [None, False, "none", NonPrivate, 1.0, LocalDP]),
    *(("public_decisions", bad) for bad in [None, 1, "yes"]),
    *(("kernel", bad) for bad in [None, 0.2, "rbf", SquaredExponential, print]),
    *(
        ("rewards", bad)
        for bad in [
            (1.0, 0.0),
            (0.5, 0.5),
            (0.0, math.nan),
            (-math.inf, 0.0),
            (0.0, math.inf),
            (0.0,),
            (0.0, 1.0, 2.0),
            ("0", "1"),
            "01",
            (False, True),
            None,
            1.0,
            (1e16, 1e16 + 2),  # no float between them: centring would lose the reward
            (0.0, 5e-324),
            (-1.7e308, 1.7e308),  # the width overflows
            (1.7e308, 1.79e308),  # the centre overflows
        ]
    ),
    *(("horizon", bad) for bad in NOT_COUNTS),
    *(("expire_after", bad) for bad in [*NOT_COUNTS, None]),
    *(("max_features", bad) for bad in [*NOT_COUNTS, None]),
    *(("kernel_error", bad) for bad in NOT_POSITIVE),
    *(("signal_std", bad) for bad in NOT_POSITIVE if bad is not None),
    *(("noise_std", bad) for bad in NOT_POSITIVE if bad is not None),
    *(("name", bad) for bad in [None, 7, b"study"]),
    *(("decisions", bad) for bad in ["", "boxes", "context", 1, ["box"]]),
    *(("features", bad) for bad in ["", "fourier", 7, None, ["grid"], SquaredExponential()]),
    *(("encoding", bad) for bad in ["", "grams", 7, None, ["gram"]]),
    *(("schedule", bad) for bad in [10, "doubling", (10, 1.1)]),
    *(("exploration", bad) for bad in [0, 2.0, "ucb"]),
    *(("prior", bad) for bad in [0, "export.json", {}]),
]


@pytest.mark.parametrize(("name", "bad"), BAD, ids=[f"{name}={bad!r:.40}" for name, bad in BAD])
def test_a_bad_argument_is_refused_by_name(name, bad):
    with pytest.raises(InvalidArgument) as caught:
        _plan(**{name: bad})
    assert caught.value.argument == name
    assert str(caught.value).startswith(f"{name}: expected ")


def test_privacy_has_no_default():
    with pytest.raises(TypeError, match="privacy"):
        Plan(domain=BOX)


@pytest.mark.parametrize(
    "kernel",
    [
        SquaredExponential((0.2, 0.3, 0.4)),
        Matern(1.5, (0.2,)),
        Additive((Part(Linear(), (2,), 1.0),)),
    ],
)
def test_a_kernel_of_another_dimension_is_refused(kernel):
    with pytest.raises(InvalidArgument):
        _plan(kernel=kernel)


def test_features_of_another_dimension_are_refused():
    features = choose(SquaredExponential(0.5), widths=np.ones(3))
    with pytest.raises(InvalidArgument, match="features: expected a map of 2 inputs"):
        _plan(features=features)


def test_an_error_out_of_reach_says_how_many_features_it_takes():
    with pytest.raises(OutOfReach) as caught:
        _plan(kernel=SquaredExponential(0.05), kernel_error=1e-6, max_features=100, features="grid")
    assert caught.value.features > 100


@pytest.mark.parametrize("method", ["hermite", "random"])
def test_fourier_needs_grid_features(method):
    with pytest.raises(InvalidArgument, match=r"encoding.*grid features"):
        _plan(features=method, kernel_error=0.5, encoding="fourier")
    with pytest.raises(InvalidArgument, match="encoding"):
        _plan(kernel=Polynomial(2), encoding="fourier")


@pytest.mark.parametrize("domain", [CONTEXT, BOX])
def test_rewards_alone_need_the_whole_box(domain):
    with pytest.raises(InvalidArgument, match="encoding"):
        _plan(
            domain=domain, encoding="reward", decisions=None if domain is CONTEXT else "candidates"
        )


# -- privacy decides what may be encoded

JOINT = JointDP(1.0, 1e-6)
REWARDS = JointDP(1.0, 1e-6, protect="rewards")
CANDIDATES = {"decisions": "candidates", "kernel_error": 1e-2}
IN_CONTEXT = {"domain": CONTEXT, "kernel_error": 1e-2}


@pytest.mark.parametrize(
    ("given", "encoding"),
    [
        ({"privacy": JOINT}, "reward"),
        ({"privacy": REWARDS}, "reward"),
        ({"privacy": REWARDS, "public_decisions": True}, "reward"),
        ({"privacy": JOINT, **CANDIDATES}, "fourier"),
        ({"privacy": JOINT, **IN_CONTEXT}, "directed"),
        ({"privacy": JOINT, **CANDIDATES, "features": "hermite"}, "gram"),
        ({"privacy": JOINT, **CANDIDATES, "kernel": Polynomial(2)}, "gram"),
        (
            {"privacy": JOINT, **CANDIDATES, "kernel": Additive.over(SquaredExponential(0.3), 2)},
            "gram",
        ),
        ({"privacy": REWARDS, "public_decisions": True, **CANDIDATES}, "announced"),
        ({"privacy": REWARDS, "public_decisions": True, **IN_CONTEXT}, "announced"),
        ({"privacy": NonPrivate(), **CANDIDATES}, "gram"),
    ],
    ids=str,
)
def test_auto_takes_the_least_noise_that_is_safe(given, encoding):
    plan = _plan(**given)
    assert plan.encoding == encoding
    assert plan.encode_with is ENCODINGS[encoding]


@pytest.mark.parametrize(
    ("given", "argument", "reason"),
    [
        ({"privacy": REWARDS, **CANDIDATES}, "public_decisions", "say that these are public"),
        ({"privacy": REWARDS, **IN_CONTEXT}, "public_decisions", "say that these are public"),
        (
            {"privacy": REWARDS, **CANDIDATES, "encoding": "gram"},
            "public_decisions",
            "say that these are public",
        ),
        ({"privacy": JOINT, **CANDIDATES, "encoding": "reward"}, "encoding", "the whole box"),
        ({"privacy": JOINT, **IN_CONTEXT, "encoding": "reward"}, "encoding", "the whole box"),
        (
            {"privacy": REWARDS, "public_decisions": True, **CANDIDATES, "encoding": "reward"},
            "encoding",
            "the whole box",
        ),
        (
            {"privacy": JOINT, **CANDIDATES, "encoding": "announced"},
            "encoding",
            "publishes the actions",
        ),
        (
            {"privacy": JOINT, **CANDIDATES, "public_decisions": True},
            "public_decisions",
            "which it is for",
        ),
        ({"privacy": JOINT, "encoding": "announced"}, "encoding", "publishes the actions"),
        ({"privacy": REWARDS, "encoding": "announced"}, "encoding", "publishes the actions"),
        ({"privacy": NonPrivate(), "encoding": "announced"}, "encoding", "publishes the actions"),
        (
            {"privacy": JOINT, **CANDIDATES, "features": "hermite", "encoding": "fourier"},
            "encoding",
            "grid features",
        ),
    ],
    ids=str,
)
def test_unsafe_combinations_are_refused_with_the_reason(given, argument, reason):
    with pytest.raises(InvalidArgument, match=reason) as caught:
        _plan(**given)
    assert caught.value.argument == argument


@pytest.mark.parametrize("encoding", ["gram", "fourier", "reward"])
def test_safe_encodings_can_be_asked_for(encoding):
    assert _plan(privacy=JOINT, encoding=encoding, kernel_error=1e-2).encoding == encoding


def test_a_stored_plan_cannot_be_turned_into_an_unsafe_one():
    data = canonical.encode(_plan(privacy=REWARDS, public_decisions=True, **CANDIDATES))
    for stored, changed in (
        (b'"public_decisions":true', b'"public_decisions":false'),
        (b'"protect":"rewards"', b'"protect":"decisions"'),
    ):
        assert stored in data
        with pytest.raises(Malformed):
            canonical.decode(Plan, data.replace(stored, changed))


@pytest.mark.parametrize("decisions", ["box", "candidates"])
def test_noise_asks_for_more_of_the_first_epochs_and_longer_ones_after(decisions):
    given = {"decisions": decisions, "kernel_error": 1e-2}
    asks = [_plan(privacy=JointDP(epsilon, 1e-6), **given).design_asks for epsilon in (0.1, 1, 5)]
    assert asks == sorted(asks, reverse=True)
    assert asks[0] > 2 * asks[1] > _plan(**given).design_asks
    assert _plan(privacy=JOINT, **given).schedule.growth > _plan(**given).schedule.growth


def test_the_whole_box_is_not_for_domains_with_a_context():
    with pytest.raises(InvalidArgument, match="decisions"):
        _plan(domain=CONTEXT, decisions="box")


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        *(({"first": bad}, "schedule.first") for bad in NOT_COUNTS),
        *(({"first": 1, "second": bad}, "schedule.second") for bad in NOT_COUNTS),
        *(({"first": 1, "growth": bad}, "schedule.growth") for bad in [*NOT_POSITIVE, 0.5]),
    ],
    ids=str,
)
def test_a_bad_schedule_is_refused_by_name(given, argument):
    with pytest.raises(InvalidArgument) as caught:
        Schedule(**given)
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *(("optimism", bad) for bad in NOT_POSITIVE if bad != 0.0),
        *(("sampling", bad) for bad in NOT_POSITIVE if bad != 0.0),
        *(("draws", bad) for bad in NOT_COUNTS),
    ],
)
def test_a_bad_exploration_is_refused_by_name(name, bad):
    with pytest.raises(InvalidArgument) as caught:
        Exploration(**{name: bad})
    assert caught.value.argument == f"exploration.{name}"


# -- priors


def test_a_prior_with_the_same_features_and_range_is_taken():
    plan = _plan()
    warm = _plan(features=plan.map, prior=_prior(plan))
    assert warm.prior is not None
    assert warm.digest != plan.digest


def test_a_prior_of_another_map_is_refused():
    other = _plan(kernel=SquaredExponential(0.3))
    with pytest.raises(InvalidArgument, match=r"prior.*features"):
        _plan(prior=_prior(other))


def test_a_prior_of_another_range_is_refused():
    plan = _plan()
    with pytest.raises(InvalidArgument, match=r"prior.*rewards"):
        _plan(features=plan.map, prior=_prior(plan, rewards=(0.0, 2.0)))


@pytest.mark.parametrize(
    ("precision", "information"),
    [
        (np.eye(3), np.zeros(2)),
        (np.ones((2, 3)), np.zeros(2)),
        (np.eye(2), np.zeros((2, 1))),
        (np.zeros((2, 2)), np.zeros(2)),
        (-np.eye(2), np.zeros(2)),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), np.zeros(2)),
        (np.full((2, 2), np.nan), np.zeros(2)),
        (np.eye(2), np.array([0.0, np.inf])),
    ],
)
def test_a_prior_that_is_no_gaussian_is_refused(precision, information):
    with pytest.raises(InvalidArgument, match="prior"):
        _prior(_plan(), precision=precision, information=information)


# -- what a plan resolves


def test_defaults_are_resolved_to_what_will_be_used():
    plan = _plan(rewards=(2, 10))
    assert plan.rewards == (2.0, 10.0)
    assert plan.decisions == "box"
    assert plan.encoding == "gram"
    assert isinstance(plan.schedule, Schedule)
    assert (plan.signal_std, plan.noise_std) == (None, None)  # learnt
    assert 0.0 < plan.signal_variance <= 1.0
    assert 0.0 < plan.noise_variance <= 1.0
    fixed = _plan(rewards=(2, 10), signal_std=1, noise_std=2)
    assert (fixed.signal_variance, fixed.noise_variance) == (1 / 16, 1 / 4)
    assert (plan.centre, plan.half_width) == (6.0, 4.0)
    assert plan.features is plan.map
    assert plan.kernel == Structured()
    gridded = _plan(kernel=SquaredExponential())
    assert gridded.map.error_bound <= gridded.kernel_error
    assert _plan(domain=CONTEXT).decisions == "context"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("gram", GramEncoding), ("fourier", FourierEncoding), ("reward", RewardEncoding)],
)
def test_the_encoding_is_the_one_named(name, kind):
    assert _plan(encoding=name).encode_with is kind


def test_features_cover_the_domain_they_are_for():
    domain = Box({"x": (0, 1), "c": Categorical(("a", "b", "c"))})
    assert _plan(domain=domain, kernel_error=0.1).map.inputs == domain.dimension == 3


@given(
    low=st.floats(-1e6, 1e6),
    width=st.floats(1e-3, 1e6),
    reward=st.floats(allow_nan=False, allow_infinity=True),
)
def test_a_centred_reward_lies_between_minus_one_and_one(low, width, reward):
    plan = dataclasses.replace(PLAN, rewards=(low, low + width), signal_std=None, noise_std=None)
    h = plan.centred(reward)
    assert abs(h) <= 1.0 + 1e-6
    assert plan.rewards[0] <= plan.clip(reward) <= plan.rewards[1]
    if plan.rewards[0] <= reward <= plan.rewards[1]:
        assert plan.clip(reward) == reward
        back = h * plan.half_width + plan.centre
        assert back == pytest.approx(reward, rel=1e-9, abs=1e-9 * (abs(low) + width))


def test_lengths_grow_with_what_was_asked_and_stop_at_the_horizon():
    plan = _plan(schedule=Schedule(first=20, growth=1.1), horizon=1000)
    assert [plan.epoch_length(n) for n in (0, 1, 20, 100, 995, 1000)] == [20, 1, 2, 10, 5, 0]
    assert _plan(schedule=Schedule(first=20), horizon=7).epoch_length(0) == 7
    assert _plan(horizon=None).epoch_length(10**6) == 10**5


@given(
    first=st.integers(1, 100),
    growth=st.floats(1.001, 3.0),
    asked=st.integers(0, 10**9),
    second=st.none() | st.integers(1, 100),
)
def test_an_epoch_is_never_empty(first, growth, asked, second):
    assert Schedule(first, growth, second).length(asked) >= 1


# -- digests and storage

PLAN = _plan()
PLANS = {
    "defaults": PLAN,
    "context": _plan(domain=CONTEXT, horizon=100, name="døse"),
    "mixed": _plan(
        domain=Box(
            {"x": (0, 1), "n": Integer(0, 3), "c": Categorical(("a", "b"))}, feasible="x * n <= 2"
        ),
        kernel=Matern(2.5, 1.0),
        kernel_error=0.1,
    ),
    "ball": _plan(domain=Box({"x": (0, 1), "y": (0, 1)}, shape="ball"), encoding="fourier"),
    "hermite": _plan(features="hermite", kernel=SquaredExponential((0.4, 0.8))),
    "random": _plan(features="random", kernel_error=0.5),
    "polynomial": _plan(kernel=Polynomial(3), encoding="reward"),
    "additive": _plan(kernel=Additive.over(Matern(1.5, 0.5), 2), kernel_error=0.05),
    "candidates": _plan(decisions="candidates", exploration=Exploration(2.0, 0.0, 1)),
    "learnt": _plan(kernel=Learned.around(Matern(2.5, (0.5, 1.0)), 2.0), kernel_error=0.1),
    "learnt, additive": _plan(kernel=Learned(additive=True, shares=(0.0, 0.5, 0.75))),
    "second": _plan(schedule=Schedule(5, 1.2, second=7)),
    "warm": _plan(features=PLAN.map, prior=_prior(PLAN)),
    "joint": _plan(privacy=JOINT),
    "joint, candidates": _plan(privacy=JOINT, **CANDIDATES),
    "rewards only": _plan(privacy=REWARDS, public_decisions=True, **IN_CONTEXT),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_plan_survives_storage_with_its_digest(plan):
    data = canonical.encode(plan)
    again = canonical.decode(Plan, data)
    assert canonical.encode(again) == data
    assert again.digest == plan.digest
    x = plan.domain.spread(np.random.default_rng(0).random((5, len(plan.domain.names))))
    assert again.map(x).tobytes() == plan.map(x).tobytes()


def test_the_same_arguments_make_the_same_digest():
    given = {"kernel": Matern(2.5, 0.5), "rewards": (0, 5), "horizon": 70, "kernel_error": 0.05}
    assert _plan(**given).digest == _plan(**given).digest


def test_what_a_number_is_written_as_makes_no_other_plan():
    plain = _plan(
        horizon=100,
        kernel_error=0.5,
        rewards=(0.0, 1.0),
        schedule=Schedule(9, 2.0, 8),
        exploration=Exploration(0.3, 0.4, 64),
        signal_std=0.5,
        noise_std=2.0,
    )
    other = _plan(
        horizon=np.int64(100),
        kernel_error=np.float32(0.5),
        rewards=[0, np.float64(1)],
        expire_after=np.int32(10_000),
        max_features=np.int64(2048),
        schedule=Schedule(np.int64(9), 2, np.int32(8)),
        exploration=Exploration(np.float64(0.3), np.float64(0.4), np.int64(64)),
        signal_std=np.float32(0.5),
        noise_std=2,
    )
    assert other.digest == plain.digest


def test_every_argument_is_in_the_digest():
    changes = [
        {},
        {"domain": Box({"x": (0, 1), "z": (0, 1)})},
        {"kernel": SquaredExponential(0.3)},
        {"rewards": (0.0, 2.0)},
        {"horizon": 10},
        {"name": "other"},
        {"decisions": "candidates"},
        {"features": "hermite"},
        {"kernel_error": 1e-2},
        {"max_features": 1000},
        {"encoding": "fourier"},
        {"schedule": Schedule(7)},
        {"schedule": Schedule(7, second=7)},
        {"kernel": Learned.around(SquaredExponential(0.3), 2.0)},
        {"kernel": Learned(additive=True)},
        {"kernel": Learned(additive=True, shares=(0.0,))},
        {"exploration": Exploration(draws=3)},
        {"signal_std": 0.3},
        {"noise_std": 0.3},
        {"expire_after": 7},
        {"features": PLAN.map, "prior": _prior(PLAN)},
        {"privacy": JOINT},
        {"privacy": REWARDS},
        {"privacy": JointDP(1.0, 1e-7)},
        {"privacy": JointDP(2.0, 1e-6)},
        {"privacy": JointDP(1.0, 1e-6, rounds_per_user=2)},
        {"public_decisions": True},
    ]
    assert len({_plan(**change).digest for change in changes}) == len(changes)


def test_bytes_with_a_bad_value_are_malformed():
    data = canonical.encode(_plan(horizon=100))
    with pytest.raises(Malformed, match="horizon"):
        canonical.decode(Plan, data.replace(b'"horizon":100', b'"horizon":-5'))


def test_a_plan_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        PLAN.horizon = 5
    with pytest.raises(ValueError, match="read-only"):
        PLAN.map.terms[0] = 1


@pytest.mark.parametrize(("dimension", "asks"), [(1, 10), (6, 60), (10, 100), (20, 100)])
def test_without_privacy_a_box_of_many_coordinates_is_not_filled_for_ever(dimension, asks):
    box = Box({f"x{i}": (0, 1) for i in range(dimension)})
    assert _plan(domain=box).design_asks == asks


# -- how many directions a release has


@pytest.mark.parametrize("bad", NOT_COUNTS)
def test_directions_are_a_count(bad):
    with pytest.raises(InvalidArgument, match="directions"):
        _plan(privacy=JOINT, directions=bad)


def test_new_plans_of_many_features_have_few_directions():
    many = {"kernel": SquaredExponential(0.1), "privacy": JOINT}
    plan = _plan(**many)
    assert plan.map.dimension > 32
    assert (plan.directions, plan.most_integers) == (32, 33)
    assert "directions" not in plan.wording.arguments
    few = _plan(kernel=Linear(), privacy=JOINT)
    assert (few.directions, few.most_integers) == (None, few.map.dimension + 1)
    for other in (
        {"privacy": NonPrivate()},
        {"privacy": LocalDP(0.5, 0.1)},
        {"encoding": "fourier", "kernel": SquaredExponential(0.3)},
        {"decisions": "candidates"},
        {"confidence": "theory", "norm": 1.0, "noise_std": 0.1},
    ):
        assert _plan(**{**many, **other}).directions is None


def test_directions_are_for_releases_along_them():
    for other in ({"privacy": LocalDP(0.5, 0.1)}, {"privacy": JOINT, "encoding": "fourier"}):
        with pytest.raises(InvalidArgument, match="directions"):
            _plan(**other, directions=3)
    with pytest.raises(InvalidArgument, match="directions"):
        _plan(privacy=JOINT, directions=3, confidence="theory", norm=1.0, noise_std=0.1)
    plan = _plan(privacy=JOINT, directions=3)
    assert dataclasses.replace(plan, privacy=NonPrivate()).directions is None


def test_a_plan_from_before_directions_pays_for_one_a_feature():
    plan = _plan(kernel=SquaredExponential(0.1), privacy=JOINT)
    data = canonical.encode(plan)
    assert data.count(b'"directions":32') == 1
    old = canonical.decode(Plan, data.replace(b'"directions":32,', b""))
    m = old.map.dimension
    assert (old.directions, old.most_integers) == (None, m + 1)
    assert old.mu < plan.mu
    every = RewardEncoding.fit(old.map, Residual(np.zeros(m), 1.0), old.mu, 1.0, 100)
    assert old.allows(every)
    assert not plan.allows(every)  # noise enough, but more integers than are paid for
    assert plan.allows(dataclasses.replace(every, directions=np.eye(32, m)))
    assert not plan.allows(dataclasses.replace(every, directions=np.eye(33, m)))


# -- the local model


def test_a_plan_may_trust_nobody():
    plan = _plan(privacy=LocalDP(1.0, 1e-6))
    assert plan.is_local
    assert not _plan(privacy=JointDP(1.0, 1e-6)).is_local
    assert not _plan().is_local
    again = canonical.decode(Plan, canonical.encode(plan))
    assert (again.digest, again.privacy) == (plan.digest, LocalDP(1.0, 1e-6))


@pytest.mark.parametrize(("reports", "factor"), [(1, 1.0), (4, 0.5), (100, 0.1)])
def test_reports_of_one_person_share_the_budget_in_squares(reports, factor):
    plan = _plan(privacy=LocalDP(1.0, 1e-6, rounds_per_user=reports), encoding="reward")
    whole = LocalDP(1.0, 1e-6).cost.mu
    assert plan.mu == pytest.approx(factor * whole, rel=1e-3)  # but for finite precision
    assert plan.mu < plan.privacy.mu_per_round


def test_local_encodings_are_those_that_keep_decisions_private():
    local = {"privacy": LocalDP(1.0, 1e-6)}
    assert _plan(**local).encoding == "interval"
    assert _plan(**local, decisions="candidates").encoding == "codebook"
    with pytest.raises(InvalidArgument, match="'interval' tells the residual alone"):
        _plan(**local, decisions="candidates", encoding="interval")
    with pytest.raises(InvalidArgument, match="'announced' publishes the actions"):
        _plan(**local, decisions="candidates", encoding="announced")
    with pytest.raises(InvalidArgument, match="public_decisions"):
        _plan(**local, decisions="candidates", public_decisions=True)


def test_where_delta_is_given_away_gaussian_noise_tells_more_and_is_the_default():
    local = {"privacy": LocalDP(0.5, 0.1)}
    assert _plan(**local).encoding == "reward"
    assert _plan(**local, decisions="candidates").encoding == "fourier"
    assert _plan(**local, kernel=Linear(), decisions="candidates").encoding == "gram"


def test_without_delta_only_reports_that_are_indices_will_do():
    local = {"privacy": LocalDP(2.0, rounds_per_user=4)}
    plan = _plan(**local)
    assert (plan.encoding, plan.codewords, plan.report_epsilon) == ("interval", 1 << 14, 0.5)
    assert plan.cost == PurePrivacy(2.0)
    assert "epsilon = 2 with delta = 0" in plan.guarantee
    assert "in at most 4 reports" in plan.guarantee
    with pytest.raises(InvalidArgument, match="needs a delta"):
        _plan(**local, encoding="reward")
    with pytest.raises(InvalidArgument, match="needs a delta"):
        _plan(**local, confidence="theory", norm=1.0)
    with pytest.raises(TypeError, match="no mu"):
        plan.mu  # noqa: B018
    with pytest.raises(TypeError, match="no noise"):
        plan.encode_with  # noqa: B018
    with pytest.raises(InvalidArgument, match="epsilon"):
        _plan(privacy=LocalDP(50.0))


def test_a_plan_whose_reports_are_indices_promises_no_delta_also_where_one_was_asked_for():
    plan = _plan(privacy=LocalDP(2.0, 1e-6))
    assert plan.guarantee == _plan(privacy=LocalDP(2.0)).guarantee
    assert plan.cost.delta(2.0) == 0.0
    assert not _plan(privacy=JointDP(2.0, 1e-6)).sends_indices


@pytest.mark.parametrize("encoding", ["interval", "codebook"])
def test_indices_are_for_the_local_model(encoding):
    with pytest.raises(InvalidArgument, match="is for LocalDP"):
        _plan(privacy=JointDP(1.0, 1e-6), encoding=encoding)


def test_a_stored_plan_of_gaussian_reports_stays_one():
    """Its encoding is written in it: another default for new plans changes nothing."""
    noisy = _plan(privacy=LocalDP(1.0, 1e-6), encoding="reward")
    data = canonical.encode(noisy)
    assert b"codewords" not in data
    again = canonical.decode(Plan, data)
    assert (again.encoding, again.mu, again.sends_indices) == ("reward", noisy.mu, False)


@pytest.mark.parametrize("decisions", ["box", "candidates"])
def test_local_epochs_grow_with_the_square_of_the_noise(decisions):
    encoding = "reward" if decisions == "box" else "fourier"
    few, many = (
        _plan(privacy=LocalDP(epsilon, 1e-3), decisions=decisions, encoding=encoding)
        for epsilon in (0.2, 0.1)
    )
    assert many.design_asks == pytest.approx(few.design_asks * (few.mu / many.mu) ** 2, rel=0.02)
    joint = _plan(privacy=JointDP(0.1, 1e-3), decisions=decisions)
    assert many.design_asks > 10 * joint.design_asks
