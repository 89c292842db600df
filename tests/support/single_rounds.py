"""The oracle of simulations: a real bandit that asks and tells one person after the other."""

from collections.abc import Mapping

from discreet import Bandit
from discreet.privacy.budget import Simulation
from discreet.simulation.play import Run, plan_for
from discreet.simulation.worlds import World, row_of


class BanditPlayer:
    """A bandit as a player of a world."""

    def __init__(self, plan, simulation):
        self.bandit = Bandit(plan, simulation=simulation)

    def act(self, options):
        user = f"user {self.bandit.asked}"
        if isinstance(options, Mapping):
            self._trial = self.bandit.ask(context=options, user=user)
        else:
            candidates = None if options is None else self._named(options)
            self._trial = self.bandit.ask(candidates, user=user)
            if self._trial.chosen is not None:
                return options[self._trial.chosen]
        return row_of(self.bandit.plan.domain, self._trial.action)

    def hear(self, reward):
        self.bandit.tell(self._trial, reward)

    def _named(self, rows):
        """Categories by their names, as a bandit takes them."""
        domain = self.bandit.plan.domain
        coordinates = [domain.coordinate(name) for name in domain.names]
        return [
            [coordinate.value(number) for coordinate, number in zip(coordinates, row, strict=True)]
            for row in rows.tolist()
        ]


def simulate_singly(make_problem, setting, *, seed, run=0):
    """As `simulate`, through the bandit that people use."""
    world = World.draw(make_problem, seed=seed, run=run)
    plan = plan_for(world.problem, setting, world.decisions, f"simulation {seed}.{run}")
    player = BanditPlayer(plan, Simulation(int(world.player.integers(2**63))))
    regrets, seconds = world.play(player, setting.rounds)
    player.bandit.finish()
    return Run(world.problem, regrets, player.bandit.study, seconds)
