"""The same plan for people who are not told apart: everyone gets the same action."""

import ast
from dataclasses import replace
from typing import cast

from discreet.agreement.plan import Plan
from discreet.domain.box import Box
from discreet.features.kernels import Additive, Kernel, Learned, Part, Product, Structured
from discreet.features.simple_kernels import Simple, Stationary
from discreet.simulation.levels import quiet


def without_contexts(plan: Plan) -> Plan | None:
    """A plan over the coordinates that are ours to choose, alone; None where there is none.

        f(action, context)  becomes  f(action)

    as smooth in the action as before, and as large. What the author left open is left open.
    There is none without contexts, with people who bring candidates, with a prior (it is about the
    whole domain), and where a theorem is about the plan as it is.

    >>> from discreet.privacy.budget import JointDP
    >>> box = Box({"dose": (0, 10), "age": (18, 90)}, context=["age"])
    >>> alone = without_contexts(Plan(domain=box, privacy=JointDP(1.0, 1e-6), horizon=600))
    >>> alone.domain.names, alone.decisions, alone.horizon
    (('dose',), 'box', 600)
    """
    whole = plan.domain
    bound = plan.prior is not None or plan.confidence is not None or plan.eliminates
    if plan.decisions != "context" or not whole.free or bound:
        return None
    kernel = Structured() if _left_open(plan) else restricted(plan.kernel, whole.free_columns)
    if kernel is None:
        return None
    rule = whole.feasible if sets_aside(whole) is None else None
    with quiet():
        return Plan(
            domain=Box(
                {name: whole.coordinate(name) for name in whole.free},
                feasible=rule,
                shape=whole.shape,
            ),
            privacy=plan.privacy,
            kernel=kernel,
            rewards=plan.rewards,
            horizon=plan.horizon,
            name=plan.name,
            kernel_error=plan.kernel_error,
            max_features=plan.max_features,
            signal_std=plan.signal_std,
            noise_std=plan.noise_std,
            expire_after=plan.expire_after,
            public_decisions=plan.public_decisions,
            explore=plan.explore,
            start=plan.start,
        )


def sets_aside(domain: Box) -> str | None:
    """The rule that cannot be asked of an action alone: it is about contexts, too.

    >>> box = Box({"dose": (0, 9), "age": (0, 99)}, context=["age"], feasible="dose * age < 700")
    >>> sets_aside(box)
    'dose * age < 700'
    """
    if domain.feasible is None:
        return None
    nodes = ast.walk(ast.parse(domain.feasible.strip(), mode="eval"))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return domain.feasible if names & set(domain.context) else None


def restricted(kernel: Kernel, columns: tuple[int, ...]) -> Kernel | None:
    """The kernel of f over these columns alone, the others held; None if f does not depend on them.

    >>> from discreet.features.simple_kernels import SquaredExponential
    >>> kernel = Product.over({0: SquaredExponential(0.3), 1: SquaredExponential(0.9)})
    >>> restricted(kernel, (1,)).factors
    (KernelFactor(kernel=SquaredExponential(lengthscale=0.9), columns=(0,)),)
    >>> restricted(SquaredExponential((0.3, 0.9)), (1,))
    SquaredExponential(lengthscale=(0.9,))
    """
    if isinstance(kernel, Structured):
        return Structured()  # a plan fills its categories in
    if isinstance(kernel, Learned):
        if kernel.additive:
            return kernel
        options = tuple(cast(Stationary, _simple(each, columns)) for each in kernel.options)
        return replace(kernel, options=options)
    if isinstance(kernel, Additive):
        parts: list[Part] = []
        for part in kernel.parts:
            if kept := _kept(part.places, columns):
                own = _simple(part.kernel, _within(part.places, columns))
                parts.append(replace(part, kernel=own, columns=kept))
        return Additive(tuple(parts)) if parts else None
    if isinstance(kernel, Product):
        factors = [
            replace(
                factor,
                kernel=_simple(factor.kernel, _within(factor.places, columns)),
                columns=_kept(factor.places, columns),
            )
            for factor in kernel.factors
            if _kept(factor.places, columns)
        ]
        return Product(tuple(factors)) if factors else None
    return _simple(kernel, columns)


def _left_open(plan: Plan) -> bool:
    """Whether the author named no kernel. Of a plan that was read back nobody knows."""
    return plan.wording is not None and "kernel" not in plan.wording.arguments


def _simple(kernel: Simple, columns: tuple[int, ...]) -> Simple:
    """With the lengthscales of some of its columns, where each has its own."""
    if isinstance(kernel, Stationary) and isinstance(kernel.lengthscale, tuple):
        return replace(kernel, lengthscale=tuple(kernel.lengthscale[c] for c in columns))
    return kernel


def _kept(places: tuple[int, ...], columns: tuple[int, ...]) -> tuple[int, ...]:
    """Where the columns of a group are among those that stay."""
    return tuple(columns.index(place) for place in places if place in columns)


def _within(places: tuple[int, ...], columns: tuple[int, ...]) -> tuple[int, ...]:
    """Which positions of a group stay."""
    return tuple(i for i, place in enumerate(places) if place in columns)
