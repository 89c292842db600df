"""What is said of budgets: that of one study, and what several studies cost the same people."""

import math
from typing import TYPE_CHECKING, Any

from discreet.cli.console import rounded_up
from discreet.errors import InvalidArgument

if TYPE_CHECKING:  # heavy: loaded when used
    from discreet.learning.study import Study
    from discreet.privacy.cost import PrivacyCost
    from discreet.protocol.archive import Archive

#: The deltas at which a promise is said again.
DELTAS = (1e-3, 1e-6, 1e-9)


def levels(cost: "PrivacyCost", *deltas: float | None) -> dict[str, Any]:
    """Epsilon at each delta as it is certified, None where it is not, and where that begins.

    `mu` is None where nothing of the cost is Gaussian, and `pure_epsilon` where all of it is.
    """
    from discreet.privacy.cost import parts_of

    gaussian, pure = parts_of(cost)
    wanted = {delta for delta in (*deltas, *DELTAS) if delta is not None}
    found = {delta: cost.epsilon(delta) for delta in sorted(wanted, reverse=True)}
    return {
        "mu": None if gaussian is None else gaussian.mu,
        "slack": 0.0 if gaussian is None else gaussian.slack,
        "pure_epsilon": None if pure is None else pure.total,
        "missed_delta": 0.0 if pure is None else pure.missed,
        "epsilon_at": {repr(d): e if math.isfinite(e) else None for d, e in found.items()},
        "least_delta": cost.least_delta,
    }


def level_words(known: dict[str, Any]) -> str:
    """The same in words: no epsilon is rounded down.

    >>> from discreet.privacy.cost import GaussianPrivacy
    >>> level_words(levels(GaussianPrivacy(1.0)))
    '3.14 at 0.001, 4.89 at 1e-06, 6.18 at 1e-09'
    >>> level_words(levels(GaussianPrivacy(1.0, slack=1e-11)))
    '3.14 at 0.001, 4.89 at 1e-06, not certified at 1e-09 (finite precision of noise: only down to 6e-09)'
    """  # noqa: E501
    at = known["epsilon_at"]
    said = [f"{rounded_up(e, 3)} at {delta}" for delta, e in at.items() if e is not None]
    if missing := [delta for delta, e in at.items() if e is None]:
        least = rounded_up(known["least_delta"])
        said.append(
            f"not certified at {' and '.join(missing)} "
            f"(finite precision of noise: only down to {least})"
        )
    return ", ".join(said)


def cost_words(known: dict[str, Any]) -> str:
    """The cost itself: a mu, an epsilon without delta, or both.

    >>> from discreet.privacy.cost import GaussianPrivacy, MixedPrivacy, PurePrivacy
    >>> cost_words(levels(PurePrivacy(2.0)))
    'epsilon = 2 with delta = 0'
    >>> cost_words(levels(MixedPrivacy(GaussianPrivacy(1.0), PurePrivacy(2.0))))
    'mu = 1 and beside it epsilon = 2 with delta = 0'
    """
    said = [] if known["mu"] is None else [f"mu = {known['mu']:.4g}"]
    if known["pure_epsilon"] is not None:
        missed = known["missed_delta"]
        level = f"at delta = {missed:g}" if missed else "with delta = 0"
        said.append(f"epsilon = {known['pure_epsilon']:.4g} {level}")
    return " and beside it ".join(said)


def at_deltas(known: dict[str, Any]) -> str:
    """What that is at some deltas, unless it needs none."""
    return "" if known["mu"] is None else f", which is epsilon (at delta) = {level_words(known)}"


# -- one study


def budget(study: "Study") -> dict[str, Any] | None:
    """What a person may lose in all, and may have lost so far; None without privacy.

    Releases do not add up: a person's rounds are counted, and all releases that a round is part
    of are priced together. So somebody who has used all their rounds has spent everything, and
    nobody ever spends more.
    """
    from discreet.privacy.budget import NonPrivate

    plan = study.plan
    privacy = plan.privacy
    if isinstance(privacy, NonPrivate) or plan.cost is None:
        return None
    known = levels(plan.cost, privacy.delta)
    pure = plan.sends_indices
    if privacy.delta is not None and not pure:
        own = min(privacy.epsilon, plan.cost.epsilon(privacy.delta))  # not a root's last bits
        known["epsilon_at"][repr(privacy.delta)] = own
    begun = has_begun(study)
    return {
        "promise": type(privacy).__name__,
        "epsilon": privacy.epsilon,
        "delta": 0.0 if pure and not plan.is_shuffled else privacy.delta,
        "protect": privacy.protect,
        "unit": "one person",
        "rounds_per_user": privacy.rounds_per_user,
        "mu_per_round": None if pure else plan.mu,
        "epsilon_per_round": privacy.epsilon / privacy.rounds_per_user if pure else None,
        **known,
        "spent_at_most": {
            "mu": known["mu"] if begun else 0.0,
            "epsilon": privacy.epsilon if begun else 0.0,
        },
    }


