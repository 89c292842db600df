"""Whether people are enough, in the words of a review board."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING, Context
from typing import Any

#: With so many times fewer people than needed, noise is most of what a study hears.
HOPELESS = 2


@dataclass(frozen=True)
class Goal:
    """What a study is for, as far as its people are counted.

    `begins` says whether the plan names first actions, `rule` is a condition on actions that also
    names contexts, and `visits` how often a person may take part.
    """

    decisions: str
    actions: tuple[str, ...]
    contexts: tuple[str, ...]
    begins: bool
    holds_back: bool
    rule: str | None
    visits: int

    @property
    def unit(self) -> str:
        """What is counted: people, or rounds where a person may have several."""
        return "people" if self.visits == 1 else "rounds"

    @property
    def action(self) -> str:
        """What is chosen, in words: a good dose, a good choice of minutes.

        >>> Goal("box", ("dose",), (), False, True, None, 1).action
        'dose'
        >>> Goal("box", ("dose", "pills"), (), False, True, None, 1).action
        'choice of dose and pills'
        """
        names = listed(self.actions)
        is_one = len(self.actions) == 1 and not names.endswith("s")
        return names if is_one else f"choice of {names}"

    @property
    def as_planned(self) -> str:
        """What the plan as it is wants."""
        if self.decisions == "candidates":
            return "learn which of their options are good"
        if self.contexts:
            return f"tell people apart by {listed(self.contexts)}"
        return f"find a good {self.action}"

    @property
    def drowned(self) -> str:
        """What people get where noise is far above what they answer."""
        if self.holds_back:
            first = "the first actions that the plan names" if self.begins else "first actions"
            return (
                f"noise would drown what people answer: they would get {first} until the end, and "
                "the study would say so."
            )
        by_chance = "actions from the whole domain as if by chance"
        if self.decisions == "candidates":
            by_chance = "one of their options as if by chance"
        first = "after the first actions that the plan names " if self.begins else ""
        return (
            f"noise would drown what people answer: {first}they would get {by_chance}, and the "
            "intervals of best() would be wide and say so."
        )

    @property
    def without_contexts(self) -> str:
        """What is left where people are not told apart."""
        return f"find one good {self.action} for everyone"


@dataclass(frozen=True)
class Need:
    """How many people one level takes; None where that is beyond the limit.

    `without_contexts` is None, too, where there is no such plan. Without privacy `epsilon` is None.
    """

    epsilon: float | None
    as_planned: int | None
    without_contexts: int | None


@dataclass(frozen=True)
class Enough:
    """What the `rounds` of a study are enough for at each epsilon, ascending.

    `epsilon_as_planned` and `epsilon_without_contexts` are the strongest levels at which they are
    enough; None if there is none. Nothing beyond `limit` people was counted.
    """

    rounds: int
    limit: int
    goal: Goal
    needs: tuple[Need, ...]
    not_private: Need
    epsilon_as_planned: float | None
    epsilon_without_contexts: float | None

    @property
    def sentences(self) -> tuple[str, ...]:
        """The answer, a sentence for each level, then which level would do."""
        return (
            *(self._level(need) for need in self.needs),
            *self._drowned(),
            *self._levels_that_do(),
            *self._notes(),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {**asdict(self), "sentences": list(self.sentences)}

    def suffices(self, needed: int | None) -> bool:
        """Whether the people of the study are so many."""
        return needed is not None and needed <= self.rounds

    # -- sentences

    @property
    def _theirs(self) -> str:
        return f"{self.rounds:,} {self.goal.unit}"

    @property
    def _both(self) -> bool:
        return bool(self.goal.contexts) and any(
            need.without_contexts is not None for need in (*self.needs, self.not_private)
        )

    def _level(self, need: Need) -> str:
        goal, start = self.goal, f"At epsilon = {need.epsilon:g} your {self._theirs} are"
        planned, common = self._about(need.as_planned), self._about(need.without_contexts)
        if not self._both:
            verdict = "enough" if self.suffices(need.as_planned) else "not enough"
            return f"{start} {verdict} to {goal.as_planned} ({planned} are needed)."
        if not self.suffices(need.without_contexts):
            return (
                f"{start} not enough: to {goal.without_contexts} {common} are needed, to "
                f"{goal.as_planned} {planned}."
            )
        joined = "and" if self.suffices(need.as_planned) else "but not"
        return (
            f"{start} enough to {goal.without_contexts} ({common} are needed) {joined} to "
            f"{goal.as_planned} ({planned})."
        )

    def _drowned(self) -> Iterator[str]:
        levels: list[str] = []
        for need in self.needs:
            least = need.without_contexts if self._both else need.as_planned
            if least is None or least > HOPELESS * self.rounds:
                levels.append(f"{need.epsilon:g}")
        if levels:
            yield f"At epsilon = {listed(levels)} {self.goal.drowned}"

    def _levels_that_do(self) -> Iterator[str]:
        if not self.needs:
            return
        planned = [need.as_planned for need in self.needs]
        common = [need.without_contexts for need in self.needs]
        if self._both:
            yield from self._level_that_does(
                self.goal.without_contexts,
                common,
                self.epsilon_without_contexts,
                self.not_private.without_contexts,
            )
        yield from self._level_that_does(
            self.goal.as_planned, planned, self.epsilon_as_planned, self.not_private.as_planned
        )

    def _level_that_does(
        self, words: str, counts: list[int | None], epsilon: float | None, exact: int | None
    ) -> Iterator[str]:
        """Of the levels that were asked for and round ones between them, unless all do."""
        if all(map(self.suffices, counts)):
            return
        if epsilon is not None:
            yield (
                f"The strongest level found at which {self._theirs} are enough to {words} is "
                f"epsilon = {epsilon:g}."
            )
        elif self.suffices(exact):
            yield (
                f"No level was found at which {self._theirs} are enough to {words}: take more "
                f"{self.goal.unit}. Without privacy they would be enough."
            )
        else:
            yield (
                f"Even without privacy {self._theirs} are not enough to {words}: "
                f"{self._about(exact)} would be needed."
            )

    def _notes(self) -> Iterator[str]:
        if self._both and self.goal.rule is not None:
            yield (
                f"The rule {self.goal.rule!r} is about contexts, too: one good {self.goal.action} "
                "for everyone was counted without it."
            )
        yield "This follows from the plan alone: nobody's data was used."

    def _about(self, needed: int | None) -> str:
        if needed is None:
            return f"more than {self.limit:,}"
        return f"about {two_digits(needed):,}"


def two_digits(count: int) -> int:
    """A count to two digits, never less than it is.

    >>> two_digits(1811), two_digits(97), two_digits(100)
    (1900, 97, 100)
    """
    return int(Context(prec=2, rounding=ROUND_CEILING).create_decimal(count))


def listed(names: Sequence[str]) -> str:
    """Names as people say them.

    >>> listed(["dose"]), listed(["age", "sex", "weight"])
    ('dose', 'age, sex and weight')
    """
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
