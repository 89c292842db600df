"""What it saves to play everyone of an epoch at once: a long simulation, and a forecast.

    python benchmarks/simulation.py                        a million rounds against single ones
    python benchmarks/simulation.py --rounds 100000
    python benchmarks/simulation.py --against OLD/src      also the forecast, against older code

CPU time. Single rounds are those of a real bandit in the same study; its first 3,000 are played,
and a million would cost at least a million times their median: the median leaves out every turn of
an epoch, which both ways have. Both ways are in one process, one after the other. The forecast is
that of docs/examples/dosing.toml, each in a process of its own, in turns.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from discreet import Bandit, JointDP, Simulation
from discreet.simulation.play import Setting, plan_for, simulate
from discreet.simulation.problems import find_problem
from discreet.simulation.worlds import World, row_of
from discreet.threads import one_thread

ROOT = Path(__file__).parents[1]
PRIVACY = JointDP(epsilon=1.0, delta=0.1)
SINGLE = 3_000


@one_thread
def single_rounds(setting: Setting) -> list[float]:
    """The CPU time of each of the first rounds, asked and told one by one."""
    world = World.draw(find_problem("camelback"), seed=0)
    plan = plan_for(world.problem, setting, world.decisions, "simulation 0.0")
    bandit, taken = Bandit(plan, simulation=Simulation(0)), []
    for number in range(min(SINGLE, setting.rounds)):
        begun = time.process_time()
        trial = bandit.ask(user=number)
        reward = world.problem.reward(row_of(plan.domain, trial.action), world.answers)
        bandit.tell(trial, reward)
        taken.append(time.process_time() - begun)
    return taken


def long_simulation(rounds: int) -> None:
    setting = Setting("joint", rounds, privacy=PRIVACY)
    taken = single_rounds(setting)
    run = simulate(find_problem("camelback"), setting, seed=0)
    median, together = statistics.median(taken), run.seconds / rounds
    print(
        f"camelback, epsilon = 1, {rounds:,} rounds in {len(run.study.epochs)} epochs\n"
        f"  one by one   {1e6 * median:8.1f} us a round, median of the first {len(taken):,}"
        f" (mean with turns {1e6 * statistics.mean(taken):.1f})\n"
        f"  at once      {1e6 * together:8.1f} us a round with turns, {run.seconds:.1f} s in all\n"
        f"  ratio        {median / together:8.1f}, or more"
    )


def forecast_seconds(source: Path) -> float:
    """The CPU time of the default forecast of the dosing plan, by this code, compiled before."""
    plan = str(ROOT / "docs" / "examples" / "dosing.toml")
    with tempfile.TemporaryDirectory() as folder:
        settings = {"PYTHONPATH": str(source), "PYTHONPYCACHEPREFIX": folder}
        given = os.environ | settings | {"PYTHONDONTWRITEBYTECODE": "", "OPENBLAS_NUM_THREADS": "1"}

        def forecast(*more: str) -> None:
            figure = ("--plan", plan, "--figure", str(Path(folder) / "forecast.png"))
            command = [sys.executable, "-m", "discreet.cli", "forecast", *figure, *more]
            subprocess.run(command, env=given, check=True, capture_output=True)

        forecast("--rounds", "20", "--functions", "1")
        before = _children()
        forecast()
        return _children() - before


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--against", type=Path, help="the src folder of older code")
    parser.add_argument("--times", type=int, default=1, help="forecasts of each code")
    given = parser.parse_args()
    long_simulation(given.rounds)
    if given.against is None:
        return
    taken: dict[Path, list[float]] = {given.against: [], ROOT / "src": []}
    for _ in range(given.times):
        for source, found in taken.items():
            found.append(forecast_seconds(source))
    before, after = map(statistics.median, taken.values())
    print(f"forecast: before {before:.1f} s, now {after:.1f} s, ratio {before / after:.1f}")


if __name__ == "__main__":
    main()
