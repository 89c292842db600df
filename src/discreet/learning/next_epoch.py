"""(plan, belief) -> the next epoch; (belief, epoch, release) -> the next belief.

Opening an epoch is a pure function: what looks random in it (the design of the first epoch,
the posterior draws) comes from a generator keyed by public digests, so anyone can check it.
"""

import hashlib
from dataclasses import replace

import numpy as np

from discreet.agreement import beginning
from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.agreement.schedule import Exploration
from discreet.arrays import Floats
from discreet.errors import InvalidArgument, StudyEnded
from discreet.learning.belief import Belief
from discreet.learning.book_belief import BookBelief
from discreet.learning.caution import is_cautious, is_surely_better
from discreet.learning.elimination import Remaining
from discreet.learning.epoch import Epoch
from discreet.learning.local_prefix import ReportSums
from discreet.learning.personal_belief import PersonalBelief
from discreet.learning.policy import Policy, packed
from discreet.learning.posterior import Posterior
from discreet.learning.prefix_belief import PrefixBelief
from discreet.learning.report_belief import MenuBelief
from discreet.learning.search import Score, maximise, spread
from discreet.privacy.book import book_seed
from discreet.privacy.codebook import CodebookEncoding
from discreet.threads import one_thread

Believed = Belief | PrefixBelief | ReportSums | Remaining
#: How many different actions an epoch that fills the domain has at most.
DESIGN = 512


@one_thread
def believed_before(plan: Plan) -> Believed:
    """What is believed before any release."""
    if plan.eliminates:
        return Remaining.before(plan)
    if plan.confidence == "theory" and plan.is_local:
        return ReportSums.before(plan)
    return learner(plan) if plan.stream is None else PrefixBelief.before(plan)


def learner(plan: Plan) -> Belief:
    """What a study with independent noise believes before any release."""
    if plan.sends_indices:
        return MenuBelief.before(plan) if plan.encoding == "interval" else BookBelief.before(plan)
    return PersonalBelief.before(plan) if plan.is_directed else Belief.before(plan)


@one_thread
def open_epoch(plan: Plan, belief: Believed, *, number: int, first: int, previous: str) -> Epoch:
    """The epoch that follows the release `previous`, after `first` asks."""
    length = plan.epoch_length(first)
    if length < 1:
        raise StudyEnded("the horizon is reached: there is no further epoch")
    policy = _policy(plan, belief, first=first, length=length, key=previous)
    if plan.is_shuffled and plan.decisions == "box":
        policy = policy.merged(length)
    encoding = belief.encoding_for(first, length, policy)
    if isinstance(encoding, CodebookEncoding):  # a fresh book for every epoch
        encoding = replace(encoding, seed=book_seed(plan.digest, previous))
    return Epoch(
        number=number,
        first=first,
        length=length,
        plan=plan.digest,
        previous=previous,
        encoding=encoding,
        policy=policy,
    )


@one_thread
def learn(plan: Plan, belief: Believed, epoch: Epoch, release: Release) -> Believed:
    """What is believed after a release of this epoch."""
    if release.epoch != epoch.digest:
        raise InvalidArgument("release", "a release of this epoch")
    if release.asks > epoch.length:
        raise InvalidArgument("release", f"at most {epoch.length} asks", release.asks)
    if release.integers.size != epoch.encoding.size(plan.map):
        raise InvalidArgument("release", f"{epoch.encoding.size(plan.map)} integers")
    if (release.reports is None) == plan.is_local:
        raise InvalidArgument("release", "a number of reports, in the local model and in no other")
    return belief.after(epoch, release)


def _policy(plan: Plan, belief: Believed, *, first: int, length: int, key: str) -> Policy:
    """At first an even design, or draws from the prior; then the exploration of the plan.

    A study that is cautious gives first actions again where nothing is surely better.
    """
    if isinstance(belief, Remaining):
        return belief.policy_for(length)
    rng = _public_generator(plan.digest, key)
    if plan.is_design(first) and (plan.decisions == "box" or plan.designs_for_people):
        return _design(plan, length, rng)
    learnt = _learnt(plan, belief, first, length, rng)
    if isinstance(belief, Belief) and is_cautious(plan):
        again = _design(plan, length, rng)
        return learnt if is_surely_better(plan, belief, learnt, again) else again
    return learnt


