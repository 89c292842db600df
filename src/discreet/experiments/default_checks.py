"""What is promised of a plan that names no kernel, measured on problems with known answers.

    python -m discreet.experiments.default_checks harm --runs 8
    python -m discreet.experiments.default_checks coverage --runs 200 --resume coverage.jsonl
    python -m discreet.experiments.default_checks arms --runs 24
    python -m discreet.experiments.default_checks kernels --runs 24
    python -m discreet.experiments.default_checks parts --runs 6 --figure parts.png

*harm*: regret of short studies beside that of uniform play. *coverage*: how often the 95% interval
at the recommended action holds the true mean, for one new person a run. *arms*: the second half of
long studies; one that mostly plays an arm worse by 0.05 costs more than 0.025 a round there.
*kernels*: the default beside the kernel that a problem's author would name.
*parts*: what the default costs with one of its parts taken away. Runs are finished lines of the
file `--resume`, so a campaign goes on where it stopped, and prints again what it found;
`--problem` plays some problems alone. Seeds are nobody's choice but the caller's.
"""

import argparse
import itertools
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from discreet.agreement.plan import Plan
from discreet.agreement.schedule import Exploration
from discreet.arrays import Floats
from discreet.errors import ShortHorizon
from discreet.experiments.default_figure import Bar, draw_parts
from discreet.features.kernels import SquaredExponential, Structured
from discreet.learning.belief import Spending
from discreet.privacy.budget import JointDP
from discreet.privacy.directed import MOST_DIRECTIONS
from discreet.privacy.looks import ONE_LOOK
from discreet.simulation.campaign import Campaign
from discreet.simulation.differing import Arms, Dosing, Pricing
from discreet.simulation.play import Run, Setting, simulate, standard_error
from discreet.simulation.prior_problem import Drawn
from discreet.simulation.problems import find_problem
from discreet.simulation.worlds import MakeProblem

DELTA = 1e-6
SHORT = (
    *("synthetic", "camelback", "styblinski-tang", "michalewicz", "hartmann6", "arms"),
    *("dosing-1", "dosing-3", "dosing-6"),
    *("dosing-1-skewed", "dosing-3-skewed", "dosing-6-skewed"),
)
#: The levels of privacy at which short studies are played.
LEVELS = (0.3, 1.0, 3.0, 8.0)
#: Problems on which intervals are judged, and how many people come.
JUDGED = {"prior": 4000, "dosing-3": 4000, "arms": 2000, "hartmann6": 4000}


@dataclass(frozen=True)
class Cell:
    """Runs of one problem under one promise; an epsilon of None is uniform play."""

    problem: str
    epsilon: float | None
    rounds: int
    part: str = "the default"
    changes: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    spending: Spending | None = None

    def play(self, seed: int, run: int) -> Run:
        """One of them."""
        setting = Setting("random", self.rounds)
        if self.epsilon is not None:
            open_kernel = {"kernel": Structured(), **self.changes}
            privacy = JointDP(self.epsilon, DELTA)
            setting = Setting("joint", self.rounds, privacy=privacy, changes=open_kernel)
        with warnings.catch_warnings(action="ignore", category=ShortHorizon):
            return simulate(
                _problem(self.problem), setting, seed=seed, run=run, spending=self.spending
            )

    @property
    def name(self) -> str:
        """For people."""
        level = "uniform play" if self.epsilon is None else f"epsilon = {self.epsilon:g}"
        return f"{self.problem}, {level}, T = {self.rounds}, {self.part}"


def _problem(name: str) -> MakeProblem:
    if name != "prior":
        return find_problem(name)
    like = Dosing(3)
    plan = Plan(
        like.domain,
        JointDP(8.0, DELTA),
        rewards=like.rewards,
        horizon=JUDGED["prior"],
        signal_std=0.15,  # around a level that varies, too: answers lie within the range
        noise_std=like.noise_std,
    )
    return lambda rng: Drawn.draw(plan, 1, rng)


