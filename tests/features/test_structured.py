"""The kernel of a plan that names none: its structures, and the features they share."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from discreet import (
    Box,
    Categorical,
    JointDP,
    LocalDP,
    NonPrivate,
    Plan,
    SquaredExponential,
    Structured,
)
from discreet.errors import InvalidArgument
from discreet.features.kernels import Learned
from discreet.features.products import ProductFeatures
from discreet.features.structured import MOST_SETS
from discreet.storage import canonical

PRIVATE = JointDP(epsilon=3.0, delta=1e-6)


def test_a_plan_without_a_kernel_weighs_structures():
    plan = Plan(Box({"dose": (0, 1), "rate": (18, 90)}), PRIVATE, horizon=500)
    assert plan.kernel == Structured()
    assert isinstance(plan.map, ProductFeatures)
    assert plan.wording is not None
    assert "kernel" not in plan.wording.arguments


def test_a_copy_of_a_plan_has_its_kernel():
    plan = Plan(Box({"dose": (0, 1), "rate": (18, 90)}), PRIVATE, horizon=500)
    copy = dataclasses.replace(plan, name="other")
    assert (copy.kernel, copy.map) == (plan.kernel, plan.map)


def test_categories_are_one_coordinate_of_several_columns():
    domain = Box({"arm": Categorical(("a", "b", "c")), "age": (18, 90)})
    kernel = Plan(domain, PRIVATE, horizon=500).kernel
    assert kernel == Structured(categories=(domain.columns("arm"),))


def test_under_contexts_structures_say_what_contexts_do():
    arm = Categorical(("a", "b", "c"))
    names = {"arm": arm, "dose": (0, 1), **{f"c{j}": (0, 1) for j in range(4)}}
    domain = Box(names, context=[f"c{j}" for j in range(4)])
    kernel = Plan(domain, PRIVATE, horizon=500).kernel
    assert isinstance(kernel, Structured)
    assert kernel.contexts == tuple(domain.columns(f"c{j}") for j in range(4))
    kinds = {structure.words: structure for structure in kernel.structures}
    assert len(kinds) == 4
    alike = kinds["contexts do not matter"]
    assert kernel.part(alike, domain.columns("c0")) == (SquaredExponential(1.0), 1.0)
    assert kernel.part(alike, domain.columns("dose")) == (SquaredExponential(0.5), 0.0)


def test_only_structures_in_which_contexts_act_together_are_wide():
    wide = [each.words for each in Structured(contexts=((1,),)).structures if each.is_wide]
    assert set(wide) == {"contexts act together"}
    assert all(structure.is_wide for structure in Structured().structures)


def test_a_kernel_without_contexts_is_stored_as_before_there_were_any():
    assert b"contexts" not in canonical.encode(Structured())
    some = Structured(((0,),), contexts=((1,), (2,)))
    assert canonical.decode(Structured, canonical.encode(some)) == some


@pytest.mark.parametrize(
    "arguments",
    [
        {"privacy": LocalDP(epsilon=4.0, delta=1e-6)},
        {"privacy": PRIVATE, "noise": "tree", "horizon": 64},
        {"privacy": PRIVATE, "features": "grid"},
    ],
)
def test_what_rests_on_one_kernel_has_an_ordinary_one(arguments):
    assert Plan(domain=Box({"dose": (0, 1)}), **arguments).kernel == SquaredExponential()


def test_a_function_of_many_coordinates_is_taken_for_a_sum():
    domain = Box({f"x{j}": (0, 1) for j in range(12)})
    assert Plan(domain, NonPrivate()).kernel == Learned(additive=True)


def test_every_structure_is_a_kernel_of_at_most_one():
    rng = np.random.default_rng(0)
    kernel, points = Structured(), rng.random((12, 3))
    gram = kernel(points, points)
    assert np.allclose(np.diag(gram), 1.0)
    assert np.linalg.eigvalsh(gram).min() > -1e-12


def test_a_column_that_the_domain_lacks_is_refused():
    with pytest.raises(InvalidArgument, match="below 2"):
        Structured(categories=((2,),)).check(2)


@pytest.mark.parametrize("contexts", [(), (1,), (1, 2, 3)])
def test_features_of_all_structures_keep_within_the_unit_ball(contexts):
    names = {f"x{j}": (0.0, 1.0) for j in range(4)}
    plan = Plan(Box(names, context=[f"x{j}" for j in contexts]), PRIVATE, horizon=2000)
    phi = plan.map(np.random.default_rng(1).random((200, 4)))
    assert np.square(phi).sum(axis=1).max() <= 1.0 + 1e-12


def test_with_several_contexts_some_may_matter_and_others_not():
    names = {"dose": (0, 1), **{f"c{j}": (0, 1) for j in range(3)}}
    domain = Box(names, context=["c0", "c1", "c2"])
    kernel = Plan(domain, PRIVATE, horizon=500).kernel
    assert kernel.selects
    sets = {structure.idle for structure in kernel.structures if structure.idle}
    columns = [domain.columns(f"c{j}") for j in range(3)]
    assert sets == {idle for n in (1, 2) for idle in itertools.combinations(columns, n)}
    some = next(each for each in kernel.structures if each.idle == (columns[2],))
    assert kernel.part(some, columns[2])[1] == 1.0
    assert kernel.part(some, columns[0])[1] == 0.0
    assert not some.is_wide
    assert (some.needs(columns[0]), some.needs(columns[2])) == (True, False)


def test_one_context_matters_or_does_not():
    kernel = Plan(
        Box({"dose": (0, 1), "age": (0, 1)}, context=["age"]), PRIVATE, horizon=500
    ).kernel
    assert kernel.selects is None


@pytest.mark.parametrize("contexts", [2, 6, 7, 12, 40])
def test_no_more_sets_of_contexts_are_tried_than_can_be_weighed(contexts):
    kernel = Structured(contexts=tuple((j,) for j in range(contexts)), selects=True)
    assert len(kernel.structures) <= 6 + 2 * MOST_SETS
    sizes = [contexts - len(each.idle) for each in kernel.structures if each.idle]
    full = {size for size in sizes if sizes.count(size) == 2 * math.comb(contexts, size)}
    assert full == set(sizes) == set(range(1, 1 + len(full)))


def test_sets_of_as_many_contexts_are_together_as_likely_as_one_structure():
    kernel = Structured(contexts=((1,), (2,), (3,), (4,)), selects=True)
    weights, kinds = kernel.weights, kernel.structures
    assert sum(weights) == pytest.approx(1.0)
    whole = weights[0]
    for size in (1, 2, 3):
        some = [w for w, each in zip(weights, kinds, strict=True) if len(each.idle) == size]
        assert sum(some) == pytest.approx(2 * whole)  # in both lengthscales


def test_a_kernel_that_does_not_select_is_stored_as_before_any_did():
    before = Structured(contexts=((1,), (2,)))
    assert b"selects" not in canonical.encode(before)
    assert len(before.structures) == 6
    after = dataclasses.replace(before, selects=True)
    assert canonical.decode(Structured, canonical.encode(after)) == after


@pytest.mark.parametrize("arguments", [{"selects": False}, {"selects": True, "contexts": ((1,),)}])
def test_selecting_needs_contexts_to_select_from(arguments):
    with pytest.raises(InvalidArgument, match="selects"):
        Structured(**arguments)


def test_the_average_of_the_structures_is_weighed():
    kernel = Structured(contexts=((1,), (2,), (3,)), selects=True)
    x, y = np.random.default_rng(3).random((2, 5, 4))
    parts = zip(kernel.weights, kernel.structures, strict=True)
    expected = sum(weight * kernel.under(each, x, y) for weight, each in parts)
    assert np.allclose(kernel(x, y), expected)
    assert not np.allclose(
        kernel(x, y), np.mean([kernel.under(s, x, y) for s in kernel.structures], 0)
    )
