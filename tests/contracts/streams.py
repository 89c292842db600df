"""What every kind of correlated noise does in the real mechanism: nodes, their cost, their noise.

C is written down dense, from the strategy's own definition; nodes come from the code.
"""

import math

import numpy as np
import pytest

from discreet import Bandit, Box, JointDP, Plan, Schedule, SquaredExponential
from discreet.errors import InvalidArgument
from discreet.privacy.streams import FRACTION, Stream

RELEASES = [1, 3, 8, 13]


def dense(stream):
    """C with rational entries, in multiples of 2^-20: how much each epoch is in each node."""
    count, C = stream.releases, np.zeros((stream.releases, stream.releases), dtype=np.int64)
    for k in range(count):
        for j in range(k + 1):
            if stream.weights is None:
                t = k + 1
                C[k, j] = (1 << FRACTION) * (j >= t - (t & -t))
            else:
                C[k, j] = stream.weights[k - j]
    return C


def nodes_of(stream, sums):
    return np.array([stream.node(sums[: k + 1]) for k in range(len(sums))])


class StreamContract:
    name = ""

    @pytest.fixture(params=RELEASES)
    def stream(self, request):
        return Stream.of(self.name, request.param)

    def test_nodes_are_the_rounded_products_of_the_dense_matrix(self, stream):
        """In Python's integers, which are exact; sums as large as they may get."""
        rng = np.random.default_rng(1)
        count = stream.releases
        sums = rng.integers(-(2**61), 2**61, (count, 3)) // count
        wanted = [
            [
                (sum(int(w) * int(x) for w, x in zip(row, column, strict=True)) + 2**19) >> 20
                for column in sums.T
            ]
            for row in dense(stream)
        ]
        assert nodes_of(stream, sums).tolist() == wanted

    def test_decoding_nodes_gives_the_prefix_sums_back(self, stream):
        rng = np.random.default_rng(2)
        sums = rng.integers(-(2**30), 2**30, (stream.releases, 4))
        state = stream.start(4)
        for k, node in enumerate(nodes_of(stream, sums)):
            prefix, state = stream.strategy.advance(state, node.astype(float))
            close = 1e-5 * np.abs(sums).sum()  # C is rounded to 2^-20
            np.testing.assert_allclose(prefix, sums[: k + 1].sum(axis=0), atol=close)

    def test_the_norm_is_that_of_the_longest_column(self, stream):
        columns = np.linalg.norm(dense(stream) / 2.0**FRACTION, axis=0)
        assert columns.max() <= stream.norm * (1 + 1e-12)
        assert stream.norm <= columns.max() * (1 + 1e-4)
        assert columns[0] == pytest.approx(columns.max(), rel=1e-9)

    def test_an_answer_is_in_no_more_releases_than_are_counted(self, stream):
        assert (dense(stream) != 0).sum(axis=0).max() <= stream.touched

    def test_no_admissible_pair_of_histories_is_further_apart_than_is_paid_for(self, stream):
        """Rounds replaced, late, silent, and several of them: with bounds on v as in `streams`."""
        rng = np.random.default_rng(3)
        C, largest = dense(stream) / 2.0**FRACTION, 0.0
        for _ in range(400):
            rounds = int(rng.integers(1, 4))
            change = np.zeros((stream.releases, 2))
            for _ in range(rounds):
                one, two = _pair(rng)
                here, there = rng.integers(stream.releases, size=2)
                if rng.random() < 0.3:
                    there = here
                if rng.random() < 0.2:
                    here = there = 0
                change[here] += one
                change[there] -= two
            largest = max(largest, np.linalg.norm(C @ change) / rounds)
        assert largest <= stream.norm * (1 + 1e-9)

    def test_the_worst_history_costs_what_is_paid_for(self, stream):
        """All rounds answered with the first release, each from one end to the other."""
        C, change = dense(stream) / 2.0**FRACTION, np.zeros((stream.releases, 2))
        change[0] = 3 * np.array([1.0, 0.0])
        assert np.linalg.norm(C @ change) == pytest.approx(3 * stream.norm, rel=1e-4)

    def test_one_release_too_many_is_refused(self, stream):
        with pytest.raises(InvalidArgument, match=f"1 to {stream.releases} epochs"):
            stream.node(np.zeros((stream.releases + 1, 1), dtype=np.int64))

    def test_the_noise_of_prefixes_has_the_covariance_of_the_strategy(self):
        """Pure noise of real releases, whitened by B: squares and lagged products of N(0, 1).

        With n = `count` values the mean square and mean products are within 6 / sqrt(n / 2) and
        6 / sqrt(n): false alarms at 2e-9 each, 2e-7 in all.
        """
        releases, paths = 8, []
        for number in range(20):
            plan = silent_plan(self.name, releases, name=f"silence {number}")
            bandit = Bandit(plan)
            for ask in range(releases):
                bandit.abandon(bandit.ask([[1.0], [2.0]], user=f"user {ask}"))
            bandit.finish()
            stds = plan.correlated.encoding.stds(plan.map)
            state, rows = plan.stream.start(len(stds)), []
            for release in bandit.study.releases:
                integers = release.integers.astype(float)
                prefix, state = plan.stream.strategy.advance(state, integers)
                rows.append(prefix / stds)
            paths.append(np.array(rows))
        noise = np.concatenate(paths, axis=1)
        B = np.linalg.inv(dense(plan.stream) / 2.0**FRACTION)
        B = np.tril(np.ones((releases, releases))) @ B
        white = np.linalg.solve(B, noise)
        count = white.shape[1]
        covariance = white @ white.T / count
        smoothing = 1 + 1 / 256  # the second, finer draw
        assert np.abs(np.diag(covariance) / smoothing - 1).max() < 6 / math.sqrt(count / 2)
        assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 6.1 / math.sqrt(count)


def _pair(rng):
    """Two rounds with ||v||, ||v'|| <= 1 / sqrt(2) and ||v - v'|| <= 1, often at the edge."""
    angles = rng.uniform(0, 2 * math.pi, 2)
    if rng.random() < 0.5:
        angles[1] = angles[0] + math.pi
    lengths = math.sqrt(0.5) * np.where(rng.random(2) < 0.7, 1.0, rng.random(2))
    one, two = (
        each * np.array([math.cos(a), math.sin(a)]) for each, a in zip(lengths, angles, strict=True)
    )
    apart = np.linalg.norm(one - two)
    return (one, two) if apart <= 1.0 else (one / apart, two / apart)


def silent_plan(noise, releases, **given):
    settings = {
        "domain": Box({"dose": (0, 10)}),
        "privacy": JointDP(epsilon=2.0, delta=1e-4),
        "kernel": SquaredExponential(0.3),
        "decisions": "candidates",
        "encoding": "gram",
        "noise": noise,
        "horizon": releases,
        "schedule": Schedule(1, growth=1.0),
    }
    return Plan(**(settings | given))
