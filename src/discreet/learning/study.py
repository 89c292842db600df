"""The public record of a study: plan, epochs, releases. No sample path; safe to publish.

Every epoch names the release before it and every release its epoch, so a record that was cut,
reordered or edited does not verify.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from discreet.agreement.plan import Plan
from discreet.agreement.prior import Prior
from discreet.agreement.release import GENESIS, Release
from discreet.arrays import Floats
from discreet.errors import InvalidArgument, StudyEnded
from discreet.frames.table import Table
from discreet.learning.belief import Belief
from discreet.learning.elimination import Certificate, Remaining
from discreet.learning.epoch import Epoch
from discreet.learning.next_epoch import (
    Believed,
    believed_before,
    holds_back,
    learn,
    margins,
    open_epoch,
    served_by,
)
from discreet.learning.posterior import Posterior
from discreet.learning.search import Score, first_of_best, maximise, public_points
from discreet.learning.tables import epochs_table, posterior_table
from discreet.privacy.budget import NonPrivate
from discreet.privacy.cost import PrivacyCost
from discreet.storage import canonical
from discreet.threads import one_thread

Value = float | int | str


@dataclass(frozen=True)
class Recommendation:
    """The action with the highest posterior mean, that mean, and its 95% credible interval.

    Under `confidence="theory"` the interval is that of Theorem 1, for all actions at once.
    `chosen` is the position among the candidates, where candidates were given. Elimination also
    proves that no action is better by more than `gap` (see `Study.certificate`).
    """

    action: dict[str, Value]
    mean: float
    interval: tuple[float, float]
    chosen: int | None = None
    gap: float | None = None


@dataclass(frozen=True, eq=False)
class Study:
    """A plan and its chain of epochs and releases; the last epoch may still be open.

    `simulated` says that noise comes from a seed; without it, releases tell once there are some.
    """

    plan: Plan
    epochs: tuple[Epoch, ...] = ()
    releases: tuple[Release, ...] = ()
    simulated: bool | None = field(default=None, metadata=canonical.OPTIONAL)

    def __post_init__(self) -> None:
        if self.simulated not in (None, True):
            raise InvalidArgument("simulated", "True, or nothing")
        if len(self.epochs) - len(self.releases) not in (0, 1):
            raise InvalidArgument("releases", "one for each epoch but the open one")
        previous, first = GENESIS, 0
        for number, epoch in enumerate(self.epochs):
            expected = (number, first, self.plan.digest, previous)
            if (epoch.number, epoch.first, epoch.plan, epoch.previous) != expected:
                raise InvalidArgument("epochs", f"an unbroken chain: epoch {number} does not fit")
            first = epoch.end
            if number < len(self.releases):
                release = self.releases[number]
                whole = release.asks == epoch.length or number == len(self.epochs) - 1
                if (release.epoch, release.previous, whole) != (epoch.digest, previous, True):
                    raise InvalidArgument("releases", f"an unbroken chain: {number} does not fit")
                previous = release.digest

    @classmethod
    def begun(cls, belief: Believed, *, simulated: bool | None = None) -> "Study":
        """A study that has not begun, and starts from this belief."""
        return cls(belief.plan, simulated=simulated)._believing(belief)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Study":
        """Read and verify an export."""
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise InvalidArgument(
                "path", f"a readable export ({error.strerror})", str(path)
            ) from None
        return canonical.decode(Export, data).study

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the record as canonical JSON; an existing file is replaced whole or not at all."""
        target = Path(path)
        if not target.name:
            raise InvalidArgument("path", "a file", str(path))
        draft = target.with_name(target.name + ".part")
        try:
            draft.write_bytes(canonical.encode(Export(self, canonical.digest(self))))
            draft.replace(target)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            raise InvalidArgument(
                "path", f"a writable place ({error.strerror})", str(path)
            ) from None

    @property
    def is_running(self) -> bool:
        """Whether an epoch is open."""
        return len(self.epochs) > len(self.releases)

    def check_running(self) -> None:
        """Refuse a study that is finished, or has not begun."""
        if not self.is_running:
            raise StudyEnded("the study is finished: it has no open epoch")

    @property
    def open_epoch(self) -> Epoch:
        """The epoch that is open now."""
        self.check_running()
        return self.epochs[-1]

    @cached_property
    def belief(self) -> Believed:
        """What the releases teach, starting from the plan's prior."""
        belief = believed_before(self.plan)
        for epoch, release in zip(self.epochs, self.releases, strict=False):
            belief = learn(self.plan, belief, epoch, release)
        return belief

    @property
    def posterior(self) -> Posterior:
        """The Gaussian over the function that the releases leave."""
        return served_by(self.belief)

    def released(self, release: Release) -> "Study":
        """This record with the open epoch's release; what is believed moves by one update."""
        if release.digest != self._newest[0]:  # a turn decides by it first, then applies it
            belief = learn(self.plan, self.belief, self.open_epoch, release)
            study = self._believing(belief, releases=(*self.releases, release))
            self._newest[:] = [release.digest, study]
        return self._newest[1]

    @cached_property
    def _newest(self) -> list[Any]:
        """The digest of the release that `released` was last called with, and what it returned."""
        return ["", None]

    def followed_by(self, release: Release) -> tuple[Release, Epoch] | tuple[Release]:
        """The open epoch's release and the epoch after it; of the last one, the release alone.

        A release of fewer asks than its epoch has is the last one, and so is the horizon's.
        """
        epoch, study = self.open_epoch, self.released(release)
        is_last = release.asks < epoch.length or epoch.end == self.plan.last
        return (release,) if is_last else (release, study.next_epoch())

    def opened(self, epoch: Epoch) -> "Study":
        """This record with one more epoch."""
        return self._believing(self.belief, epochs=(*self.epochs, epoch))

    def next_epoch(self) -> Epoch:
        """The epoch that follows the last release."""
        first, previous = self._end
        return open_epoch(
            self.plan, self.belief, number=len(self.epochs), first=first, previous=previous
        )

    @property
    def _end(self) -> tuple[int, str]:
        """How many asks the epochs have, and the digest of the last release."""
        first = self.epochs[-1].end if self.epochs else 0
        return first, self.releases[-1].digest if self.releases else GENESIS

    @property
    def holds_back(self) -> bool:
        """Whether nothing that was learnt is surely better than first actions.

        A private study with a horizon gives these out until something is (see `caution`).

        >>> from discreet import Box, JointDP
        >>> plan = Plan(domain=Box({"dose": (0, 10)}), privacy=JointDP(1.0, 1e-6), horizon=2000)
        >>> Study(plan).holds_back
        False
        """
        if not self.releases:
            return False
        first, previous = self._end
        return holds_back(self.plan, self.belief, first=first, previous=previous)

    @property
    def misfit(self) -> float:
        """How much more releases varied around their predictions than the model allows: at least 1.

        Intervals are wider by its square root.
        """
        return self.belief.misfit if isinstance(self.belief, Belief) else 1.0

    @one_thread
    def best(
        self, candidates: object = None, *, context: Mapping[str, object] | None = None
    ) -> Recommendation:
        """The action with the highest posterior mean: of candidates, under a context, or of all.

        Candidates are those of an ask: each has a value for every coordinate, also of the context.
        Any plan's study can be asked, whatever its people bring.

        >>> from discreet import Box, NonPrivate
        >>> study = Study(Plan(domain=Box({"dose": (0, 10)}), privacy=NonPrivate()))
        >>> study.best([{"dose": 2.5}, {"dose": 7.5}]).chosen
        0
        """
        plan, posterior, chosen = self.plan, self.posterior, None
        if candidates is None and isinstance(self.belief, Remaining):
            return _surest(plan, self.belief)
        if candidates is not None:
            if context is not None:
                raise InvalidArgument("context", "none beside candidates, which have its values")
            points = plan.domain.encode(cast(Any, candidates))
            chosen = first_of_best(points, posterior.mean(points))
            point = points[[chosen]]
        else:
            point = self._highest(context)
        mean = float(posterior.mean(point)[0]) * plan.half_width + plan.centre
        spread = float(margins(self.belief, point)[0]) * plan.half_width
        interval = (mean - spread, mean + spread)
        return Recommendation(plan.domain.decode(point[0]), mean, interval, chosen)

    @one_thread
    def predict(self, points: object = None) -> Table:
        """The mean reward and its 95% interval at these points, by default at public ones.

        Points are those of `best`: mappings, an array, or a data frame.

        >>> from discreet import Box, NonPrivate
        >>> study = Study(Plan(domain=Box({"dose": (0, 10)}), privacy=NonPrivate()))
        >>> study.predict({"dose": [2.5, 7.5]})["mean reward"]
        (0.5, 0.5)
        """
        domain = self.plan.domain
        given = public_points(domain) if points is None else domain.encode(cast(Any, points))
        return posterior_table(self.plan, self.belief, given)

    def to_frame(self) -> Table:
        """The epochs and their releases as columns: a row for each, in units of rewards.

        >>> from discreet import Box, NonPrivate
        >>> study = Study(Plan(domain=Box({"dose": (0, 10)}), privacy=NonPrivate()))
        >>> study.opened(study.next_epoch()).to_frame()["released"]
        (False,)
        """
        return epochs_table(self.plan, self.epochs, self.releases)

    @property
    def structures(self) -> dict[str, float]:
        """How likely the releases make each kind of function, the likeliest first.

        Empty where the plan names a kernel.

        >>> from discreet import Box, JointDP
        >>> domain = Box({"dose": (0, 10), "age": (18, 90)})
        >>> study = Study(Plan(domain=domain, privacy=JointDP(8.0, 1e-6)))
        >>> round(study.structures["nearly a sum over coordinates"], 3)
        0.333
        """
        return self.belief.structures if isinstance(self.belief, Belief) else {}

    @property
    def needed_contexts(self) -> dict[str, float]:
        """How likely the releases make it that each context matters, the likeliest first.

        Up to six contexts, all sets that may matter are weighed; of more, small sets and all: of
        seven up to three, of eight to ten up to two, of eleven to 64 one.

        Empty where the plan names a kernel, where nobody brings a context, and where the plan
        was stored when several contexts mattered together or not at all.

        >>> from discreet import Box, JointDP
        >>> domain = Box({"dose": (0, 10), "age": (18, 90)}, context=["age"])
        >>> study = Study(Plan(domain=domain, privacy=JointDP(8.0, 1e-6)))
        >>> round(study.needed_contexts["age"], 3)
        0.667
        """
        return self.belief.needed if isinstance(self.belief, Belief) else {}

    @property
    def certificate(self) -> Certificate | None:
        """What elimination proves of the releases so far; None for plans that play otherwise."""
        return self.belief.certificate if isinstance(self.belief, Remaining) else None

    def _highest(self, context: Mapping[str, object] | None) -> Floats:
        """The scaled point with the highest posterior mean, as the only row."""
        plan, posterior = self.plan, self.posterior
        if plan.domain.has_context and context is None:
            raise InvalidArgument(
                "context", "a value for each of " + ", ".join(plan.domain.context)
            )
        fixed = None if context is None else plan.domain.encode_context(context)
        score = Score(plan.map, posterior.whitening, optimism=0.0)
        return maximise(score, plan.domain, posterior.coefficients[None, :], context=fixed)

    def prior(self, *, public_data: bool = False) -> Prior:
        """What this study learnt, for the plan of another one with the same features.

        A plan is public, so a private one takes a prior only from private releases. With
        `public_data=True` you declare that the people behind this study need no privacy.
        """
        private = all(release.private for release in self.releases)
        earlier = self.plan.prior is None or self.plan.prior.releasable
        return Prior(
            domain=canonical.digest(self.plan.domain),
            features=canonical.digest(self.plan.map),
            rewards=self.plan.rewards,
            precision=self.posterior.precision / self.misfit,  # as unsure as its intervals are
            information=self.posterior.information / self.misfit,
            releasable=public_data or (private and earlier),
        )

    @property
    def guarantee(self) -> str:
        """The sentence for the review board, which a simulation does not earn."""
        return self.plan.promise(simulated=self.is_simulated)

    @property
    def cost(self) -> PrivacyCost | None:
        """What all rounds of a person cost together, at most; None where nothing is promised."""
        return None if self.is_simulated else self.plan.cost

    @property
    def is_simulated(self) -> bool:
        """Whether its noise, or what stands for it without privacy, came from a seed."""
        private = isinstance(self.plan.privacy, NonPrivate) or all(r.private for r in self.releases)
        return bool(self.simulated) or not private

    def _believing(self, belief: Believed, **parts: object) -> "Study":
        study = replace(self, **parts)
        study.__dict__["belief"] = belief
        return study


def _surest(plan: Plan, belief: Remaining) -> Recommendation:
    """The active arm with the highest estimate."""
    best = belief.best
    mean = float(belief.estimates[best]) * plan.half_width + plan.centre
    margin = float(belief.margins[best]) * plan.half_width
    action = plan.domain.decode(belief.arms.points[best])
    interval = (mean - margin, mean + margin)
    return Recommendation(action, mean, interval, gap=belief.certificate.gap)


@dataclass(frozen=True, eq=False)
class Export:
    """The file of a study. Its digest also holds the last record, which no other one names."""

    study: Study
    digest: str

    def __post_init__(self) -> None:
        if self.digest != canonical.digest(self.study):
            raise InvalidArgument("digest", "that of the study: something in it was changed")
