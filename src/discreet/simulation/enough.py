"""Are my people enough, to tell them apart or for one action for all, and at which epsilon?

Answered from the plan alone, in seconds: no study is simulated. A release explains half of the
function when its signal exceeds its noise (`rounds_to_signal`). With so many people, or with
`SHARED` times as many where releases share them, what a study recommends falls short by about a
third of what an action by chance does; with more people, by less.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from discreet.agreement.plan import Plan
from discreet.errors import InvalidArgument
from discreet.learning.caution import is_cautious
from discreet.learning.next_epoch import learner
from discreet.privacy.budget import JointDP, NonPrivate
from discreet.privacy.shuffled import ShuffledDP
from discreet.simulation.enough_report import Enough, Goal, Need
from discreet.simulation.forecast import HALF, foreseen
from discreet.simulation.levels import Promise, levels_of, rounds_of, under
from discreet.simulation.without_contexts import sets_aside, without_contexts
from discreet.threads import one_thread

#: Over the whole box a custodian divides few people over many releases, each with all the noise.
#: Simulated at epsilon = 0.8 (40 to 60 functions), with the people of one release that explains
#: half, best() falls short by 58% to 76% of what chance does, with twice as many by 42% to 59%.
#: Four times as many were tried on 6 to 12 functions alone: 6% to 33%, with errors of up to 16%.
#: Elsewhere once as many do: 14% with contexts (16 functions), 27% with candidates (12), 25%, 38%
#: for reports over the box that are local (40) and shuffled (24).
SHARED = 4
#: Beyond so many people, or ten times those of the study, nobody counts.
LIMIT = 100_000
#: Numbers of people are found to one part in so many: they are said to two digits.
PARTS = 32
#: Levels that are looked through for one at which the people are enough.
LADDER = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)


@one_thread
def enough(
    plan: Plan,
    epsilons: Iterable[float] = (0.1, 1.0, 10.0),
    *,
    delta: float | None = None,
    rounds: int | None = None,
) -> Enough:
    """How many people each epsilon takes, and what those of the study are enough for.

        needed = s min { n : one release of n spread-out asks explains half of f }

    with s = 4 where a custodian releases over the whole box and 1 elsewhere (`SHARED`). This is
    for the plan as it is and, where people bring contexts, for the same plan without them
    (`without_contexts`): everyone then gets the same action. Who can be told apart can also be
    given one action for all, so that never takes more. `delta` is the plan's unless given;
    `rounds` its horizon. Nobody's data is used.

    >>> from discreet.domain.box import Box
    >>> box = Box({"dose": (0, 10), "age": (18, 90)}, context=["age"])
    >>> found = enough(Plan(domain=box, privacy=JointDP(1.0, 1e-6), horizon=600), [0.5, 8])
    >>> strong, weak = found.needs
    >>> weak.as_planned < strong.as_planned, strong.without_contexts < strong.as_planned
    (True, True)
    """
    if not isinstance(plan, Plan):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument("plan", "a Plan")
    length = rounds_of(plan, rounds)
    promises = levels_of(plan, epsilons, delta)
    alone, limit = without_contexts(plan), max(LIMIT, 10 * length)
    planned = [_needed(plan, each, length, limit) for each in (*promises, NonPrivate())]
    common = [
        None if alone is None else _needed_at_most(needed, alone, each, length, limit)
        for each, needed in zip((*promises, NonPrivate()), planned, strict=True)
    ]
    *needs, not_private = [
        Need(None if isinstance(each, NonPrivate) else each.epsilon, needed, fewer)
        for each, needed, fewer in zip((*promises, NonPrivate()), planned, common, strict=True)
    ]
    of_plan = [need.as_planned for need in needs]
    of_alone = [need.without_contexts for need in needs]
    return Enough(
        rounds=length,
        limit=limit,
        goal=_goal(plan, promises),
        needs=tuple(needs),
        not_private=not_private,
        epsilon_as_planned=_epsilon(plan, promises, of_plan, length),
        epsilon_without_contexts=_epsilon(alone, promises, of_alone, length),
    )


def people_needed(plan: Plan, rounds: int, limit: int) -> int | None:
    """How many people a study of this plan takes, to one in 32; None beyond `limit`.

    The search begins at `rounds`: more people under the same noise never tell less.
    """
    before, times = learner(plan), shares_of(plan)
    most = limit // times
    if plan.correlated is not None:  # its noise is made for so many releases and no more
        most = rounds // times
    too_few, found = 0, max(1, min(rounds // times, most))
    while foreseen(plan, before, found) < HALF:
        if found >= most:
            return None
        too_few, found = found, min(2 * found, most)
    while found - too_few > max(1, found // PARTS):
        middle = (too_few + found) // 2
        if foreseen(plan, before, middle) < HALF:
            too_few = middle
        else:
            found = middle
    least = plan.privacy.minimum if isinstance(plan.privacy, ShuffledDP) else 1
    return max(times * found, least)


def shares_of(plan: Plan) -> int:
    """How many times the people of one release a study takes."""
    over_box = plan.decisions == "box" and isinstance(plan.privacy, JointDP)
    return SHARED if over_box and plan.stream is None else 1


def _needed(plan: Plan, privacy: Promise | NonPrivate, rounds: int, limit: int) -> int | None:
    return people_needed(under(plan, privacy, rounds), rounds, limit)


def _needed_at_most(
    most: int | None, plan: Plan, privacy: Promise | NonPrivate, rounds: int, limit: int
) -> int | None:
    """As `_needed`, of a plan that is never worse than one which takes `most`."""
    try:
        found = _needed(plan, privacy, rounds, limit)
    except InvalidArgument:  # finite precision cannot certify every epsilon for every encoding
        return most
    return found if most is None or (found is not None and found < most) else most


def _epsilon(
    plan: Plan | None, promises: Iterable[Promise], needed: list[int | None], rounds: int
) -> float | None:
    """The strongest level that is enough: one of those given, or of the ladder between them."""
    pairs = list(zip(promises, needed, strict=True))
    if plan is None or not pairs:
        return None
    short = [promise for promise, count in pairs if count is None or count > rounds]
    if not short:
        return pairs[0][0].epsilon
    wide = [each.epsilon for each, _ in pairs if each.epsilon > short[-1].epsilon]
    between = [level for level in LADDER if short[-1].epsilon < level < min(wide, default=1e9)]
    suffices = partial(_suffices, plan, short[-1], rounds)
    return _first([*between, *wide[:1]], suffices)


def _first(levels: list[float], suffices: Callable[[float], bool]) -> float | None:
    """The first of ascending levels that suffices, as all after it do; by bisection."""
    low, high = 0, len(levels)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(levels[middle]) else (middle + 1, high)
    return levels[low] if low < len(levels) else None


def _suffices(plan: Plan, promise: Promise, rounds: int, epsilon: float) -> bool:
    try:
        given = under(plan, replace(promise, epsilon=epsilon), rounds)
    except InvalidArgument:  # as above
        return False
    return foreseen(given, learner(given), max(1, rounds // shares_of(given))) >= HALF


def _goal(plan: Plan, promises: Iterable[Promise]) -> Goal:
    return Goal(
        decisions=plan.decisions or "box",
        actions=plan.domain.free,
        contexts=plan.domain.context if plan.decisions == "context" else (),
        begins=plan.explore is not None or plan.start is not None,
        holds_back=is_cautious(plan),
        rule=sets_aside(plan.domain),
        visits=max((each.rounds_per_user for each in promises), default=1),
    )
