"""Do no harm: when what was learnt is played instead of first actions.

The best action by a belief that is mostly noise is no better than any other, and often worse: it
lies at the ends of ranges. So a private study goes on with first actions until the policy it learnt
is surely better than these, by

    needed / horizon        standard deviations,

`needed` the asks that its first epochs would take without a horizon. A study that is long against
them hardly waits; one that is too short for its noise plays first actions until the end, and says
so. All of it is public.
"""

from functools import lru_cache

from discreet.agreement.plan import Plan
from discreet.agreement.schedule import PERSONAL_ASKS, joint_schedule
from discreet.learning.belief import Belief
from discreet.learning.policy import Policy
from discreet.privacy.budget import JointDP


def is_cautious(plan: Plan) -> bool:
    """Whether a plan's first actions are played until something is surely better."""
    has_first = plan.decisions == "box" or (plan.decisions == "context" and plan.is_directed)
    private = isinstance(plan.privacy, JointDP) and plan.stream is None and not plan.eliminates
    return has_first and private and plan.horizon is not None and plan.prior is None


def is_surely_better(plan: Plan, belief: Belief, learnt: Policy, first: Policy) -> bool:
    """Whether what was learnt may be played."""
    return belief.advantage(learnt, first) >= _needed(plan) / (plan.horizon or 1)


@lru_cache(maxsize=8)
def _needed(plan: Plan) -> float:
    mu = plan.mu or 1.0
    if plan.is_directed:
        return sum(PERSONAL_ASKS) / min(mu, 1.0)
    usual = joint_schedule(mu, plan.domain, plan.map, box=True, again=plan.looks_again)
    return usual.first + (usual.second or 0)
