"""Private Gaussian-process bandits.

A *plan* is the public agreement: domain, kernel, reward range, privacy. A *bandit* asks for
actions and is told rewards. Each *epoch* is a block of asks under one frozen public policy;
answers become integers, integers become sums, and one *release* an epoch updates the posterior
from which the next epoch is made. A *study* is the public record of all that. Where nobody is
trusted, each person's *client* sends randomised reports, and a *server* adds them. Where one
party is, it is a *custodian* of answers, and a *publisher* of its releases opens the epochs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.bandit import Bandit, Trial
    from discreet.budget import JointDP, LocalDP, NonPrivate, Simulation
    from discreet.client import Client
    from discreet.custodian import Custodian
    from discreet.domain import Box, Categorical, Continuous, Integer
    from discreet.errors import DiscreetError
    from discreet.kernels import (
        Additive,
        Learned,
        Linear,
        Matern,
        Part,
        Polynomial,
        SquaredExponential,
    )
    from discreet.plan import Exploration, Plan, Schedule
    from discreet.plan_file import read_plan
    from discreet.publisher import Publisher
    from discreet.server import Server
    from discreet.study import Recommendation, Study

__all__ = [
    "Additive",
    "Bandit",
    "Box",
    "Categorical",
    "Client",
    "Continuous",
    "Custodian",
    "DiscreetError",
    "Exploration",
    "Integer",
    "JointDP",
    "Learned",
    "Linear",
    "LocalDP",
    "Matern",
    "NonPrivate",
    "Part",
    "Plan",
    "Polynomial",
    "Publisher",
    "Recommendation",
    "Schedule",
    "Server",
    "Simulation",
    "SquaredExponential",
    "Study",
    "Trial",
    "read_plan",
]

# Names load when they are used: a command line that completes a word needs none of them.
_PLACES = {
    "bandit": ("Bandit", "Trial"),
    "budget": ("JointDP", "LocalDP", "NonPrivate", "Simulation"),
    "client": ("Client",),
    "custodian": ("Custodian",),
    "domain": ("Box", "Categorical", "Continuous", "Integer"),
    "errors": ("DiscreetError",),
    "kernels": (
        "Additive",
        "Learned",
        "Linear",
        "Matern",
        "Part",
        "Polynomial",
        "SquaredExponential",
    ),
    "plan": ("Exploration", "Plan", "Schedule"),
    "plan_file": ("read_plan",),
    "publisher": ("Publisher",),
    "server": ("Server",),
    "study": ("Recommendation", "Study"),
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
