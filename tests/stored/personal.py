"""A study whose kernel was left open and whose people differ, from before some contexts might idle.

Its files are in `personal`.
"""

import discreet

VISITS = 170


def plan():
    """Structures under two contexts, weighed by the releases; a horizon, so foresight."""
    return discreet.Plan(
        domain=discreet.Box(
            {"dose": (0, 10), "age": (18, 90), "weight": (40, 120)}, context=["age", "weight"]
        ),
        rewards=(0.0, 1.0),
        privacy=discreet.JointDP(epsilon=8.0, delta=1e-6),
        horizon=900,
    )


def take_part(bandit, visits):
    """So many more visits; every seventh person never answers."""
    for number in range(bandit.asked, bandit.asked + visits):
        age, weight = 18.0 + 7.3 * number % 72, 40.0 + 11.9 * number % 80
        context = {"age": age, "weight": weight}
        trial = bandit.ask(user=f"person {number}", context=context)
        if number % 7 == 6:
            bandit.abandon(trial)
            continue
        off = trial.action["dose"] / 10 - (age - 18) / 90
        bandit.tell(trial, max(0.0, 1.0 - 4.0 * off**2) * (0.8 + 0.2 * (number % 2)))


def written(folder):
    """Write the journal and the export of a study that was left in the middle."""
    with discreet.Bandit(plan(), folder / "study.db") as bandit:
        take_part(bandit, VISITS)
        bandit.export(folder / "study.json")
