"""Who comes: laws are as declared, move towards who came, and people follow them."""

import numpy as np
import pytest

from discreet.agreement.beginning import Around, Shares
from discreet.domain.box import Box, Categorical
from discreet.learning.law import Kind, Law, Seen

BOX = Box(
    {"dose": (0, 1), "age": (0, 100), "sex": Categorical(("f", "m", "x")), "size": (0, 1)},
    context=("age", "sex", "size"),
)
RNG = np.random.default_rng(0)


def test_at_first_everyone_is_as_likely():
    people = Law.before(BOX, BOX.context).people
    assert people[:, 0].mean() == pytest.approx(0.5, abs=0.02)
    assert people[:, 0].std() == pytest.approx(12**-0.5, abs=0.02)
    sexes = (people[:, None, 1:3] == BOX.coordinate("sex").vertices).all(axis=2).mean(axis=0)
    assert sexes == pytest.approx([1 / 3] * 3, abs=0.02)


def test_declared_laws_are_those_of_the_people():
    laws = {"age": Around(30, 10), "sex": Shares({"f": 0.7, "m": 0.2, "x": 0.1})}
    people = Law.before(BOX, BOX.context, laws).people
    assert people[:, 0].mean() == pytest.approx(0.3, abs=0.01)
    assert people[:, 0].std() == pytest.approx(0.1, abs=0.01)
    sexes = (people[:, None, 1:3] == BOX.coordinate("sex").vertices).all(axis=2).mean(axis=0)
    assert sexes == pytest.approx([0.7, 0.2, 0.1], abs=0.02)
    assert people[:, 3].mean() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(("mean", "std"), [(-500, 1), (50, 1e-6), (1e4, 1e3), (99.9, 40)])
def test_a_law_that_no_density_within_the_range_has_is_taken_for_the_nearest(mean, std):
    people = Law.before(BOX, BOX.context, {"age": Around(mean, std)}).people
    assert np.isfinite(people).all()
    assert ((people >= 0.0) & (people <= 1.0)).all()


def _told(law, came, releases=12, noise=4.0, count=500):
    """Grams of random directions of features of people who really came."""
    waves = RNG.standard_normal((law.kind.columns.__len__(), 6))

    def g(rows):
        phi = np.cos(2.0 * rows @ waves + np.arange(6))
        return phi / np.linalg.norm(phi, axis=1, keepdims=True)

    rows, columns = np.triu_indices(6)
    for _ in range(releases):
        who = came(count)
        gram = (g(who).T @ g(who))[rows, columns]
        variance = noise**2 * np.where(rows == columns, 2.0, 1.0)
        gram = gram + np.sqrt(variance) * RNG.standard_normal(len(rows))
        people = law.people
        weights = np.full(len(people), 1.0 / len(people))
        seen = Seen(g(people), law.kind.psi(people), weights, float(count), float(count))
        law = law.told(gram, variance, [seen])
    return law


def test_a_law_moves_to_who_came():
    box = Box({"dose": (0, 1), "a": (0, 1), "b": (0, 1)}, context=("a", "b"))
    law = _told(Law.before(box, box.context), lambda n: RNG.beta(2, 5, (n, 2)))
    people = law.people
    assert people.mean(axis=0) == pytest.approx([2 / 7] * 2, abs=0.05)
    assert people.std(axis=0) == pytest.approx([0.16] * 2, abs=0.05)


def test_a_law_learns_that_contexts_go_together():
    box = Box({"dose": (0, 1), "a": (0, 1), "b": (0, 1)}, context=("a", "b"))

    def came(count):
        common = RNG.random((count, 1))
        return np.clip(common + 0.1 * RNG.standard_normal((count, 2)), 0.0, 1.0)

    people = _told(Law.before(box, box.context), came, releases=30, noise=1.0).people
    assert np.corrcoef(people.T)[0, 1] > 0.5


def test_people_of_an_earlier_law_are_reweighed_to_the_newer_one():
    box = Box({"dose": (0, 1), "a": (0, 1)}, context=("a",))
    even, tilted = Law.before(box, ("a",)), Law.before(box, ("a",), {"a": Around(0.3, 0.2)})
    weights = tilted.reweighed(even.kind.psi(even.people), even.tilt)
    assert weights @ even.people[:, 0] == pytest.approx(0.3, abs=0.02)


def test_drawing_again_gives_the_same_people():
    kind = Kind(BOX, BOX.context)
    tilt = 0.3 * RNG.standard_normal(kind.size)
    assert np.array_equal(kind.people(tilt), kind.people(tilt))
