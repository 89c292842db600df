"""The first study that dropped arms, as its author wrote it; its files are in `elimination`."""

from tests.stored.studies import take_part

import discreet

VISITS = 130


def plan():
    """Phases over a net, with an integer beside a number."""
    return discreet.Plan(
        domain=discreet.Box({"dose": (0, 10), "pills": discreet.Integer(1, 3)}),
        kernel=discreet.SquaredExponential(lengthscale=0.8),
        rewards=(0.0, 1.0),
        privacy=discreet.JointDP(epsilon=8.0, delta=1e-4),
        confidence="theory",
        norm=1.0,
        noise_std=0.2,
        schedule=discreet.Schedule(first=60, growth=2.0),
        elimination=discreet.Elimination(net=8, means=(0.1, 0.9), silence=0.1),
    )


def written(folder):
    """Write the journal and the export of a study that was left in its second phase."""
    with discreet.Bandit(plan(), folder / "study.db") as bandit:
        take_part(bandit, VISITS)
        bandit.export(folder / "study.json")
