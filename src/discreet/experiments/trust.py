"""What trust is worth: the same studies where a custodian is trusted, a shuffler, or nobody.

One epsilon and one realistic delta. Everyone plays the default plan; local reports need no delta.
The growth of regret with the number of people is read off the curves.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import product

from discreet.arrays import Floats
from discreet.errors import InvalidArgument
from discreet.experiments.contenders import Played, Trial, play_with
from discreet.experiments.tables import cell, head, line
from discreet.features.choose import FeatureChoice
from discreet.privacy.budget import JointDP, LocalDP, NonPrivate, Privacy
from discreet.privacy.shuffled import ShuffledDP
from discreet.simulation.play import Model, Setting, simulate
from discreet.simulation.problems import find_problem

EPSILON, DELTA = 1.0, 1e-6
#: The problems, and their features: for contexts the same few in every model.
PROBLEMS: dict[str, FeatureChoice] = {
    "camelback": "auto",
    "synthetic": "auto",
    "dosing-1": "leading",
    "dosing-3": "leading",
}
#: Who is trusted, from everyone to nobody; and what learns nothing.
MODELS: dict[str, str] = {
    "none": "not private",
    "joint": "a custodian",
    "shuffled": "a shuffler",
    "local": "nobody",
    "random": "uniform play",
}


def trust_trials(runs: int, rounds: int, seed: int = 2026) -> Iterator[Trial]:
    """Runs of every model on every problem; the level of each model is part of its trial."""
    for run, problem, model in product(range(runs), PROBLEMS, MODELS):
        epsilon, delta = _level(model)
        yield Trial(problem, model, epsilon, delta, rounds, seed, run)


def _level(model: str) -> tuple[float, float]:
    if model in ("none", "random"):
        return math.inf, 0.0
    return EPSILON, 0.0 if model == "local" else DELTA


def play_trust(trial: Trial) -> Played:
    """The regret of a trial whose way is a model of trust."""
    return play_with(_regrets, trial)


def _regrets(trial: Trial) -> Floats:
    settings: dict[str, tuple[Model, Privacy]] = {
        "none": ("none", NonPrivate()),
        "random": ("random", NonPrivate()),
        "joint": ("joint", JointDP(EPSILON, DELTA)),
        "shuffled": ("shuffled", ShuffledDP(EPSILON, DELTA)),
        "local": ("local", LocalDP(EPSILON)),
    }
    if trial.way not in settings:
        raise InvalidArgument("way", f"one of {', '.join(settings)}", trial.way)
    model, privacy = settings[trial.way]
    setting = Setting(model, trial.rounds, features=PROBLEMS[trial.problem], privacy=privacy)
    return simulate(find_problem(trial.problem), setting, seed=trial.seed, run=trial.run).regrets


def trust_table(rows: Sequence[Played]) -> list[str]:
    """A row for each model of trust, a column for each problem."""
    lines = head(["trusted", *PROBLEMS])
    for model, name in MODELS.items():
        found = [
            [row.regret for row in rows if (row.problem, row.way) == (problem, model)]
            for problem in PROBLEMS
        ]
        lines.append(line([name, *map(cell, found)]))
    return lines
