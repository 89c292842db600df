"""What a round costs, in one run on one thread: ours as rounds go by, and peers beside it.

    make bench                       the table
    make bench ARGS="--rounds 51000" as the bar asks: rounds near 50,000 against rounds near 1,000

A round is one ask over 25 candidates and one tell. Peers refit or extend an exact Gaussian
process, as they must; their state grows with the rounds. Medians of CPU time; compare ratios
within the run, not times between machines.
"""

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.linalg import solve_triangular
from threadpoolctl import threadpool_limits

import discreet

CANDIDATES = 25
NOISE = 0.25
KERNEL = discreet.SquaredExponential(0.25)


def reward(x: np.ndarray, rng: np.random.Generator) -> float:
    return float(np.sin(3 * x[0]) * x[1] / 2 + NOISE * rng.standard_normal())


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def ours(rounds: int, windows: dict[int, int]) -> tuple[dict[int, float], dict[int, int], int]:
    """Median CPU seconds of a round, and resident memory, around each of the given rounds."""
    rng = np.random.Generator(np.random.Philox(0))
    plan = discreet.Plan(
        domain=discreet.Box({"a": (0, 1), "b": (0, 1)}),
        privacy=discreet.NonPrivate(),
        kernel=KERNEL,
        rewards=(-1.5, 1.5),
        decisions="candidates",
        horizon=rounds,
    )
    bandit = discreet.Bandit(plan)
    spent: dict[int, list[float]] = {t: [] for t in windows}
    memory: dict[int, int] = {}
    for t in range(rounds):
        options = rng.random((CANDIDATES, 2))
        begun = time.process_time_ns()
        trial = bandit.ask(options)
        bandit.tell(trial, reward(options[trial.chosen], rng))
        elapsed = (time.process_time_ns() - begun) / 1e9
        for centre, width in windows.items():
            if abs(t - centre) <= width:
                spent[centre].append(elapsed)
                memory[centre] = resident_bytes()
    medians = {t: statistics.median(times) for t, times in spent.items()}
    return medians, memory, plan.map.dimension


def scikit_learn(x: np.ndarray, y: np.ndarray, options: np.ndarray) -> None:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    model = GaussianProcessRegressor(RBF(0.25), alpha=NOISE**2, optimizer=None).fit(x, y)
    mean, std = model.predict(options, return_std=True)
    int(np.argmax(mean + std))


def incremental(x: np.ndarray, y: np.ndarray, options: np.ndarray) -> None:
    """One more row of a kept Cholesky factor, then the posterior at fresh candidates."""
    factor = incremental.factors[len(x)]
    solve_triangular(factor, KERNEL(x, x[-1:])[:, 0], lower=True)
    across = solve_triangular(factor, KERNEL(x, options), lower=True)
    mean = across.T @ solve_triangular(factor, y, lower=True)
    int(np.argmax(mean + np.sqrt(np.maximum(1 - np.square(across).sum(axis=0), 0))))


incremental.factors = {}


def botorch(x: np.ndarray, y: np.ndarray, options: np.ndarray) -> None:
    import torch
    from botorch.acquisition import UpperConfidenceBound
    from botorch.models import SingleTaskGP
    from gpytorch.kernels import RBFKernel

    kernel = RBFKernel()
    kernel.lengthscale = 0.25
    points = torch.as_tensor(x)
    noise = torch.full((len(x), 1), NOISE**2, dtype=torch.float64)
    model = SingleTaskGP(
        points,
        torch.as_tensor(y)[:, None],
        noise,
        covar_module=kernel.double(),
        outcome_transform=None,
    )
    with torch.no_grad():
        UpperConfidenceBound(model, beta=1.0)(torch.as_tensor(options)[:, None, :]).argmax()


def peer(play: Callable[..., None], t: int) -> float | None:
    """Median CPU seconds of a peer's round after t rounds; None when it is not installed."""
    rng = np.random.Generator(np.random.Philox(t))
    x = rng.random((t, 2))
    y = np.array([reward(point, rng) for point in x])
    if play is incremental:
        incremental.factors[t] = np.linalg.cholesky(KERNEL(x, x) + NOISE**2 * np.eye(t))
    times = []
    for _ in range(3):
        begun = time.process_time()
        try:
            with warnings.catch_warnings(action="ignore"):
                play(x, y, rng.random((CANDIDATES, 2)))
        except ImportError:
            return None
        times.append(time.process_time() - begun)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=11_000)
    parser.add_argument("--peer-rounds", type=int, nargs="*", default=[100, 1000, 3000])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    late = arguments.rounds - 1000
    with threadpool_limits(1):
        medians, memory, features = ours(arguments.rounds, {1000: 100, late: 500})
        peers = {
            play.__name__: {t: peer(play, t) for t in arguments.peer_rounds}
            for play in (incremental, scikit_learn, botorch)
        }
    result = {
        "features": features,
        "seconds_near": medians,
        "growth": medians[late] / medians[1000],
        "memory_growth_bytes": memory[late] - memory[1000],
        "peers_seconds": peers,
    }
    if arguments.json:
        print(json.dumps(result))
        return
    print(f"discreet, {features} features, {CANDIDATES} candidates:")
    for t, seconds in medians.items():
        print(f"  near round {t:>6}: {1e3 * seconds:8.3f} ms")
    print(
        f"  growth: {result['growth']:.2f}x; memory: {result['memory_growth_bytes'] / 1e6:+.1f} MB"
    )
    for name, times in peers.items():
        for t, seconds in times.items():
            row = "not installed" if seconds is None else f"{1e3 * seconds:8.3f} ms"
            ratio = "" if seconds is None else f"  ({seconds / medians[1000]:.1f}x ours)"
            print(f"{name} at round {t:>6}: {row}{ratio}")


if __name__ == "__main__":
    main()
