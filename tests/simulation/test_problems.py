"""The benchmark problems against benchmarks.md, and problems of one's own."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from discreet.errors import InvalidArgument
from discreet.simulation.problems import (
    CAMELBACK,
    MICHALEWICZ,
    PARTS,
    PROBLEMS,
    STYBLINSKI_TANG,
    Bumps,
    Ridges,
    camelback,
    find_problem,
    michalewicz,
    styblinski_tang,
)

FUNCTIONS = {"camelback": CAMELBACK, "styblinski-tang": STYBLINSKI_TANG, "michalewicz": MICHALEWICZ}

OWN = """
import numpy as np
from discreet import Box

class Parabola:
    domain = Box({"dose": (0, 10)})
    rewards = (0.0, 1.0)

    def __init__(self, peak=7.0):
        self.peak = peak

    def decision_set(self, rng):
        return None

    def mean(self, x):
        return 1 - (x[:, 0] - self.peak) ** 2 / 100

    def reward(self, x, rng):
        return float(self.mean(x[None, :])[0] + 0.1 * rng.standard_normal())

parabola = Parabola()

def random_parabola(rng):
    return Parabola(rng.uniform(2, 8))

def nothing(rng):
    return 7

seven = 7
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module of the user's, `own_problems`, where Python finds it."""
    (tmp_path / "own_problems.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)


def generator(seed=0):
    return np.random.Generator(np.random.Philox(seed))


def cube(count, dimension, seed=0):
    return generator(seed).uniform(-0.5, 0.5, (count, dimension))


DOSINGS = {name for name in PROBLEMS if name.startswith("dosing-")}


def test_there_are_the_problems_of_the_benchmarks_and_two_kept_aside():
    assert len(DOSINGS) == 8
    aside = {"ridges", "pricing"}
    assert set(PROBLEMS) == {"synthetic", *FUNCTIONS, "hartmann6", "arms", *DOSINGS} | aside
    for name, make in PROBLEMS.items():
        problem = make(generator())
        assert all(hasattr(problem, part) for part in PARTS)
        assert hasattr(problem, "kernel") == (name != "ridges")  # which is for the default one


@pytest.mark.parametrize(
    ("name", "dimension", "rewards", "maximum"),
    [
        ("camelback", 2, (-1.2, 0.3), 0.20633),
        ("styblinski-tang", 20, (-0.5, 1.2), 1.0),
        ("michalewicz", 10, (-0.3, 1.2), 1.0),
    ],
)
def test_dimensions_ranges_and_maxima_are_those_of_the_benchmarks(
    name, dimension, rewards, maximum
):
    problem = FUNCTIONS[name]
    box = problem.domain
    assert len(box.names) == dimension
    assert box.decode(np.zeros(dimension)) == dict.fromkeys(box.names, -0.5)
    assert box.decode(np.ones(dimension)) == dict.fromkeys(box.names, 0.5)
    assert problem.rewards == rewards
    assert problem.maximum == pytest.approx(maximum, abs=5e-6)
    assert problem.decision_set(generator()) is None
    problem.kernel.check(dimension)


def test_camelback_is_the_benchmarks_formula():
    for x1, x2 in cube(50, 2):
        a, b = 4 * x1, 2 * x2
        expected = -((4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (4 * b**2 - 4) * b**2) / 5
        assert camelback(np.array([[x1, x2]]))[0] == pytest.approx(expected, rel=1e-12)


def test_styblinski_tang_is_the_benchmarks_formula():
    for x in cube(20, 20):
        z = [8 * value for value in x]
        expected = -0.5 * sum(v**4 - 16 * v**2 + 5 * v for v in z) / (39.166 * 20)
        assert styblinski_tang(x[None, :])[0] == pytest.approx(expected, rel=1e-10)


def test_michalewicz_is_the_benchmarks_formula():
    for x in cube(20, 10):
        z = [(value + 0.5) * math.pi for value in x]
        terms = [math.sin(v) * math.sin(i * v / math.pi) ** 20 for i, v in enumerate(z, start=1)]
        assert michalewicz(x[None, :])[0] == pytest.approx(sum(terms) / 8.00499, rel=1e-9)


def test_the_stated_maximum_of_camelback_is_reached_and_not_passed():
    points = cube(100_000, 2)
    starts = points[np.argsort(camelback(points))[-10:]]
    found = max(
        -minimize(lambda x: -camelback(x[None, :])[0], start, bounds=[(-0.5, 0.5)] * 2).fun
        for start in starts
    )
    assert found == pytest.approx(CAMELBACK.maximum, abs=1e-6)


@pytest.mark.parametrize("problem", [STYBLINSKI_TANG, MICHALEWICZ], ids=["styblinski", "michal"])
def test_the_stated_maximum_of_a_sum_over_coordinates_is_that_of_its_terms(problem):
    """Coordinate by coordinate from any point: the function is a sum, so this is the maximum."""
    best = np.zeros(problem.dimension)
    for i in range(problem.dimension):

        def along(value, i=i):
            point = best.copy()
            point[i] = value
            return -problem.mean(point[None, :])[0]

        grid = np.linspace(-0.5, 0.5, 2001)
        start = grid[np.argmin([along(value) for value in grid])]
        ends = (max(start - 1e-3, -0.5), min(start + 1e-3, 0.5))
        best[i] = minimize_scalar(along, bounds=ends, method="bounded").x
    assert problem.mean(best[None, :])[0] == pytest.approx(problem.maximum, abs=2e-5)


@pytest.mark.parametrize("problem", FUNCTIONS.values(), ids=FUNCTIONS)
def test_rewards_are_the_mean_with_noise_of_a_tenth(problem):
    """20,000 answers; a right implementation fails with probability below 1e-6 (5 sigma)."""
    rng = generator(1)
    x = cube(1, problem.dimension)[0]
    answers = np.array([problem.reward(x, rng) for _ in range(20_000)])
    assert answers.mean() == pytest.approx(problem.mean(x[None, :])[0], abs=5 * 0.1 / 141)
    assert answers.std() == pytest.approx(0.1, abs=5 * 0.1 / 200)


# -- the synthetic functions


@pytest.mark.parametrize("seed", range(4))
def test_a_synthetic_function_is_drawn_as_the_benchmarks_say(seed):
    problem = Bumps.draw(generator(seed))
    assert problem.centres.shape == (4, 2)
    assert (np.linalg.norm(problem.centres, axis=1) <= 2).all()
    assert (problem.weights >= 0).all()
    assert problem.weights.sum() <= 1
    assert problem.rewards == (0.0, 1.0)
    x = generator(seed + 100).uniform(-1, 1, (5, 2))
    for point, value in zip(x, problem.mean(x), strict=True):
        distances = np.linalg.norm(problem.centres - point, axis=1)
        assert value == pytest.approx(float(problem.weights @ np.exp(-(distances**2) / 2)))


def test_the_synthetic_kernel_has_lengthscale_one_in_natural_units():
    problem = Bumps.draw(generator())
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, -1.5]])
    scaled = problem.domain.encode(points)
    squares = np.square(points[:, None] - points).sum(axis=2)
    assert problem.kernel(scaled, scaled) == pytest.approx(np.exp(-squares / 2))