@one_thread
def holds_back(plan: Plan, belief: Believed, *, first: int, previous: str) -> bool:
    """Whether the epoch after `first` asks would give out first actions, nothing being surer."""
    if plan.is_design(first) or not isinstance(belief, Belief) or not is_cautious(plan):
        return False
    rng, length = _public_generator(plan.digest, previous), plan.epoch_length(first)
    if length < 1:  # over: what it learnt is judged as if it were played to more, without trying
        first, length = first - 1, DESIGN
    learnt = _learnt(plan, belief, first, length, rng)
    return not is_surely_better(plan, belief, learnt, _design(plan, length, rng))


def _design(plan: Plan, length: int, rng: np.random.Generator) -> Policy:
    """First actions, given out in turn whoever comes."""
    return menu_only(plan, _first_actions(plan, spread(plan.domain, min(DESIGN, length), rng)))


def _learnt(
    plan: Plan, belief: Believed, first: int, length: int, rng: np.random.Generator
) -> Policy:
    """Draws around what is believed of f, by which the best action is sought."""
    posterior, design = belief.posterior, plan.is_design(first)
    exploration = Exploration(0.0, 1.0, DESIGN) if design else belief.exploration
    draws, mean = min(exploration.draws, length), served_by(belief).coefficients
    normals = rng.standard_normal((draws, plan.map.dimension))
    no_menu = np.zeros((0, plan.domain.dimension))
    if exploration.foresight and plan.horizon is not None and isinstance(belief, Belief):
        left = plan.horizon - first
        everywhere = menu_only(plan, spread(plan.domain, min(DESIGN, length), rng))
        # Who comes after the epoch gains by what it tries, and nobody in it does.
        change = max(0.0, 1.0 - length / left) * belief.tellable(left, everywhere)
        tilts = mean + exploration.sampling * normals @ change
        if exploration.bold is not None:
            bold = exploration.bold_of(draws)
            tilts[draws - bold :] = mean
            return Policy(tilts, packed(change), exploration.bold, no_menu, bold_scores=bold)
    else:
        tilts = mean + exploration.sampling * (posterior.draws(normals) - posterior.coefficients)
    if plan.decisions == "box":
        score = Score(plan.map, posterior.whitening, exploration.optimism)
        return menu_only(plan, maximise(score, plan.domain, tilts))
    return Policy(tilts, packed(posterior.whitening), exploration.optimism, no_menu)


def served_by(belief: Believed) -> Posterior:
    """What is believed of f: the Gaussian that recommendations and intervals are of."""
    return belief.weighed if isinstance(belief, Belief) else belief.posterior


def margins(belief: Believed, points: Floats) -> Floats:
    """Half the width of the 95% interval of f at each scaled point, in half-widths of rewards."""
    variances = served_by(belief).variance(points)
    if isinstance(belief, Belief):
        variances = variances + belief.left_out(points)
    return np.array([belief.margin(std) for std in np.sqrt(variances).tolist()])


def _first_actions(plan: Plan, spread_out: Floats) -> Floats:
    """What fills the domain, or what the plan begins with."""
    if plan.explore is None and plan.start is None:
        return spread_out
    actions = beginning.design(plan.domain, plan.explore, plan.start, spread_out)
    if plan.decisions == "context":
        return actions  # which of them a person may have depends on their context
    admitted = actions[plan.domain.admits(actions)]
    if not len(admitted):
        raise InvalidArgument("explore", f"some action that satisfies {plan.domain.feasible!r}")
    return admitted


def menu_only(plan: Plan, menu: Floats) -> Policy:
    """The policy that gives out these scaled actions in turn."""
    return Policy(np.zeros((0, plan.map.dimension)), np.zeros(0), 0.0, menu)


def _public_generator(*digests: str) -> np.random.Generator:
    key = hashlib.sha256("".join(digests).encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(key[:16], "big")))
