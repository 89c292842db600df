"""The precision attack: floating-point noise gives the input away, integer noise does not.

In floating point the set of values that `value + rng.normal()` can take depends on the value:
where a sum is near zero, the low bits of `1.0 + g` are always zero, those of `0.0 + g` are not
(Mironov, 2012). One look at the low bits then tells y = 0 from y = 1 for certain, whatever the
noise. Integers plus rounded noise have the whole lattice as their support for any input.
"""

import numpy as np
import pytest
from scipy import stats

from discreet.features.choose import choose
from discreet.features.kernels import SquaredExponential
from discreet.privacy.announced import AnnouncedEncoding
from discreet.privacy.clipping import Residual
from discreet.privacy.encodings import ENCODINGS
from discreet.trusted import mechanism
from discreet.trusted.randomness import SMALLEST_STD, OperatingSystem

FEATURES = choose(SquaredExponential(0.3), widths=np.ones(1), error=1e-2)
WORLDS = (0.0, 1.0)


def _on_the_coarse_grid(outputs):
    """Whether all low bits are zero: outputs that are whole multiples of 2^-53."""
    scaled = np.ldexp(outputs, 53)
    return (scaled == np.rint(scaled)).all(axis=1)


def test_low_bits_give_a_float_mechanism_away():
    """False-alarm rate below 1e-6: a miss takes 300 values that end in zeros by chance."""
    rng = np.random.default_rng()
    for world in WORLDS:
        outputs = world + rng.normal(size=(500, 300))
        guesses = _on_the_coarse_grid(outputs).astype(float)
        assert (guesses == world).all()  # 500 out of 500, in both worlds


def _released(kind, draws):
    """Releases of one round with y = 0 and with y = 1, by the real encoding and mechanism."""
    encoding = kind.fit(FEATURES, Residual(np.zeros(FEATURES.dimension), 1.0), 1.0, 0.5, 1000)
    stds, point = encoding.stds(FEATURES), np.array([[0.3]])
    for world in WORLDS:
        row = encoding.encode(FEATURES, point, np.array([world]))[0]
        if isinstance(encoding, AnnouncedEncoding):
            row = row + encoding.announce(FEATURES, point)[0]
        totals = np.tile(row, (draws, 1))
        yield mechanism.noisy(totals, stds, bits=OperatingSystem())[:, stds > 0]


@pytest.mark.parametrize("kind", ENCODINGS.values(), ids=ENCODINGS)
def test_low_bits_say_nothing_about_the_reward_in_ours(kind):
    """False-alarm rate below 1e-6: two tests at 1e-8 for each of 6 moduli and 4 encodings."""
    silent, loud = _released(kind, 20_000)
    for modulus in (2, 4, 8, 16, 32, 64):
        table = np.stack(
            [np.bincount((world % modulus).ravel(), minlength=modulus) for world in (silent, loud)]
        )
        assert table.min() > 0  # every residue occurs in both worlds
        assert stats.chi2_contingency(table).pvalue > 1e-8
        # Uniform, too: low bits carry nothing at all.
        assert stats.chisquare(table.sum(axis=0)).pvalue > 1e-8


@pytest.mark.parametrize("kind", ENCODINGS.values(), ids=ENCODINGS)
def test_the_attack_on_floats_guesses_ours_by_chance(kind):
    decoded = [np.ldexp(world.astype(float), -40) for world in _released(kind, 500)]
    fractions = [_on_the_coarse_grid(outputs).mean() for outputs in decoded]
    assert fractions == [1.0, 1.0]  # the lattice in both worlds: the same answer every time


def test_every_integer_within_reach_occurs_in_both_worlds():
    """False-alarm rate below 1e-6: each of 2 x 2049 integers is expected 94 times or more."""
    stds = np.array([SMALLEST_STD])
    reach = np.arange(-1024, 1025)
    for total in (0, 987_654_321):
        totals = np.full((400_000, 1), total)
        noise = mechanism.noisy(totals, stds, bits=OperatingSystem())[:, 0] - total
        counts = np.bincount(noise[np.abs(noise) <= 1024] + 1024, minlength=len(reach))
        assert counts.min() > 0


def test_the_law_of_the_noise_does_not_depend_on_the_input():
    """False-alarm rate below 1e-6: a two-sample Kolmogorov-Smirnov test at 1e-7."""
    stds = np.array([SMALLEST_STD])
    small, large = (
        mechanism.noisy(np.full((100_000, 1), total), stds, bits=OperatingSystem())[:, 0] - total
        for total in (0, 2**61 + 1)
    )
    assert stats.ks_2samp(small, large).pvalue > 1e-7