def has_begun(study: "Study") -> bool:
    """Whether anything of a person may have left the trusted side."""
    return bool(study.epochs) if study.plan.is_local else bool(study.releases)


def budget_words(found: dict[str, Any]) -> list[str]:
    """What may be lost, and may have been lost so far."""
    if (known := found["budget"]) is None:
        return ["Budget: none, for nothing is promised."]
    times = times_of(known)
    spent = "nothing: nothing is released"
    if known["spent_at_most"]["epsilon"]:
        spent = f"all of it, by a person who has had {times}; nobody spends more"
    real = ", had the noise been real" if found["simulated"] else ""
    return [
        f"Budget{real}: {cost_words(known)} for one person in at most {times}{at_deltas(known)}.",
        f"Spent so far, at most: {spent}.",
    ]


def times_of(known: dict[str, Any]) -> str:
    """How often a person takes part."""
    return f"{known['rounds_per_user']} round" + "s" * (known["rounds_per_user"] > 1)


# -- several studies


def together(archives: "dict[str, Archive]") -> dict[str, Any]:
    """What each of the studies in these files costs, and all of them together.

    Said at the largest delta of the plans, too: of their own deltas the one at which finite
    precision leaves most to certify.
    """
    from discreet.privacy.cost import compose

    check_different(archives)
    studies = {path: archive.study for path, archive in archives.items()}
    rows: list[dict[str, Any]] = [
        {
            "path": path,
            "source": archives[path].source,
            "name": study.plan.name,
            "digest": study.plan.digest,
            "simulated": study.is_simulated,
            "budget": budget(study),
        }
        for path, study in studies.items()
    ]
    cost = compose(study.cost for study in studies.values())
    if cost is None:
        return {"studies": rows, "together": None}
    delta = max(row["budget"]["delta"] for row in rows) or None
    begun = [study.cost for study in studies.values() if has_begun(study)]
    spent = compose(begun) if begun else None
    return {
        "studies": rows,
        "together": {
            "unit": "one person who takes part in each study, as often as its plan allows",
            "delta": delta,
            **levels(cost, delta),
            "spent_at_most": None if spent is None else levels(spent, delta),
        },
    }


def check_different(archives: "dict[str, Archive]") -> None:
    """Refuse one study in two files, which would count twice.

    Noise makes every release another one, so studies that share one are the same, or a copy that
    went on. Before a release they cannot be told apart, and count twice: never too little.
    """
    seen: dict[str, str] = {}
    for path, archive in archives.items():
        for release in archive.study.releases:
            if (other := seen.setdefault(release.digest, path)) != path:
                raise InvalidArgument("PATH", f"each study once: {other} and {path} share releases")


def together_words(found: dict[str, Any]) -> list[str]:
    """Each study in a line, and what they cost together."""
    lines = [study_line(row) for row in found["studies"]]
    if (known := found["together"]) is None:
        reasons = [
            f"{row['name']!r} " + ("is a simulation" if row["budget"] else "promises no privacy")
            for row in found["studies"]
            if row["budget"] is None or row["simulated"]
        ]
        return [*lines, f"Together: no guarantee, for {' and '.join(reasons)}."]
    spent = known["spent_at_most"]
    if spent is None:
        so_far = "nothing: nothing is released"
    elif spent["epsilon_at"] != known["epsilon_at"]:
        so_far = (
            f"{cost_words(spent)}, epsilon (at delta) = {level_words(spent)}; "
            "some studies have released nothing"
        )
    else:
        so_far = "all of it, by a person who has had all rounds of each; nobody spends more"
    return [
        *lines,
        f"Together: {cost_words(known)} for {known['unit']}{at_deltas(known)}.",
        f"Spent so far, at most: {so_far}.",
        " ".join(["It holds against whoever sees all that these studies publish.", *scope(found)]),
    ]


def study_line(row: dict[str, Any]) -> str:
    """A study and its promise."""
    source = "an export" if row["source"] == "export" else f"the journal of a {row['source']}"
    line = f"Study {row['name']!r} ({row['path']}, {source}): "
    if (known := row["budget"]) is None:
        return line + "no privacy."
    promise = f"{known['promise']}, "
    if known["mu"] is not None:
        promise += f"epsilon = {known['epsilon']:g} at delta = {known['delta']:g}, "
    return line + f"{promise}{cost_words(known)}, at most {times_of(known)}."


def scope(found: dict[str, Any]) -> list[str]:
    """What the sum of a joint, a local and a rewards-only promise means."""
    budgets = [row["budget"] for row in found["studies"]]
    promises = {known["promise"] for known in budgets}
    said = {
        "JointDP": "A joint study trusts its custodian.",
        "ShuffledDP": "A shuffled study trusts its shuffler to mix, and a share of each group.",
        "LocalDP": "A local study trusts nobody: all reports of a person count as published.",
    }
    words = [text for promise, text in said.items() if promise in promises]
    if any(known["protect"] == "rewards" for known in budgets):
        words.append("Where only rewards are protected, decision sets and contexts are public.")
    return words
