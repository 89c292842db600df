"""The window against one big Gaussian: theta and all reward noise, all observations at once."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.features.choose import choose
from discreet.features.kernels import SquaredExponential
from discreet.learning.inference import Clipped, along_lines, look
from discreet.learning.posterior import Posterior
from discreet.learning.window import Block, Window, gathered
from discreet.privacy.clipping import Residual
from discreet.privacy.looks import FOUR_LOOKS, ONE_LOOK
from discreet.privacy.reward import RewardEncoding

FEATURES = choose(SquaredExponential(0.5), widths=np.ones(1), error=0.05)
M = FEATURES.dimension
RHO2 = 0.09
PRIOR = np.eye(M) / 0.25


def block_of(rng, looks, most=4):
    count = int(rng.integers(1, most + 1))
    return Block(rng.random((count, 1)), rng.integers(1, 30, count).astype(float), looks)


def encoding_of(rng, rounds=1000):
    """Random directions, prediction, width and budget."""
    residual = Residual(rng.standard_normal(M) / 5, float(rng.uniform(0.1, 1.0)))
    plain = RewardEncoding.fit(FEATURES, residual, float(rng.uniform(0.5, 5.0)), 1.0, rounds)
    directions = rng.standard_normal((int(rng.integers(1, M + 1)), M))
    return replace(plain, directions=directions)


class Dense:
    """theta and E_b of every block there ever was, as one Gaussian that nothing ever leaves."""

    def __init__(self, blocks):
        self.sizes = [len(block.counts) for block in blocks]
        noise = np.concatenate([RHO2 * block.counts for block in blocks])
        self.covariance = np.diag(np.concatenate([np.diag(np.linalg.inv(PRIOR)), noise]))
        self.designs, self.values, self.noises = [], [], []

    def columns(self, number):
        start = M + sum(self.sizes[:number])
        return slice(start, start + self.sizes[number])

    def see(self, encoding, cross, seen, lines):
        """`seen`: (number, block, weight) of the blocks in a release, whose cross it is."""
        design = np.zeros((len(cross), len(self.covariance)))
        noise = encoding.noise.cross**2 * np.eye(len(cross))
        for (number, block, weight), line in zip(seen, lines, strict=True):
            phi = FEATURES(block.points)
            for p, count in enumerate(block.counts):
                g = weight * encoding.along(phi[[p]])[0]
                design[:, :M] += line.slope * count * np.outer(g, phi[p])
                design[:, self.columns(number)][:, p] += line.slope * g
                noise += (line.variance - line.slope**2 * RHO2) * count * np.outer(g, g)
        self.designs.append(design)
        self.values.append(cross + design[:, :M] @ encoding.residual.prediction)
        self.noises.append(noise)

    def theta(self):
        """Mean and covariance of theta given everything, by Gaussian conditioning."""
        design, values = np.concatenate(self.designs), np.concatenate(self.values)
        total = design @ self.covariance @ design.T
        start = 0
        for noise in self.noises:
            end = start + len(noise)
            total[start:end, start:end] += noise
            start = end
        gain = np.linalg.solve(total, design @ self.covariance).T
        mean, covariance = gain @ values, self.covariance - gain @ design @ self.covariance
        return mean[:M], covariance[:M, :M]


def line_of(rng, encoding):
    return Clipped.at(encoding.residual.width, float(rng.uniform(0.01, 0.3)), RHO2)


def belief(window):
    """Mean and covariance of theta by a window and the prior."""
    covariance = np.linalg.inv(PRIOR + window.theta.precision)
    return covariance @ window.theta.information, covariance


def close(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert np.allclose(one, other, rtol=0, atol=1e-8)


@settings(max_examples=60)
@given(
    epochs=st.integers(1, 9),
    many=st.integers(1, 6),
    first_once=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_window_is_one_big_gaussian_of_which_the_past_was_integrated_out(
    epochs, many, first_once, seed
):
    """After every release, also when most blocks have left: to 1e-8."""
    rng = np.random.default_rng(seed)
    raw = rng.uniform(0.2, 1.0, many)
    looks = tuple(raw / np.linalg.norm(raw))
    blocks = [block_of(rng, ONE_LOOK if first_once and n == 0 else looks) for n in range(epochs)]
    dense, window = Dense(blocks), Window.empty(np.zeros(M))
    for number, block in enumerate(blocks):
        window = window.entered(block, RHO2)
        seen = [
            (n, blocks[n], blocks[n].looks[number - n])
            for n in range(number, -1, -1)
            if number - n < len(blocks[n].looks)
        ]
        assert window.blocks == tuple(each for _, each, _ in seen)
        encoding = encoding_of(rng)
        lines = [line_of(rng, encoding) for _ in seen]
        cross = 10 * rng.standard_normal(len(encoding.directions))
        window = look(FEATURES, window, encoding, cross, lines, RHO2)
        dense.see(encoding, cross, seen, lines)
        close(belief(window), dense.theta())
        assert window.features == M


@settings(max_examples=30)
@given(st.permutations(range(5)), st.integers(0, 2**32 - 1))
def test_the_order_of_what_is_observed_does_not_matter(order, seed):
    rng = np.random.default_rng(seed)
    window = Window.empty(rng.standard_normal(M))
    for _ in range(3):
        window = window.entered(block_of(rng, FOUR_LOOKS), RHO2)
    size = len(window.information)
    told = []
    for _ in range(5):
        rows = int(rng.integers(1, 4))
        root = rng.standard_normal((rows, rows))
        told.append(
            (
                rng.standard_normal((rows, size)),
                rng.standard_normal(rows),
                root @ root.T + np.eye(rows),
            )
        )
    one, other = window, window
    for number in range(5):
        one, other = one.observe(*told[number]), other.observe(*told[order[number]])
    close(belief(one), belief(other))
    assert np.allclose(one.precision, other.precision, rtol=0, atol=1e-8)


def test_integrating_out_is_the_same_now_or_later():
    """theta alone is what remains when every block has left by itself."""
    rng = np.random.default_rng(4)
    window = Window.empty(np.zeros(M)).entered(block_of(rng, FOUR_LOOKS), RHO2)
    for _ in range(3):
        window = window.entered(block_of(rng, FOUR_LOOKS), RHO2)
        encoding = encoding_of(rng)
        cross = rng.standard_normal(len(encoding.directions))
        lines = [line_of(rng, encoding) for _ in window.blocks]
        window = look(FEATURES, window, encoding, cross, lines, RHO2)
    before, seen = belief(window), window.blocks
    for _ in range(4):
        window = window.entered(block_of(rng, FOUR_LOOKS), RHO2)  # which no release looks at
        close(belief(window), before)
    assert not set(seen) & set(window.blocks)


def test_what_is_told_of_theta_directly_adds_up():
    rng = np.random.default_rng(5)
    information = rng.standard_normal(M)
    window = Window.empty(information).entered(block_of(rng, FOUR_LOOKS), RHO2)
    encoding = encoding_of(rng)
    cross = rng.standard_normal(len(encoding.directions))
    window = look(FEATURES, window, encoding, cross, [line_of(rng, encoding)], RHO2)
    gram, more = np.eye(M) * 3.0, rng.standard_normal(M)
    after = window.plus(gram, more)
    assert np.allclose(after.theta.precision, window.theta.precision + gram, rtol=0, atol=1e-10)
    assert np.allclose(after.theta.information, window.theta.information + more, atol=1e-10)
    assert np.array_equal(Window.empty(information).theta.information, information)


# -- one look


@settings(max_examples=40)
@given(epochs=st.integers(1, 5), seed=st.integers(0, 2**32 - 1))
def test_one_look_a_block_is_the_closed_form_without_latent_noise(epochs, seed):
    """Reward noise seen once is noise: slope^2 n rho^2 and the excess, in the covariance."""
    rng = np.random.default_rng(seed)
    window = Window.empty(np.zeros(M))
    direct = Posterior(FEATURES, PRIOR, np.zeros(M))
    for _ in range(epochs):
        block, encoding = block_of(rng, ONE_LOOK), encoding_of(rng)
        line = line_of(rng, encoding)
        cross = rng.standard_normal(len(encoding.directions))
        window = window.entered(block, RHO2)
        assert window.blocks == (block,)
        window = look(FEATURES, window, encoding, cross, [line], RHO2)
        phi = FEATURES(block.points)
        g = encoding.along(phi)
        design = line.slope * (g * block.counts[:, None]).T @ phi
        noise = line.slope**2 * RHO2 + line.excess(RHO2)
        assert noise == pytest.approx(line.variance)
        covariance = noise * (g * block.counts[:, None]).T @ g
        covariance += encoding.noise.cross**2 * np.eye(len(cross))
        direct = direct.observe(design, cross + design @ encoding.residual.prediction, covariance)
        close(belief(window), (direct.coefficients, direct.covariance))


def loud(directions=None):
    """An encoding with next to no noise and no clipping; along phi itself, or other directions."""
    plain = RewardEncoding.fit(FEATURES, Residual(np.zeros(M), 50.0), 1e6, 1.0, 1000)
    return plain if directions is None else replace(plain, directions=directions)


def some_rounds(rng, theta):
    """Forty rounds at five points."""
    asked = rng.choice(rng.random(5), 40)[:, None]
    return asked, FEATURES(asked) @ theta + np.sqrt(RHO2) * rng.standard_normal(len(asked))


def after_looking(window, encoding, seen):
    """The window after a release of (asked, rewards, weight) by the encoding as it is used."""
    sums = sum(encoding.encode(FEATURES, *each).sum(axis=0) for each in seen)
    cross = encoding.decode(FEATURES, sums, asks=40).cross
    return look(FEATURES, window, encoding, cross, [Clipped(1.0, RHO2)] * len(seen), RHO2)


def assert_same_posterior(window, posterior):
    x = np.linspace(0, 1, 50)[:, None]
    learnt = Posterior(FEATURES, PRIOR + window.theta.precision, window.theta.information)
    assert np.allclose(learnt.mean(x), posterior.mean(x), rtol=0, atol=1e-4)
    assert np.allclose(learnt.variance(x), posterior.variance(x), rtol=1e-3, atol=0)


@pytest.mark.parametrize("looks", [ONE_LOOK, (0.8, 0.6), FOUR_LOOKS], ids=len)
def test_with_next_to_no_noise_each_round_counts_once_however_often_it_is_looked_at(looks):
    """Six epochs: the exact posterior of all rounds, after each."""
    rng = np.random.default_rng(6)
    theta, rounds = rng.standard_normal(M) / 2, []
    exact, window = Posterior(FEATURES, PRIOR, np.zeros(M)), Window.empty(np.zeros(M))
    for _ in range(6):
        asked, rewards = some_rounds(rng, theta)
        phi = FEATURES(asked)
        rounds.insert(0, (asked, rewards))
        window = window.entered(Block.of(asked, len(asked), looks), RHO2)
        seen = [(*each, weight) for each, weight in zip(rounds, looks, strict=False)]
        window = after_looking(window, loud(), seen)
        exact = exact.absorb(phi.T @ phi, phi.T @ rewards, noise_variance=RHO2)
        assert_same_posterior(window, exact)


def test_with_next_to_no_noise_four_looks_at_the_same_rounds_tell_what_one_tells():
    """Along other directions each time: the noise of rewards is still the one it was."""
    rng = np.random.default_rng(8)
    asked, rewards = some_rounds(rng, rng.standard_normal(M) / 2)
    block, phi = Block.of(asked, len(asked), FOUR_LOOKS), FEATURES(asked)
    prior = Posterior(FEATURES, PRIOR, np.zeros(M))
    exact = prior.absorb(phi.T @ phi, phi.T @ rewards, noise_variance=RHO2)
    window = Window.empty(np.zeros(M)).entered(block, RHO2)
    for age, weight in enumerate(FOUR_LOOKS):
        aged = replace(window, blocks=(replace(block, looks=(weight,)),))
        directions = None if age == 0 else rng.standard_normal((M, M))
        window = after_looking(aged, loud(directions), [(asked, rewards, weight)])
        assert_same_posterior(window, exact)


# -- blocks


def test_a_block_counts_the_asks_at_each_point_once():
    asked = np.array([[0.5, 1.0], [0.2, 0.0], [0.5, 1.0], [0.5, 0.0], [0.5, 1.0]])
    block = Block.of(asked, len(asked), FOUR_LOOKS)
    assert dict(zip(map(tuple, block.points.tolist()), block.counts.tolist(), strict=True)) == {
        (0.2, 0.0): 1.0,
        (0.5, 0.0): 1.0,
        (0.5, 1.0): 3.0,
    }
    assert (block.asks, block.looks) == (5.0, FOUR_LOOKS)
    again = Block.of(asked[::-1], len(asked), FOUR_LOOKS)
    assert np.array_equal(again.points, block.points)
    assert np.array_equal(again.counts, block.counts)
    assert Block.of(asked, len(asked)).looks == ONE_LOOK


@pytest.mark.parametrize("asks", [0, 1, 4, 5, 6, 14])
def test_a_menu_is_given_in_turn_and_what_was_not_given_is_not_there(asks):
    menu = np.array([[0.5], [0.2], [0.5], [0.9], [0.1]])
    block = Block.of(menu, asks, each=2.0)
    points, counts = np.unique(menu[np.arange(asks) % 5], axis=0, return_counts=True)
    assert block.points.tolist() == points.tolist()
    assert block.counts.tolist() == (2.0 * counts).tolist()


def test_an_even_block_spreads_its_asks_and_a_mean_weighs_by_them():
    points = np.array([[0.0], [0.5], [1.0]])
    even = Block.even(points, 60)
    assert even.counts.tolist() == [20.0, 20.0, 20.0]
    assert even.looks == ONE_LOOK
    assert even.mean(lambda x: x[:, 0] ** 2) == pytest.approx(1.25 / 3)
    uneven = Block(points, np.array([1.0, 0.0, 3.0]))
    assert uneven.mean(lambda x: x[:, 0]) == 0.75
    asked = np.repeat(points, [4, 1, 2], axis=0)
    block = Block.of(asked, len(asked))
    assert block.mean(lambda x: np.exp(x[:, 0])) == pytest.approx(np.exp(asked).mean())


def test_gathered_blocks_count_as_much_as_their_age_says():
    blocks = [Block(np.full((n, 1), n / 10), np.arange(1.0, n + 1), FOUR_LOOKS) for n in (2, 1, 3)]
    points, counts, weights = gathered(blocks)
    assert points.ravel().tolist() == [0.2, 0.2, 0.1, 0.3, 0.3, 0.3]
    assert counts.tolist() == [1.0, 2.0, 1.0, 1.0, 2.0, 3.0]
    expected = [FOUR_LOOKS[0]] * 2 + [FOUR_LOOKS[1]] + [FOUR_LOOKS[2]] * 3
    assert weights.tolist() == expected
    with pytest.raises(IndexError):
        gathered([Block(np.zeros((1, 1)), np.ones(1)), Block(np.zeros((1, 1)), np.ones(1))])


def test_each_block_has_its_own_line():
    blocks = [Block(np.zeros((n, 1)), np.ones(n)) for n in (2, 1)]
    lines = [Clipped(0.5, 0.2), Clipped(1.0, 0.09)]
    slopes, excess = along_lines(blocks, lines, RHO2)
    assert slopes.tolist() == [0.5, 0.5, 1.0]
    assert excess == pytest.approx([0.2 - 0.25 * RHO2] * 2 + [1e-12])
