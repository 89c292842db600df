"""What a plan says of reports that are an index: what each costs, and by which cap it is drawn."""

from fractions import Fraction
from functools import lru_cache

from discreet import checks
from discreet.agreement.schedule import Schedule, check_mixable
from discreet.errors import InvalidArgument
from discreet.privacy.book import CODEWORDS, best_cap, contraction
from discreet.privacy.budget import JointDP, LocalDP, Privacy
from discreet.privacy.cap import LARGEST_EPSILON, MOST_CODEWORDS, SMALLEST_EPSILON, Cap
from discreet.privacy.cost import PurePrivacy
from discreet.privacy.encodings import INDEXED, Encoding, EncodingChoice, Indexed
from discreet.privacy.interval import TYPICAL, best_window, window_variance
from discreet.privacy.shuffled import ShuffledDP

#: A codebook is compared with Gaussian noise as if it had so many directions.
TYPICAL_DIRECTIONS = 8


class IndexReports:
    """The part of a plan that every report which is an index is held to."""

    privacy: Privacy
    encoding: EncodingChoice
    codewords: int | None
    schedule: Schedule | None
    horizon: int | None

    @property
    def sends_indices(self) -> bool:
        """Whether reports are indices of a public list, which cost a pure epsilon."""
        return self.encoding in INDEXED

    @property
    def report_epsilon(self) -> Fraction:
        """What one report costs, if reports are indices: epsilon over the rounds of a person."""
        if not self.sends_indices or not isinstance(self.privacy, LocalDP):
            raise TypeError("only reports that are indices cost a pure epsilon")
        return self.privacy.epsilon_per_round

    @property
    def book_size(self) -> int:
        """N: how many codewords there are."""
        return self.codewords or CODEWORDS

    @property
    def is_local(self) -> bool:
        """Whether every round is a report with noise of its own."""
        return isinstance(self.privacy, LocalDP | ShuffledDP)

    @property
    def is_shuffled(self) -> bool:
        """Whether reports are mixed before anyone can read them."""
        return isinstance(self.privacy, ShuffledDP)

    @property
    def shuffled(self) -> ShuffledDP:
        """What is promised of mixed reports."""
        if not isinstance(self.privacy, ShuffledDP):
            raise TypeError("reports of this plan are not mixed")
        return self.privacy

    def level_of(self, kind: type[Indexed], dimension: int, group: int = 1) -> Fraction:
        """The epsilon of one report by itself, in an epoch whose smallest group has so many asks.

        Where reports are mixed it is larger than what is promised, and grows with the group.
        """
        if not isinstance(self.privacy, ShuffledDP):
            return self.report_epsilon
        return _level(self.privacy, kind, dimension, group, self.book_size)

    def cap_of(self, kind: type[Indexed], dimension: int, group: int = 1) -> Cap:
        """N, K and p of the plan's reports; a codebook's K depends on its dimension alone.

        Where reports are mixed, p depends on the smallest group of the epoch, too. A client works
        them out by itself: they are what its privacy rests on.
        """
        level = self.level_of(kind, dimension, group)
        return _cap(kind, level, dimension, self.book_size)

    def check_caps(self) -> None:
        """Refuse an epsilon that no threshold keeps, and epochs that could not be handed up."""
        if self.schedule is not None and isinstance(self.privacy, ShuffledDP):
            check_mixable(self.schedule, self.privacy.minimum, self.horizon)
        for kind in (kind for name, kind in INDEXED.items() if name == self.encoding):
            self.cap_of(kind, 1)

    @property
    def promised(self) -> Privacy:
        """What the plan keeps: of reports that are indices, no delta, whatever was asked for."""
        if self.sends_indices and isinstance(self.privacy, LocalDP):
            return self.privacy.pure
        return self.privacy

    def allows_index(self, encoding: Encoding | Indexed, group: int = 1) -> bool:
        """Whether an epoch's reports are drawn exactly as the plan says."""
        kinds = [kind for name, kind in INDEXED.items() if name == self.encoding]
        if not isinstance(encoding, Indexed) or type(encoding) not in kinds:
            return False
        cap = self.cap_of(type(encoding), encoding.dimension, group)
        if isinstance(self.privacy, ShuffledDP):
            return encoding.cap == cap and self.privacy.allows(cap, group)
        return encoding.cap == cap and cap.is_within(self.report_epsilon)


