"""What an earlier study learnt, as part of another one's plan."""

from dataclasses import dataclass

import numpy as np

from discreet.arrays import Floats
from discreet.errors import InvalidArgument


@dataclass(frozen=True, eq=False)
class Prior:
    """What an earlier study learnt, as a Gaussian over the coefficients of its features.

    `domain` and `features` are digests of what it was learnt on and `rewards` its range: a plan
    takes a prior only if all are its own. `releasable` says that it came from private releases,
    or that its data was declared public; a private plan takes no other.
    """

    domain: str
    features: str
    rewards: tuple[float, float]
    precision: Floats
    information: Floats
    releasable: bool

    def __post_init__(self) -> None:
        m = self.information.shape[0] if self.information.ndim == 1 else -1
        if self.precision.shape != (m, m):
            raise InvalidArgument("prior", "a square precision that fits the information vector")
        finite = np.isfinite(self.precision).all() and np.isfinite(self.information).all()
        if not finite or not _is_positive_definite(self.precision):
            raise InvalidArgument("prior", "a symmetric, positive definite precision")

    def check(
        self, *, domain: str, features: str, rewards: tuple[float, float], private: bool
    ) -> None:
        """Refuse to be the prior of a plan of another domain, map or range, or less private."""
        if self.features != features:
            raise InvalidArgument(
                "prior", "a study with these features: give features=study.plan.map"
            )
        if self.domain != domain:
            raise InvalidArgument("prior", "a study on the same domain")
        if private and not self.releasable:
            raise InvalidArgument(
                "prior",
                "a private study, or Study.prior(public_data=True) if the people behind it need no "
                "privacy: a plan is public",
            )
        if self.rewards != rewards:
            raise InvalidArgument("prior", f"a study with rewards {rewards}", self.rewards)

    def matches(self, other: "Prior") -> bool:
        """Whether this is what the same study taught, but for the last bits of its numbers."""
        same = (self.domain, self.features, self.rewards, self.releasable) == (
            other.domain, other.features, other.rewards, other.releasable,
        )  # fmt: skip
        return same and all(
            one.shape == two.shape and np.allclose(one, two, rtol=1e-6, atol=1e-9)
            for one, two in (
                (self.precision, other.precision),
                (self.information, other.information),
            )
        )


def _is_positive_definite(matrix: Floats) -> bool:
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return np.allclose(matrix, matrix.T, rtol=1e-9, atol=0.0)
