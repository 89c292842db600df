"""Budgets: the exact accounting of dp-accounting, the errata's figures, and what is refused."""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.agreement.plan import Plan
from discreet.domain.box import Box
from discreet.errors import InvalidArgument, LargeDelta
from discreet.privacy.budget import JointDP, LocalDP, NonPrivate, Simulation
from discreet.privacy.cost import GaussianPrivacy, PurePrivacy, compose

RNG = np.random.default_rng(0)
GRID = [
    (float(epsilon), float(delta))
    for epsilon, delta in zip(
        10 ** RNG.uniform(-2, 1.5, 200), 10 ** RNG.uniform(-12, -0.05, 200), strict=True
    )
    if delta <= epsilon
]
#: epsilon, delta, mu*, sigma_min for 11 and 14 nodes (errata, section 1).
ERRATA = [
    (0.1, 0.01, 0.1048, 63.3, 71.4),
    (0.1, 0.1, 0.3513, 18.9, 21.3),
    (1, 0.01, 0.5325, 12.5, 14.1),
    (1, 0.1, 0.9209, 7.20, 8.13),
    (10, 0.01, 2.856, 2.32, 2.62),
    (10, 0.1, 3.548, 1.87, 2.11),
]


def event_of(cost):
    """The same cost as an event of the dp-accounting package."""
    return dp_accounting.GaussianDpEvent(noise_multiplier=1.0 / cost.mu)


def test_mu_is_that_of_dp_accounting_over_a_random_grid():
    assert len(GRID) > 150
    worst = 0.0
    for epsilon, delta in GRID:
        sigma = dp_accounting.get_sigma_gaussian(epsilon, delta, tol=1e-14)
        worst = max(worst, abs(GaussianPrivacy.of(epsilon, delta).mu * sigma - 1.0))
    print(f"largest relative difference of mu: {worst:.1e}")
    assert worst < 1e-6


def test_epsilon_is_that_of_dp_accounting_over_a_random_grid():
    for mu, delta in zip(
        10 ** RNG.uniform(-2, 1, 100), 10 ** RNG.uniform(-12, -0.5, 100), strict=True
    ):
        theirs = dp_accounting.get_epsilon_gaussian(1.0 / mu, delta, tol=1e-14)
        ours = GaussianPrivacy(float(mu)).epsilon(float(delta))
        assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-6)


def test_delta_is_that_of_dp_accounting_over_a_random_grid():
    for mu, epsilon in zip(10 ** RNG.uniform(-1, 1, 100), RNG.uniform(0, 20, 100), strict=True):
        theirs = GaussianPrivacyLoss(1.0 / mu).get_delta_for_epsilon(float(epsilon))
        ours = GaussianPrivacy(float(mu)).delta(float(epsilon))
        assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("epsilon", "delta", "mu", "short", "long"), ERRATA)
def test_the_figures_of_the_errata_are_reproduced(epsilon, delta, mu, short, long):
    found = GaussianPrivacy.of(epsilon, delta).mu
    assert found == pytest.approx(mu, rel=5e-4)
    assert f"{2 * math.sqrt(11) / found:.3g}" == f"{short:.3g}"
    assert f"{2 * math.sqrt(14) / found:.3g}" == f"{long:.3g}"


@settings(deadline=None)
@given(epsilon=st.floats(1e-3, 100), exponent=st.floats(-300, -0.01))
def test_epsilon_and_delta_come_back_from_mu(epsilon, exponent):
    delta = min(10.0**exponent, epsilon)
    cost = GaussianPrivacy.of(epsilon, delta)
    assert cost.epsilon(delta) == pytest.approx(epsilon, rel=1e-8)
    assert cost.delta(epsilon) == pytest.approx(delta, rel=1e-6)


@settings(deadline=None)
@given(mu=st.floats(1e-3, 50), epsilon=st.floats(0, 50), step=st.floats(1e-6, 10))
def test_delta_falls_with_epsilon_and_grows_with_mu(mu, epsilon, step):
    delta = GaussianPrivacy(mu).delta(epsilon)
    assert 0.0 <= delta <= 1.0
    assert GaussianPrivacy(mu).delta(epsilon + step) <= delta + 1e-15
    assert GaussianPrivacy(mu + step).delta(epsilon) >= delta - 1e-15


def test_no_epsilon_is_needed_where_delta_covers_everything():
    assert GaussianPrivacy(0.1).epsilon(0.5) == 0.0


@pytest.mark.parametrize("kind", [JointDP, LocalDP])
@pytest.mark.parametrize(
    ("epsilon", "delta", "argument"),
    [
        *((bad, 1e-6, "epsilon") for bad in (math.nan, math.inf, 0.0, -1.0, "1", None, True)),
        *((1.0, bad, "delta") for bad in (math.nan, math.inf, -1e-6, 1.0, 1.5, True, False)),
        (1e-6, 0.5, "delta"),  # swapped
        (5.0, 1.0, "delta"),
    ],
)
def test_parameters_that_promise_nothing_are_refused_by_name(kind, epsilon, delta, argument):
    with pytest.raises(InvalidArgument) as caught:
        kind(epsilon=epsilon, delta=delta)
    assert caught.value.argument == argument


