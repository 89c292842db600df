"""Plans of the local model, one for each way a round is encoded, and what people bring to them."""

from discreet import Box, LocalDP, Plan, Schedule, SquaredExponential

CANDIDATES = {"candidates": [[1.0], [4.0], [9.0]]}
#: What an ask of each plan brings.
SETS = {
    "reward": {},
    "fourier": CANDIDATES,
    "gram": CANDIDATES,
    "context": {"context": {"age": 61}},
}


def local_plan(**parts):
    defaults = {
        "domain": Box({"dose": (0, 10)}),
        "privacy": LocalDP(4.0, 1e-3),
        "kernel": SquaredExponential(0.4),
        "schedule": Schedule(first=3, growth=2.0),
    }
    given = defaults | parts
    box = given.get("decisions", "box") == "box" and not given["domain"].has_context
    noisy = {"encoding": "reward" if box else "fourier"}  # indices have tests of their own
    return Plan(**(noisy | given))


def local_plans(**parts):
    """One plan of each kind, by name."""
    aged = Box({"dose": (0, 10), "age": (18, 90)}, context=["age"])
    return {
        "reward": local_plan(**parts),
        "fourier": local_plan(decisions="candidates", **parts),
        "gram": local_plan(decisions="candidates", encoding="gram", **parts),
        "context": local_plan(domain=aged, **parts),
    }
