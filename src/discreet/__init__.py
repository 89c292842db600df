"""Private Gaussian-process bandits.

A *plan* is the public agreement: domain, kernel, reward range, privacy. A *bandit* asks for
actions and is told rewards. Each *epoch* is a block of asks under one frozen public policy;
answers become integers, integers become sums, and one *release* an epoch updates the posterior
from which the next epoch is made. A *study* is the public record of all that. Where nobody is
trusted, each person's *client* sends randomised reports, and a *server* adds them; a *shuffler*
between the two mixes them. Where one party is, it is a *custodian* of answers, and a *publisher* of
its releases opens the epochs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.agreement.elimination import Elimination
    from discreet.agreement.plan import Exploration, Plan, Schedule
    from discreet.bandit import Bandit
    from discreet.domain.box import Box, Categorical, Continuous, Integer
    from discreet.errors import DiscreetError
    from discreet.features.kernels import (
        Additive,
        Categories,
        Learned,
        Linear,
        Matern,
        Part,
        Polynomial,
        Product,
        SquaredExponential,
        Structured,
    )
    from discreet.learning.elimination import Certificate
    from discreet.learning.study import Recommendation, Study
    from discreet.plan_file import read_plan
    from discreet.privacy.budget import JointDP, LocalDP, NonPrivate, Simulation
    from discreet.privacy.cost import GaussianPrivacy, MixedPrivacy, PurePrivacy, compose
    from discreet.privacy.shuffled import ShuffledDP
    from discreet.protocol.publisher import Publisher
    from discreet.protocol.server import Server
    from discreet.protocol.shuffle_server import ShuffleServer
    from discreet.trials import Trial, Trials
    from discreet.trusted.client import Client
    from discreet.trusted.custodian import Custodian
    from discreet.trusted.shuffler import Shuffler

__all__ = [
    "Additive",
    "Bandit",
    "Box",
    "Categorical",
    "Categories",
    "Certificate",
    "Client",
    "Continuous",
    "Custodian",
    "DiscreetError",
    "Elimination",
    "Exploration",
    "GaussianPrivacy",
    "Integer",
    "JointDP",
    "Learned",
    "Linear",
    "LocalDP",
    "Matern",
    "MixedPrivacy",
    "NonPrivate",
    "Part",
    "Plan",
    "Polynomial",
    "Product",
    "Publisher",
    "PurePrivacy",
    "Recommendation",
    "Schedule",
    "Server",
    "ShuffleServer",
    "ShuffledDP",
    "Shuffler",
    "Simulation",
    "SquaredExponential",
    "Structured",
    "Study",
    "Trial",
    "Trials",
    "compose",
    "read_plan",
]

# Names load when they are used: a command line that completes a word needs none of them.
_PLACES = {
    "bandit": ("Bandit",),
    "privacy.budget": ("JointDP", "LocalDP", "NonPrivate", "Simulation"),
    "privacy.cost": ("GaussianPrivacy", "MixedPrivacy", "PurePrivacy", "compose"),
    "trials": ("Trial", "Trials"),
    "trusted.client": ("Client",),
    "trusted.custodian": ("Custodian",),
    "trusted.shuffler": ("Shuffler",),
    "privacy.shuffled": ("ShuffledDP",),
    "protocol.shuffle_server": ("ShuffleServer",),
    "domain.box": ("Box", "Categorical", "Continuous", "Integer"),
    "errors": ("DiscreetError",),
    "features.kernels": (
        "Additive",
        "Categories",
        "Learned",
        "Linear",
        "Matern",
        "Part",
        "Polynomial",
        "Product",
        "SquaredExponential",
        "Structured",
    ),
    "agreement.elimination": ("Elimination",),
    "agreement.plan": ("Exploration", "Plan", "Schedule"),
    "plan_file": ("read_plan",),
    "protocol.publisher": ("Publisher",),
    "protocol.server": ("Server",),
    "learning.elimination": ("Certificate",),
    "learning.study": ("Recommendation", "Study"),
}
_PLACE_OF = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _PLACE_OF:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    found: object = getattr(import_module(f"discreet.{_PLACE_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*globals(), *__all__]