@pytest.mark.parametrize("delta", [0.0, None])
def test_without_delta_a_joint_promise_is_refused_and_a_local_one_is_pure(delta):
    with pytest.raises(InvalidArgument) as caught:
        JointDP(epsilon=1.0, delta=delta)
    assert caught.value.argument == "delta"
    assert LocalDP(epsilon=1.0, delta=delta) == LocalDP(epsilon=1.0)
    assert LocalDP(epsilon=1.0).cost == PurePrivacy(1.0)


def test_swapped_parameters_are_told_so():
    with pytest.raises(InvalidArgument, match="swapped"):
        JointDP(epsilon=1e-6, delta=0.5)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, None, "2"])
def test_rounds_per_user_are_a_count(bad):
    with pytest.raises(InvalidArgument, match="rounds_per_user"):
        JointDP(1.0, 1e-6, rounds_per_user=bad)


@pytest.mark.parametrize("bad", ["", "actions", None, 1])
def test_what_is_protected_is_decisions_or_rewards(bad):
    with pytest.raises(InvalidArgument, match="protect"):
        JointDP(1.0, 1e-6, protect=bad)


@pytest.mark.parametrize("mu", [0.0, -1.0, math.nan, math.inf])
def test_a_cost_is_positive_and_finite(mu):
    with pytest.raises(InvalidArgument, match="mu"):
        GaussianPrivacy(mu)


@pytest.mark.parametrize("epsilon", [1e-10, 1e-6, 1e4, 1e8])
@pytest.mark.parametrize("delta", [1e-300, 1e-12])
def test_extreme_budgets_have_a_mu(epsilon, delta):
    cost = JointDP(epsilon, delta).cost
    assert cost.mu > 0
    assert cost.delta(epsilon) == pytest.approx(delta, rel=1e-3)


@pytest.mark.parametrize("rounds", [1, 2, 7])
def test_rounds_share_the_mu_of_a_person(rounds):
    privacy = JointDP(1.0, 1e-6, rounds_per_user=rounds)
    assert privacy.mu_per_round * rounds == pytest.approx(privacy.cost.mu, rel=1e-12)
    assert privacy.cost.mu == JointDP(1.0, 1e-6).cost.mu


def test_a_plan_spends_no_more_than_was_promised():
    privacy = JointDP(1.0, 1e-6, rounds_per_user=3)
    plan = Plan(domain=Box({"x": (0, 1)}), privacy=privacy)
    assert plan.mu < privacy.mu_per_round
    assert plan.mu == pytest.approx(privacy.mu_per_round, rel=1e-4)
    assert Plan(domain=Box({"x": (0, 1)}), privacy=NonPrivate()).mu is None


@pytest.mark.parametrize(("delta", "horizon", "warns"), [(0.01, 101, True), (0.01, 100, False)])
def test_a_delta_that_would_publish_someone_is_warned_about(delta, horizon, warns, recwarn):
    def make():
        return Plan(domain=Box({"x": (0, 1)}), privacy=JointDP(1.0, delta), horizon=horizon)

    if warns:
        with pytest.warns(LargeDelta, match="publishing"):
            make()
    else:
        make()
        assert not [each for each in recwarn.list if each.category is LargeDelta]


def test_an_unknown_horizon_gives_no_warning(recwarn):
    Plan(domain=Box({"x": (0, 1)}), privacy=JointDP(1.0, 0.5))
    assert not recwarn.list


@pytest.mark.parametrize("protect", ["decisions", "rewards"])
def test_the_guarantee_says_everything_a_board_asks(protect):
    privacy = JointDP(0.7, 2e-6, protect=protect, rounds_per_user=3)
    text = privacy.guarantee
    for words in (
        "epsilon = 0.7",
        "delta = 2e-06",
        f"mu = {privacy.cost.mu:.4g}",
        "Unit: one person, in at most 3 rounds",
        "Replace them by anything",  # adjacency
        "e^0.7",
        "Public:",
        "Assumed:",
        "Not covered:",
    ):
        assert words in text
    assert ("declared public" in text) == (protect == "rewards")
    assert ("decision set, context and reward" in text) == (protect == "decisions")


def test_no_privacy_says_so():
    assert "No privacy" in NonPrivate().guarantee


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-5), (1.0, 1e-6), (4.0, 1e-3)])
def test_the_event_costs_the_same_in_other_accountants(epsilon, delta):
    """PLD rounds losses to 1e-4 and is exact but for that; RDP is an upper bound."""
    cost = JointDP(epsilon, delta).cost
    exact, above = pld.PLDAccountant(), rdp.RdpAccountant()
    for accountant in (exact, above):
        accountant.compose(event_of(cost))
    assert exact.get_epsilon(delta) == pytest.approx(epsilon, abs=1e-3)
    assert epsilon <= above.get_epsilon(delta) <= 1.5 * epsilon


