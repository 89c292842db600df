"""The encodings there are, by the names that plans call them."""

from typing import Literal

from discreet.privacy.announced import AnnouncedEncoding
from discreet.privacy.directed import DirectedEncoding
from discreet.privacy.fourier import FourierEncoding
from discreet.privacy.gram import GramEncoding
from discreet.privacy.reward import RewardEncoding

Encoding = GramEncoding | FourierEncoding | RewardEncoding | AnnouncedEncoding | DirectedEncoding
EncodingName = Literal["gram", "fourier", "reward", "announced", "directed"]
EncodingChoice = Literal["auto", "gram", "fourier", "reward", "announced", "directed"]

ENCODINGS: dict[EncodingName, type[Encoding]] = {
    "gram": GramEncoding,
    "fourier": FourierEncoding,
    "reward": RewardEncoding,
    "announced": AnnouncedEncoding,
    "directed": DirectedEncoding,
}
