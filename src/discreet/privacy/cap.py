"""One of N public codewords, sent so that each stays possible: exactly epsilon-private.

A person's device ranks N codewords by what it has to say and calls the first K its *cap*. It sends
a codeword of the cap, uniformly, with probability p, and one of the others, uniformly, else:

    P[index] = p / K   inside the cap        P[index] = (1 - p) / (N - K)   outside.

**Theorem.** If p / K <= e^epsilon (1 - p) / (N - K) and (1 - p) / (N - K) <= e^epsilon p / K, the
index is epsilon-locally private with delta = 0, whatever the codewords are and however they are
ranked. *Proof.* Any two caps of K of N codewords give every index one of the same two
probabilities, and their ratio is at most e^epsilon either way. Randomness before the ranking (a
sign, a rounding) makes a mixture of such laws, and a mixture keeps the bound. So ranks may be
computed in floating point, and a hostile list of codewords changes nothing: privacy rests on three
integers, N, K and the threshold p 2^62, and on ranks being K distinct indices.

*Exactness.* `Cap.of` rounds p down to a multiple of 2^-62, and compares with a rational number
below e^epsilon: the two conditions then hold between rational numbers. Only integers are drawn.

This is subset selection (Ye and Barg 2018) where the subset is the nearest few of a codebook;
compare PrivUnit (Bhowmick et al. 2018), its optimality (Asi, Feldman and Talwar 2022), and coded
reports (Chen, Kairouz and Ozgur 2020; Shah et al. 2022; Isik et al. 2023).
"""

from dataclasses import dataclass
from fractions import Fraction

from discreet import checks
from discreet.errors import InvalidArgument

#: p is a multiple of 2^-62: a threshold for 62 uniform bits.
THRESHOLD_BITS = 62
#: An index has at most 32 bits; a book of more codewords would not be read in time anyway.
MOST_CODEWORDS = 1 << 20
#: Odds below this are not told apart by a threshold of 62 bits.
SMALLEST_EPSILON = 2.0**-20
#: Beyond, the threshold is as good as 1 for every book.
LARGEST_EPSILON = 40.0
#: Bits after the point of the lower bound on e^epsilon.
_PRECISION = 192


def exp_below(epsilon: Fraction) -> Fraction:
    """A rational number just below e^epsilon: Taylor's series, every term rounded down.

        1 + epsilon (1 + epsilon / 2 (1 + ...)) >= partial sums, for epsilon >= 0

    >>> float(exp_below(Fraction(1)))
    2.718281828459045
    """
    if epsilon < 0:
        raise InvalidArgument("epsilon", "a number of at least 0")
    term = total = 1 << _PRECISION
    count = 0
    while term:
        count += 1
        term = term * epsilon.numerator // (epsilon.denominator * count)
        total += term
    return Fraction(total, 1 << _PRECISION)


def check_level(epsilon: Fraction) -> None:
    """Refuse what one report cannot cost, or could not be told from nothing."""
    if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        words = f"between {SMALLEST_EPSILON:.1g} and {LARGEST_EPSILON:g} for one report"
        raise InvalidArgument("epsilon", words, float(epsilon))


@dataclass(frozen=True)
class Cap:
    """N = `size` codewords, K = `nearest` of them in a cap, and p = `threshold` / 2^62.

    >>> cap = Cap.of(Fraction(1), size=8, nearest=2)
    >>> round(float(cap.inside / cap.outside), 6)
    2.718282
    >>> cap.is_within(Fraction(1)), cap.is_within(Fraction(99, 100))
    (True, False)
    """

    size: int
    nearest: int
    threshold: int

    def __post_init__(self) -> None:
        if not 2 <= checks.count("size", self.size) <= MOST_CODEWORDS:
            raise InvalidArgument("size", f"between 2 and {MOST_CODEWORDS} codewords", self.size)
        if not 1 <= checks.count("nearest", self.nearest) < self.size:
            raise InvalidArgument("nearest", "at least 1, and fewer than all", self.nearest)
        if not 0 < checks.count("threshold", self.threshold) < 1 << THRESHOLD_BITS:
            raise InvalidArgument("threshold", f"between 1 and 2^{THRESHOLD_BITS}", self.threshold)

    @classmethod
    def of(cls, epsilon: Fraction, size: int, nearest: int) -> "Cap":
        """The cap of largest p that costs at most epsilon.

        p = floor(2^62 K E / (K E + N - K)) / 2^62,       E a rational number below e^epsilon
        """
        check_level(epsilon)
        odds = exp_below(epsilon) * nearest
        share = odds / (odds + size - nearest)
        return cls(size, nearest, (share.numerator << THRESHOLD_BITS) // share.denominator)

    @property
    def share(self) -> Fraction:
        """p: how likely the index is one of the cap."""
        return Fraction(self.threshold, 1 << THRESHOLD_BITS)

    @property
    def inside(self) -> Fraction:
        """How likely each index of the cap is: p / K."""
        return self.share / self.nearest

    @property
    def outside(self) -> Fraction:
        """How likely each other index is: (1 - p) / (N - K)."""
        return (1 - self.share) / (self.size - self.nearest)

    @property
    def excess(self) -> float:
        """p / K - (1 - p) / (N - K): how much likelier an index is for being in the cap."""
        return float(self.inside - self.outside)

    def is_within(self, epsilon: Fraction) -> bool:
        """Whether any two caps are epsilon-close, as rational numbers."""
        most = exp_below(epsilon)
        return self.inside <= most * self.outside and self.outside <= most * self.inside