def test_four_rounds_composed_cost_what_twice_the_mu_costs():
    cost = GaussianPrivacy(0.3)
    accountant = pld.PLDAccountant()
    accountant.compose(dp_accounting.SelfComposedDpEvent(event_of(cost), 4))
    assert accountant.get_epsilon(1e-5) == pytest.approx(
        GaussianPrivacy(0.6).epsilon(1e-5), abs=2e-3
    )


@pytest.mark.parametrize("mus", [(0.3, 0.5), (0.2367, 0.8379, 1.3), (2.0, 3.0, 0.5)])
@pytest.mark.parametrize("slack", [0.0, 1e-13])
def test_studies_cost_together_what_dp_accounting_says(mus, slack):
    """Its losses are rounded to 1e-4, which its dots between them make up for."""
    accountant = pld.PLDAccountant()
    accountant.compose(dp_accounting.ComposedDpEvent([event_of(GaussianPrivacy(mu)) for mu in mus]))
    cost = compose(GaussianPrivacy(mu, slack) for mu in mus)
    for delta in (1e-3, 1e-5, 1e-6):
        epsilon = cost.epsilon(delta)
        if math.isinf(epsilon):
            assert delta < cost.least_delta
            continue
        left = delta - len(mus) * slack * (1 + math.exp(epsilon))
        assert epsilon == pytest.approx(accountant.get_epsilon(left), abs=1e-6)
        assert cost.delta(epsilon) == pytest.approx(delta, rel=1e-9)


def test_the_order_and_grouping_of_studies_do_not_matter():
    one, two, three = (GaussianPrivacy(mu, mu * 1e-12) for mu in (0.3, 1.0, 2.0))
    whole, grouped = compose([one, two, three]), compose([three, compose([two, one])])
    assert (whole.mu, whole.slack) == pytest.approx((grouped.mu, grouped.slack), rel=1e-14)
    assert compose([two]) == two


def test_one_study_without_a_guarantee_leaves_none_for_all():
    assert compose([GaussianPrivacy(1.0), None]) is None
    with pytest.raises(InvalidArgument, match="costs"):
        compose([])


@settings(deadline=None)
@given(
    mu=st.floats(1e-2, 30),
    exponent=st.floats(-18, -1),
    epsilon=st.floats(0, 60),
    step=st.floats(0, 9),
)
def test_slack_is_added_and_a_larger_epsilon_never_needs_more(mu, exponent, epsilon, step):
    real, ideal = GaussianPrivacy(mu, 10.0**exponent), GaussianPrivacy(mu)
    assert real.delta(epsilon + step) <= real.delta(epsilon) <= 1.0
    assert ideal.delta(epsilon) <= real.delta(epsilon)
    assert real.least_delta <= real.delta(epsilon)
    delta = min(1.0, real.least_delta * (1 + step))
    assert ideal.epsilon(delta) <= real.epsilon(delta) * (1 + 1e-9) < math.inf
    assert real.epsilon(real.least_delta * 0.99) == math.inf


def test_a_slack_that_takes_all_of_delta_leaves_no_mu():
    with pytest.raises(InvalidArgument, match="slack"):
        GaussianPrivacy.of(1.0, 1e-6, slack=1e-6)


@pytest.mark.parametrize("slack", [-1e-9, math.nan, math.inf, "0"])
def test_slack_is_a_number_that_is_not_negative(slack):
    with pytest.raises(InvalidArgument, match="slack"):
        GaussianPrivacy(1.0, slack)


@pytest.mark.parametrize("seed", [None, 1.5, "7", True])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InvalidArgument, match="seed"):
        Simulation(seed)


def test_the_local_guarantee_says_all_a_review_board_asks():
    privacy = LocalDP(0.7, 2e-6, rounds_per_user=3)
    text = privacy.guarantee
    for words in (
        "Local differential privacy, epsilon = 0.7 at delta = 2e-06",
        f"mu = {privacy.cost.mu:.4g}",
        "Unit: one person, in at most 3 reports",
        "decision set, context and reward",
        "Replace them by anything",
        "whoever looks",
        "Public:",
        "Assumed:",
        "Not covered:",
    ):
        assert words in text
    assert "at most 1 report;" in LocalDP(1.0, 1e-6).guarantee


def test_reports_composed_cost_what_is_promised():
    privacy = LocalDP(1.0, 1e-5, rounds_per_user=4)
    accountant = pld.PLDAccountant()
    event = event_of(GaussianPrivacy(privacy.mu_per_round))
    accountant.compose(dp_accounting.SelfComposedDpEvent(event, 4))
    assert accountant.get_epsilon(1e-5) == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2"])
def test_reports_per_person_are_counted(bad):
    with pytest.raises(InvalidArgument, match="rounds_per_user"):
        LocalDP(1.0, 1e-6, rounds_per_user=bad)
