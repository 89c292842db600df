"""Studies as their authors wrote them: the scripts behind the files in the folders beside this one.

Each plan is one that a version of this package made, ran and left in the middle of a study. The
words stay as they were: a script that ran then must go on now. Only public names are used.
"""

import discreet


def box(folder):
    """Joint privacy over the whole box: rounds are looked at again."""
    return discreet.Plan(
        domain=discreet.Box({"dose": (0, 10), "hour": discreet.Integer(0, 23)}),
        kernel=discreet.SquaredExponential(lengthscale=0.5),
        rewards=(0.0, 1.0),
        privacy=discreet.JointDP(epsilon=8.0, delta=1e-6),
        horizon=400,
    )


def context(folder):
    """Private contexts, a predicate, several rounds a person."""
    return discreet.Plan(
        domain=discreet.Box(
            {"dose": (0, 10), "age": discreet.Integer(18, 90)},
            context=["age"],
            feasible="dose * age <= 800",
        ),
        kernel=discreet.SquaredExponential(lengthscale=0.7),
        rewards=(-1.0, 1.0),
        privacy=discreet.JointDP(epsilon=4.0, delta=1e-5, rounds_per_user=2),
        schedule=discreet.Schedule(first=20, growth=1.5),
        noise_std=0.2,
        name="dosing by age",
    )


def candidates(folder):
    """Public candidates with categories, where only rewards are protected."""
    return discreet.Plan(
        domain=discreet.Box({"price": (1, 5), "page": discreet.Categorical(("old", "new"))}),
        kernel=discreet.Matern(lengthscale=1.0, smoothness=2.5),
        privacy=discreet.JointDP(epsilon=2.0, delta=1e-5, protect="rewards"),
        decisions="candidates",
        public_decisions=True,
        kernel_error=0.05,
        schedule=discreet.Schedule(first=15, growth=1.5),
        horizon=200,
    )


def local(folder):
    """Nobody is trusted."""
    return discreet.Plan(
        domain=discreet.Box({"dose": (0, 10)}),
        kernel=discreet.SquaredExponential(lengthscale=0.4),
        privacy=discreet.LocalDP(epsilon=8.0, delta=1e-3),
        schedule=discreet.Schedule(first=12, growth=1.5, second=12),
    )


def local_context(folder):
    """Nobody is trusted, and people differ."""
    return discreet.Plan(
        domain=discreet.Box({"dose": (0, 10), "age": (18, 90)}, context=["age"]),
        kernel=discreet.SquaredExponential(lengthscale=0.8),
        privacy=discreet.LocalDP(epsilon=8.0, delta=1e-3, rounds_per_user=2),
        schedule=discreet.Schedule(first=10, growth=1.5),
    )


def correlated(folder):
    """The paper's algorithm: a binary tree, a release every round."""
    return discreet.Plan(
        domain=discreet.Box({"dose": (0, 10)}),
        kernel=discreet.SquaredExponential(lengthscale=0.3),
        privacy=discreet.JointDP(epsilon=4.0, delta=1e-3),
        decisions="candidates",
        noise="tree",
        horizon=32,
    )


def proven(folder):
    """The paper's algorithm as proven, with buffers and without a horizon."""
    return discreet.Plan(
        domain=discreet.Box({"dose": (0, 10)}),
        kernel=discreet.SquaredExponential(lengthscale=0.5),
        privacy=discreet.JointDP(epsilon=4.0, delta=1e-3),
        noise="blt",
        confidence="theory",
        norm=1.0,
    )


def not_private(folder):
    """No privacy, a kernel that is learnt."""
    middle = discreet.SquaredExponential(lengthscale=0.8)
    return discreet.Plan(
        domain=discreet.Box({"a": (0, 1), "b": (0, 1)}),
        kernel=discreet.Learned.around(middle, factor=2.0),
        privacy=discreet.NonPrivate(),
        kernel_error=0.05,
        exploration=discreet.Exploration(optimism=0.2, sampling=0.4, draws=16),
        horizon=120,
    )


def followed(folder):
    """What an earlier study learnt is where this one begins."""
    earlier = discreet.Study.load(folder / "finished.json")
    return discreet.Plan(
        domain=earlier.plan.domain,
        features=earlier.plan.map,
        kernel=earlier.plan.kernel,
        prior=earlier.prior(),
        privacy=discreet.JointDP(epsilon=8.0, delta=1e-6),
        looks=(0.8, 0.6),
        expire_after=50,
        horizon=200,
    )


def once(folder):
    """A look that counts half, where no round is looked at again: it meant nothing."""
    return discreet.Plan(
        domain=discreet.Box({"dose": (0, 10)}),
        kernel=discreet.Linear(),
        privacy=discreet.JointDP(epsilon=4.0, delta=1e-3),
        encoding="gram",
        looks=(0.5,),
        schedule=discreet.Schedule(first=6, growth=1.5),
    )


PLANS = {
    make.__name__: make
    for make in (
        box,
        context,
        candidates,
        local,
        local_context,
        correlated,
        proven,
        not_private,
        followed,
        once,
    )
}


def brought(plan, number):
    """What person `number` brings to an ask."""
    if plan.decisions == "context":
        return {"context": {"age": 18 + 7 * number % 72}}
    if plan.decisions == "candidates" and "page" in plan.domain.names:
        pages = ("old", "new", "old")
        prices = (1.0 + number % 3, 2.5, 4.0)
        rows = zip(prices, pages, strict=True)
        return {"candidates": [{"price": price, "page": page} for price, page in rows]}
    if plan.decisions == "candidates":
        return {"candidates": [[1.0 + number % 5], [4.0], [9.0]]}
    return {}


def reward(number):
    """What person `number` answers; no two answers are alike."""
    return (number * 0.6180339887498949) % 1.0


def take_part(bandit, visits):
    """So many more visits: every fifth answers late, every eleventh never does."""
    plan = bandit.plan
    for number in range(bandit.asked, bandit.asked + visits):
        person = "nobody" if isinstance(plan.privacy, discreet.NonPrivate) else f"person {number}"
        trial = bandit.ask(user=person, **brought(plan, number))
        if number % 11 == 10:
            bandit.abandon(trial)
        elif number % 5 != 4:
            bandit.tell(trial, reward(number))
        for late in bandit.open_trials:
            if late < number - 3:
                bandit.tell(late, reward(late))