@pytest.mark.parametrize("seed", range(4))
def test_a_synthetic_decision_set_has_one_good_point_among_24_poor_ones(seed):
    rng = generator(seed)
    problem = Bumps.draw(rng)
    places = set()
    for _ in range(40):
        points = problem.decision_set(rng)
        values = problem.mean(points)
        assert points.shape == (25, 2)
        assert (np.linalg.norm(points, axis=1) <= 2).all()
        assert (values >= 0.8).sum() == 1
        assert (values <= 0.6).sum() == 24
        places.add(int(values.argmax()))
        problem.domain.encode(points)  # all inside the ball
    assert len(places) > 10  # the good one is not always in the same place


def test_synthetic_rewards_are_coin_flips():
    """20,000 flips; a right implementation fails with probability below 1e-6 (5 sigma)."""
    problem, rng = Bumps.draw(generator(3)), generator(4)
    x = problem.centres[0]
    mean = problem.mean(x[None, :])[0]
    answers = np.array([problem.reward(x, rng) for _ in range(20_000)])
    assert set(answers) == {0.0, 1.0}
    assert answers.mean() == pytest.approx(mean, abs=5 * math.sqrt(mean * (1 - mean) / 20_000))


# -- finding a problem


def test_an_object_of_ones_own_is_found(own):
    make = find_problem("own_problems:parabola")
    assert make(generator()) is make(generator(1))
    assert make(generator()).peak == 7.0


def test_a_function_that_makes_a_problem_is_found(own):
    make = find_problem("own_problems:random_parabola")
    assert make(generator(0)).peak != make(generator(1)).peak


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "camel",
            "one of synthetic, camelback, styblinski-tang, .* dosing-1, .* pricing, or module:name",
        ),
        ("no_such_module:parabola", "No module named 'no_such_module'"),
        ("own_problems:missing", "no attribute 'missing'"),
        ("own_problems:", "or module:name"),
        (":parabola", "or module:name"),
        (".:parabola", "or module:name"),
        ("", "or module:name"),
        ("own_problems:seven", "an object with domain, rewards, decision_set, mean, reward"),
        ("own_problems:Parabola", "a function of a generator that makes one"),
    ],
)
def test_a_problem_that_cannot_be_found_is_explained(own, name, words):
    with pytest.raises(InvalidArgument, match=words):
        find_problem(name)


def test_a_function_that_makes_something_else_is_explained(own):
    make = find_problem("own_problems:nothing")
    with pytest.raises(InvalidArgument, match="an object with domain"):
        make(generator())


# -- kept aside


@pytest.mark.parametrize("seed", range(5))
def test_ridges_stay_within_their_range_and_scatter_as_stated(seed):
    rng = np.random.default_rng(seed)
    problem = Ridges.draw(rng)
    x = rng.random((2000, 2))
    assert np.abs(problem.mean(x)).max() <= 0.6
    assert problem.amplitudes.sum() == pytest.approx(1.0)
    assert problem.decision_set(rng) is None
    answers = np.array([problem.reward(x[0], rng) for _ in range(20_000)])
    # Kurtosis 6: the standard error of the std is 0.2 sqrt(5 / 4 / 20,000); 7 of them, below 1e-11.
    assert answers.std() == pytest.approx(0.2, abs=7 * 0.2 * np.sqrt(5 / 4 / 20_000))
