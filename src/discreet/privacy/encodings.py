"""The encodings there are, by the names that plans call them."""

from typing import Literal

from discreet.privacy.announced import AnnouncedEncoding
from discreet.privacy.codebook import CodebookEncoding
from discreet.privacy.directed import DirectedEncoding
from discreet.privacy.fourier import FourierEncoding
from discreet.privacy.gram import GramEncoding
from discreet.privacy.interval import IntervalEncoding
from discreet.privacy.reward import RewardEncoding

#: A round as integers, to which noise is added.
Encoding = GramEncoding | FourierEncoding | RewardEncoding | AnnouncedEncoding | DirectedEncoding
#: A round as one index of a public list, drawn at random: no noise is added.
Indexed = CodebookEncoding | IntervalEncoding

EncodingName = Literal["gram", "fourier", "reward", "announced", "directed", "codebook", "interval"]
EncodingChoice = Literal[
    "auto", "gram", "fourier", "reward", "announced", "directed", "codebook", "interval"
]

ENCODINGS: dict[EncodingName, type[Encoding]] = {
    "gram": GramEncoding,
    "fourier": FourierEncoding,
    "reward": RewardEncoding,
    "announced": AnnouncedEncoding,
    "directed": DirectedEncoding,
}
INDEXED: dict[EncodingName, type[Indexed]] = {
    "codebook": CodebookEncoding,
    "interval": IntervalEncoding,
}
