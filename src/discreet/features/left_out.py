"""What maps of leading features share: what they leave out is known on average alone."""


class LeftOut:
    """A map of the leading features of a kernel.

    `kept` is the share of the kernel's variance that they carry, on average over the domain; the
    rest is left to the noise of rewards.
    """

    kept: float

    @property
    def error_bound(self) -> float:
        """1: what is left out is small on average, which says nothing uniform."""
        return 1.0