def row_of(run: Run, number: int) -> dict[str, float]:
    """What is kept of a run: regret in all and a round in the second half; who was covered."""
    row = {"regret": float(run.regrets.sum())}
    row["late"] = float(run.regrets[len(run.regrets) // 2 :].mean())
    if run.study is None or run.study.plan.decisions == "candidates":
        return row
    domain = run.problem.domain
    newcomer = np.random.Generator(np.random.Philox(number))
    brought = run.problem.decision_set(newcomer)
    best = run.study.best(context=brought if isinstance(brought, Mapping) else None)
    action = np.array([[domain.coordinate(n).number(best.action[n]) for n in domain.names]])
    truth, (low, high) = float(run.problem.mean(action)[0]), best.interval
    middle, narrow = (low + high) / 2.0, (high - low) / 2.0 / np.sqrt(run.study.misfit)
    row["covered"] = float(low <= truth <= high)
    row["covered by the model alone"] = float(abs(truth - middle) <= narrow)
    return row


# -- the checks


def _harm() -> Iterator[Cell]:
    for rounds in (500, 2000):
        for problem in SHORT:
            for epsilon in (None, *LEVELS):
                yield Cell(problem, epsilon, rounds)


def _coverage() -> Iterator[Cell]:
    for problem, rounds in JUDGED.items():
        for epsilon in (1.0, 8.0):
            yield Cell(problem, epsilon, rounds)


def _arms() -> Iterator[Cell]:
    for epsilon in (8.0, 4.0, 1.0):
        yield Cell("arms", epsilon, 20_000)


def _kernels() -> Iterator[Cell]:
    dosing = {f"dosing-{contexts}": Dosing(contexts) for contexts in (1, 3, 6)}
    for problem, has in (dosing | {"arms": Arms(), "pricing": Pricing()}).items():
        rounds = JUDGED.get(problem, 4000)
        for epsilon in (1.0, 8.0):
            yield Cell(problem, epsilon, rounds)
            yield Cell(problem, epsilon, rounds, "its own kernel", {"kernel": has.kernel})


def _parts() -> Iterator[Cell]:
    whole = Cell("", 1.0, 0)
    yield from _on_problems(whole)
    one = {"kernel": SquaredExponential(0.5)}
    yield from _on_problems(replace(whole, part="one kernel, no structures", changes=one))
    yield from _on_problems(replace(whole, part="one look", changes={"looks": ONE_LOOK}))
    shy = {"exploration": Exploration(0.0, 0.4, foresight=True)}
    yield from _on_problems(replace(whole, part="no bold scores", changes=shy))
    draws = {"exploration": Exploration(0.0, 0.4)}
    yield from _on_problems(replace(whole, part="no bold scores, no foresight", changes=draws))
    for part, spending in {
        "rewards clipped at their range": Spending(width_in_stds=np.inf),
        "as many directions as there may be": Spending(counts=(MOST_DIRECTIONS,)),
        "the law of who comes is not learnt": Spending(learns_law=False),
    }.items():
        yield from _on_problems(replace(whole, part=part, spending=spending))


def _on_problems(cell: Cell) -> Iterator[Cell]:
    for epsilon in (1.0, 8.0):
        yield replace(cell, problem="dosing-3-skewed", epsilon=epsilon, rounds=4000)
        yield replace(cell, problem="arms", epsilon=epsilon, rounds=2000)


CHECKS: dict[str, Callable[[], Iterator[Cell]]] = {
    "harm": _harm,
    "coverage": _coverage,
    "arms": _arms,
    "kernels": _kernels,
    "parts": _parts,
}


def _kept(campaign: Campaign, cell: Cell, seed: int, run: int) -> dict[str, float]:
    return campaign.run(f"{cell.name}, run {run}", lambda: row_of(cell.play(seed, run), run))


@dataclass(frozen=True)
class Found:
    """A cell, and the rows of its runs."""

    cell: Cell
    rows: tuple[Mapping[str, float], ...]

    @property
    def regrets(self) -> Floats:
        """The regret of each run."""
        return np.array([row["regret"] for row in self.rows])


def play(
    check: str, runs: int, seed: int, resume: Path | None, problems: Sequence[str] = ()
) -> Iterator[Found]:
    """The cells of a check, played or read from a file; of some problems, or of all."""
    campaign = Campaign(resume, {"check": check, "seed": seed})
    for cell in CHECKS[check]():
        if not problems or cell.problem in problems:
            yield Found(cell, tuple(_kept(campaign, cell, seed, run) for run in range(runs)))


def lines(cells: Iterable[Found]) -> Iterator[str]:
    """What was found, a line a cell.

    >>> cell = Cell("arms", 8.0, 2000)
    >>> next(lines([Found(cell, ({"regret": 40.0, "late": 0.01},))]))
    'arms, epsilon = 8, T = 2000, the default: 40 ± 0, worst 40; late 0.0100, worst 0.0100'
    """
    for each in cells:
        cell, rows, regrets = each.cell, each.rows, each.regrets
        text = f"{cell.name}: {_mean(regrets)}, worst {regrets.max():.0f}"
        text += f"; late {np.mean([r['late'] for r in rows]):.4f}"
        text += f", worst {max(r['late'] for r in rows):.4f}"
        for which in ("covered", "covered by the model alone"):
            if which in rows[0]:
                text += f"; {which} {np.mean([r[which] for r in rows]):.0%}"
        yield text


def shares(cells: Iterable[Found]) -> Iterator[str]:
    """Regret as a share of that of uniform play: a table, a line for each problem and T.

    >>> uniform = Found(Cell("arms", None, 500), ({"regret": 40.0, "late": 0.1},))
    >>> private = Found(Cell("arms", 1.0, 500), ({"regret": 30.0, "late": 0.1},))
    >>> list(shares([uniform, private]))[-1]
    '| arms | 500 | 40 ± 0 | 0.75 ± 0.00 (0.75) |'
    """
    levels = " | ".join(f"ε = {epsilon:g}" for epsilon in LEVELS)
    yield f"| problem | T | uniform play | {levels} |"
    yield "|---|---|---|" + "---|" * len(LEVELS)
    for (problem, rounds), group in itertools.groupby(
        cells, lambda each: (each.cell.problem, each.cell.rounds)
    ):
        uniform, *private = (each.regrets for each in group)
        row = [problem, str(rounds), _mean(uniform), *(_share(each, uniform) for each in private)]
        yield f"| {' | '.join(row)} |"


def _mean(regrets: Floats) -> str:
    return f"{regrets.mean():.0f} ± {standard_error(regrets) or 0.0:.0f}"


def _share(regrets: Floats, uniform: Floats) -> str:
    """The ratio of the means, its error, and that of the worst run."""
    share, whole = regrets.mean() / uniform.mean(), uniform.mean()
    errors = (standard_error(regrets) or 0.0, share * (standard_error(uniform) or 0.0))
    return f"{share:.2f} ± {np.hypot(*errors) / whole:.2f} ({regrets.max() / whole:.2f})"


def _panels(cells: Iterable[Found]) -> dict[str, dict[str, Bar]]:
    """What was found as bars: for each problem and level, one for each part taken away."""
    panels: dict[str, dict[str, Bar]] = {}
    for each in cells:
        title = f"{each.cell.problem}, ε = {each.cell.epsilon:g}"
        bar = Bar(float(each.regrets.mean()), standard_error(each.regrets) or 0.0)
        panels.setdefault(title, {})[each.cell.part] = bar
    return panels


def main(arguments: list[str] | None = None) -> None:
    """Print what a check finds."""
    parser = argparse.ArgumentParser(description="Measure what is promised of the default plan.")
    parser.add_argument("check", choices=sorted(CHECKS))
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--resume", type=Path)
    parser.add_argument("--problem", action="append", default=[], help="only this one; repeat")
    parser.add_argument("--figure", type=Path, help="of parts: what the default costs without each")
    given = parser.parse_args(arguments)
    if given.figure is not None and given.check != "parts":
        parser.error("--figure draws what parts are worth: give it to parts")
    known = {cell.problem for cell in CHECKS[given.check]()}
    if unknown := sorted(set(given.problem) - known):
        parser.error(f"--problem {unknown[0]}: {given.check} has {', '.join(sorted(known))}")
    cells = play(given.check, given.runs, given.seed, given.resume, given.problem)
    shown, drawn = itertools.tee(cells)
    for text in shares(shown) if given.check == "harm" else lines(shown):
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    if given.figure is not None:
        draw_parts(_panels(drawn), given.figure)


if __name__ == "__main__":
    main()
