"""One plan under other promises: what a forecast compares."""

import warnings
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace

from discreet import checks
from discreet.agreement.plan import Plan
from discreet.errors import InvalidArgument, LargeDelta, ShortHorizon
from discreet.privacy.budget import JointDP, LocalDP, NonPrivate, Privacy, Protect
from discreet.privacy.shuffled import ShuffledDP

#: What promises something.
Promise = JointDP | LocalDP | ShuffledDP


def levels_of(plan: Plan, epsilons: Iterable[float], delta: float | None) -> Sequence[Promise]:
    """The promises to compare, strongest first; what they protect, and from whom, is the plan's."""
    words = "a sequence of positive numbers"
    if isinstance(epsilons, str) or not isinstance(epsilons, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument("epsilons", words)
    wanted = sorted({checks.number("epsilons", epsilon, above=0.0) for epsilon in epsilons})
    given = plan.privacy
    if not isinstance(given, NonPrivate):
        delta = given.delta if delta is None else delta
        return [replace(given, epsilon=epsilon, delta=delta) for epsilon in wanted]
    if wanted and delta is None:
        raise InvalidArgument("delta", "a probability: a plan without privacy has none")
    protect: Protect = "rewards" if plan.public_decisions else "decisions"
    return [JointDP(epsilon, delta or 0.0, protect) for epsilon in wanted]


def under(plan: Plan, privacy: Privacy, rounds: int) -> Plan:
    """The same plan under other privacy; what is left to defaults follows it.

    >>> from discreet.domain.box import Box
    >>> plan = Plan(domain=Box({"dose": (0, 10)}), privacy=JointDP(8.0, 1e-6), horizon=600)
    >>> under(plan, JointDP(1.0, 1e-6), 600).schedule.first > plan.schedule.first
    True
    """
    joint = isinstance(privacy, JointDP)
    independent = {} if joint else dict.fromkeys(("noise", "confidence", "norm"))
    with quiet():
        default = replace(
            plan,
            schedule=None,
            exploration=None,
            encoding="auto",
            looks=None,
            buffers=None,
            codewords=None,
        )
        indices = plan.sends_indices and not isinstance(privacy, NonPrivate)
        return replace(
            plan,
            **independent,
            buffers=None if default.buffers == plan.buffers or not joint else plan.buffers,
            privacy=privacy,
            horizon=rounds,
            schedule=None if default.schedule == plan.schedule else plan.schedule,
            exploration=None if default.exploration == plan.exploration else plan.exploration,
            encoding="auto" if default.encoding == plan.encoding else plan.encoding,
            looks=None if default.looks == plan.looks or not joint else plan.looks,
            codewords=plan.codewords if indices and default.codewords != plan.codewords else None,
        )


def rounds_of(plan: Plan, rounds: int | None) -> int:
    """How many rounds the study has: those given, or its horizon."""
    wanted = plan.horizon if rounds is None else rounds
    if wanted is None:
        raise InvalidArgument("rounds", "a whole number: the plan has no horizon")
    return checks.count("rounds", wanted)


@contextmanager
def quiet() -> Generator[None]:
    """The plan itself has warned; of a large delta and of too few people a forecast speaks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LargeDelta)
        warnings.simplefilter("ignore", ShortHorizon)
        yield