@lru_cache(maxsize=256)
def _cap(kind: type[Indexed], epsilon: Fraction, dimension: int, size: int) -> Cap:
    if kind is INDEXED["codebook"]:
        return best_cap(epsilon, dimension, size)
    return best_window(epsilon, size)


@lru_cache(maxsize=1024)
def _level(
    privacy: ShuffledDP, kind: type[Indexed], dimension: int, group: int, size: int
) -> Fraction:
    return privacy.level(group, lambda level: _cap(kind, level, dimension, size))


def codewords_of(written: int | None, encoding: EncodingChoice, *, fill: bool) -> int | None:
    """How many codewords reports are chosen from; None where reports are no indices."""
    if encoding not in INDEXED:
        if written is not None:
            raise InvalidArgument("codewords", "nothing where reports are no indices")
        return None
    if written is None:
        return CODEWORDS if fill else None
    size = checks.count("codewords", written)
    if size % 2 or not 16 <= size <= MOST_CODEWORDS:
        words = f"an even number between 16 and {MOST_CODEWORDS}"
        raise InvalidArgument("codewords", words, size)
    return size


def is_pure(privacy: Privacy) -> bool:
    """Whether every report has to be an index, which costs no delta by itself."""
    alone = isinstance(privacy, LocalDP) and privacy.delta is None
    return alone or isinstance(privacy, ShuffledDP)


def index_cost(privacy: LocalDP | ShuffledDP | JointDP) -> PurePrivacy:
    """What all of a person's reports cost, if they are indices."""
    return privacy.cost if isinstance(privacy, ShuffledDP) else PurePrivacy(privacy.epsilon)


def tells_more(privacy: Privacy, *, box: bool) -> bool:
    """Whether reports that are indices are the default: where they tell a residual better.

    Without delta, or mixed, they are the only ones; with one they are compared with Gaussian noise,
    which tells h with 4 / mu^2 along directions that are known. A public rule: privacy is the same.

    >>> [tells_more(LocalDP(epsilon, 0.1), box=True) for epsilon in (0.5, 1.0, 8.0)]
    [False, True, True]
    >>> tells_more(LocalDP(0.5, 1e-6), box=True), tells_more(LocalDP(1.0, 0.1), box=False)
    (True, False)
    """
    if not isinstance(privacy, LocalDP) or privacy.delta is None:
        return isinstance(privacy, LocalDP | ShuffledDP)
    if not SMALLEST_EPSILON <= privacy.epsilon_per_round <= LARGEST_EPSILON:
        return False
    return index_variance(privacy, box=box) < 4.0 / privacy.mu_per_round**2


def index_variance(promise: LocalDP, *, box: bool) -> float:
    """The variance with which one index tells a typical residual, in squared widths.

    Gaussian noise of a budget mu tells it with 4 / mu^2.

    >>> [round(index_variance(LocalDP(epsilon), box=True), 3) for epsilon in (1.0, 8.0)]
    [3.833, 0.004]
    >>> [round(index_variance(LocalDP(epsilon), box=False), 2) for epsilon in (1.0, 8.0)]
    [6.01, 0.2]
    """
    epsilon = promise.epsilon_per_round
    if box:
        return window_variance(best_window(epsilon, CODEWORDS), TYPICAL)
    cap = best_cap(epsilon, TYPICAL_DIRECTIONS, CODEWORDS)
    return 1.0 / (TYPICAL_DIRECTIONS * contraction(cap, TYPICAL_DIRECTIONS) ** 2)
