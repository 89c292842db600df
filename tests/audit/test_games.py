"""The audit: it passes what is sound, catches what is broken, and is not blind."""

import json
import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

from discreet.audit import games as auditing
from discreet.audit.contest import Finding, lower_bound, mu_from_counts, verdict
from discreet.audit.games import Game
from discreet.cli.program import main
from discreet.trusted import mechanism
from discreet.trusted.randomness import OperatingSystem, integer_noise

#: At mu = 1 the bound lies six of its standard deviations above 0.85: a sound mechanism is
#: called blind in fewer than one audit in 10^8.
ENOUGH = 30_000
CONFIDENCE = 1 - 1e-6 / 50
CONTROLS = (
    "noise x 0.5",
    "noise x 0.8",
    "drawn twice",
    "unclipped reward",
    "spread released exactly",
    "actions published beside it",
    "an ask that looks at open trials",
    "randomised anew when sent again",
)
#: How often each is tried. Four encodings in two epochs each at mu = 1; halved and lowered noise
#: also on three kinds of local reports at mu = 1 and 3.
TRIES = dict(zip(CONTROLS, (14, 14, 8, 8, 4, 1, 1, 3), strict=True))
#: On streams of correlated noise: one for each of three strategies.
STREAM_CONTROLS = ("norm of the strategy forgotten", "noise redrawn at each release")
#: On rounds that are looked at again.
LOOKS_CONTROLS = (
    "every look a whole one",
    "looks beyond the first not paid for",
    "an answer moved to a later epoch and left",
)


def command(capfd, *arguments):
    """The exit code and output of `discreet audit`."""
    with pytest.raises(SystemExit) as stopped:
        main(["audit", *map(str, arguments)])
    return stopped.value.code or 0, *capfd.readouterr()


def trial(kind, label="fixed", claim=1):
    """A game against a real mechanism."""
    name = f"{kind}, {label}, mu {claim}"
    return next(game for game, control, _ in all_trials() if control is None and game.name == name)


@cache
def all_trials():
    return tuple(auditing._trials())


# -- the whole of it


@pytest.fixture(autouse=True)
def without_roles(monkeypatch):
    """Games through the roles take minutes: `test_roles` and `test_indices` play them."""
    monkeypatch.setattr(auditing.roles, "role_trials", lambda: iter(()))
    monkeypatch.setattr(auditing.indices, "index_trials", lambda: iter(()))
    monkeypatch.setattr(auditing.shuffled, "mixing_trials", lambda: iter(()))


def test_the_audit_passes_every_mechanism_and_catches_every_control(capfd):
    code, out, err = command(capfd, "--draws", ENOUGH, "--json")
    assert code == 0
    assert "Traceback" not in err
    report = json.loads(out)
    assert out.count("\n") == 1
    assert (report["passed"], report["draws"]) == (True, ENOUGH)
    findings = report["findings"]
    assert all(finding["passed"] for finding in findings)
    assert len({finding["name"] for finding in findings}) == len(findings)
    real = {f["name"]: f for f in findings if not f["control"]}
    expected = {
        f"{kind}, {label}, mu {claim}"
        for kind in ("gram", "fourier", "reward", "announced")
        for label in ("fixed", "residual")
        for claim in (1, 3)
    }
    expected |= {f"local {name}" for name in expected if "announ" not in name}
    expected |= {
        f"{kind}, 16 releases, mu {claim}"
        for kind in ("tree", "square root", "BLT")
        for claim in (1, 3)
    }
    expected |= {
        f"privatizer with {kind}, mu {claim}"
        for kind in ("tree, gram", "tree, fourier", "square root, gram", "blt, fourier")
        for claim in (1, 3)
    }
    expected |= {f"privatizer with four looks, mu {claim}" for claim in (1, 3)}
    assert set(real) == expected
    for finding in real.values():
        assert 0.85 <= finding["lower_bound"] / finding["claim"] <= 1.0
        assert finding["claim"] == pytest.approx(float(finding["name"][-1]), rel=1e-4)
    caught = [f for f in findings if f["control"]]
    for control in CONTROLS:
        names = [f["name"] for f in caught if f["name"].endswith(f": {control}")]
        assert len(names) == TRIES[control]
    for control in STREAM_CONTROLS:
        assert sum(f["name"].endswith(f": {control}") for f in caught) == 3 + 4
    for control in LOOKS_CONTROLS:
        assert sum(f["name"].endswith(f": {control}") for f in caught) == 1
    assert all(f["lower_bound"] > f["claim"] for f in caught)


def quick(monkeypatch, play=None, keep=lambda game, control: True):
    """Only some of the games, or all real ones played in another way."""
    games = [
        (game, control, play if play and control is None else own)
        for game, control, own in all_trials()
        if keep(game, control)
    ]
    monkeypatch.setattr(auditing, "_trials", lambda: iter(games))


def is_one_game(game, control):
    return control is None and game.name == "reward, fixed, mu 1"


@pytest.mark.parametrize(("factor", "draws", "reason"), [(0.7, 1, "leaks"), (1.0, 9, "blind")])
def test_a_mechanism_with_other_noise_than_stated_ends_with_code_1(
    capfd, monkeypatch, factor, draws, reason
):
    """Less noise leaks; three times as much is private, but then the audit would see nothing."""
    quick(monkeypatch, keep=is_one_game)
    monkeypatch.setattr(
        mechanism,
        "integer_noise",
        lambda stds, *, bits: sum(integer_noise(factor * stds, bits=bits) for _ in range(draws)),
    )
    code, out, err = command(capfd, "--draws", ENOUGH, "--json")
    assert (code, "Traceback" in err) == (1, False)
    (finding,) = json.loads(out)["findings"]
    assert not finding["passed"]
    share = finding["lower_bound"] / finding["claim"]
    assert share > 1 if reason == "leaks" else share < 0.85


def test_a_mechanism_without_noise_is_caught(capfd, monkeypatch):
    quick(monkeypatch, keep=is_one_game)
    zeros = lambda stds, *, bits: np.zeros(stds.shape, dtype=np.int64)  # noqa: E731
    monkeypatch.setattr(mechanism, "integer_noise", zeros)
    code, out, _ = command(capfd, "--draws", ENOUGH)
    assert code == 1
    assert "FAILED" in out


def test_a_control_that_is_not_caught_fails_the_audit(capfd, monkeypatch):
    """A control that is not broken after all: the audit must not call it caught."""
    game = trial("reward")
    monkeypatch.setattr(
        auditing, "_trials", lambda: iter([(game, "nothing is wrong", auditing.honestly)])
    )
    code, out, _ = command(capfd, "--draws", ENOUGH)
    assert code == 1
    assert "MISSED" in out


def test_an_audit_with_a_useless_threshold_fails(monkeypatch):
    """A game whose worlds are the same tells nothing: blind, and said to be so."""
    game = trial("reward")
    same = Game(game.name, game.plan, game.epoch, (game.worlds[0], game.worlds[0]))
    bound = lower_bound(same, auditing.honestly, 10_000, CONFIDENCE, OperatingSystem())
    assert bound == 0.0
    assert not Finding("same", False, 1.0, bound).passed


def test_an_audit_of_a_weaker_pair_than_the_worst_is_blind():
    game = trial("gram", claim=1)
    half = (game.worlds[0], (game.worlds[0] + game.worlds[1]) // 2)
    weak = Game(game.name, game.plan, game.epoch, half)
    bound = lower_bound(weak, auditing.honestly, ENOUGH, CONFIDENCE, OperatingSystem())
    assert 0.2 < bound < 0.85 * weak.claim


@pytest.mark.parametrize("kind", ["gram", "fourier", "reward", "announced"])
@pytest.mark.parametrize("label", ["fixed", "residual"])
@pytest.mark.parametrize("claim", [1, 3])
def test_the_audited_pair_is_as_far_apart_as_the_claim_allows(kind, label, claim):
    """Whitened distance of the two worlds against the claim: never above, at least 0.97 of it."""
    game = trial(kind, label, claim)
    noisy = game.stds > 0
    difference = (game.worlds[1] - game.worlds[0]).astype(float)
    assert not difference[~noisy].any()
    distance = np.linalg.norm(difference[noisy] / game.stds[noisy])
    assert 0.97 * game.claim <= distance <= game.claim


@pytest.mark.parametrize("kind", ["gram", "fourier", "reward", "announced"])
@pytest.mark.parametrize("label", ["fixed", "residual"])
def test_the_audit_weighs_every_integer_of_a_release(kind, label):
    """The spread is one of them; the worst pair leaves it where it is, within truncation."""
    game = trial(kind, label)
    size = game.epoch.encoding.size(game.plan.map)
    assert game.stds.shape == game.worlds[0].shape == (size,)
    difference = game.worlds[1] - game.worlds[0]
    assert np.abs(difference[:-1] / np.maximum(game.stds[:-1], 1)).max() > 0.05
    assert abs(difference[-1]) < 1e-3 * game.stds[-1]


@pytest.mark.parametrize("kind", ["fourier", "reward"])
@pytest.mark.parametrize("label", ["fixed", "residual"])
def test_what_gives_an_exact_spread_away_is_the_spread(kind, label):
    """With its noise the same pair stays within the claim: the control is broken only there."""
    name = f"{kind}, {label}, mu 1"
    game = next(g for g, c, _ in all_trials() if c == CONTROLS[4] and g.name == name)
    sound = Game(name, game.plan, game.epoch, game.worlds)
    assert game.stds[-1] == 0 < sound.stds[-1]
    assert np.array_equal(game.stds[:-1], sound.stds[:-1])
    for each, caught in ((game, True), (sound, False)):
        bound = lower_bound(each, auditing.honestly, ENOUGH, CONFIDENCE, OperatingSystem())
        assert (bound > each.claim) is caught


def test_the_audited_residual_epochs_are_narrower_than_the_first():
    for kind in ("gram", "fourier", "reward", "announced"):
        fixed, residual = (trial(kind, label).epoch for label in ("fixed", "residual"))
        assert residual.encoding.residual.width < 0.8 * fixed.encoding.residual.width
        assert residual.encoding.residual.prediction.any()


# -- verdicts and bounds


@pytest.mark.parametrize(
    ("control", "bound", "passed"),
    [
        (False, 0.84, False),
        (False, 0.86, True),
        (False, 1.0, True),
        (False, 1.001, False),
        (False, math.inf, False),
        (False, math.nan, False),
        (True, 0.99, False),
        (True, 1.0, False),
        (True, 1.01, True),
        (True, math.nan, False),
    ],
)
def test_a_finding_passes_only_within_its_claim_and_in_sight_of_it(control, bound, passed):
    assert Finding("one", control, 1.0, bound).passed is passed
    sound = Finding("sound", False, 1.0, 0.95)
    assert verdict([sound, Finding("one", control, 1.0, bound)]) is passed


@pytest.mark.parametrize("draws", [1, 10, 1_000, 100_000])
@pytest.mark.parametrize("confidence", [0.95, 1 - 1e-7])
def test_rates_are_bounded_as_clopper_and_pearson_do(draws, confidence):
    counts = sorted({0, 1, draws // 3, draws // 2, draws - 1, draws})
    for hits in counts:
        for alarms in counts:
            level = {"confidence_level": confidence, "method": "exact"}
            low = stats.binomtest(hits, draws).proportion_ci(**level).low
            high = stats.binomtest(alarms, draws).proportion_ci(**level).high
            expected = max(0.0, stats.norm.ppf(low) - stats.norm.ppf(high))
            found = mu_from_counts(hits, alarms, draws, confidence)
            assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_a_bound_holds_as_often_as_it_says():
    """At 90% confidence a true mu of 1 is exceeded in at most 10% of 4,000 audits.

    Five standard deviations are allowed: 3e-7 false alarms.
    """
    rng = np.random.Generator(np.random.Philox(4))
    hits = rng.binomial(2_000, stats.norm.cdf(0.5), 4_000)
    alarms = rng.binomial(2_000, stats.norm.cdf(-0.5), 4_000)
    bounds = [mu_from_counts(h, a, 2_000, 0.9) for h, a in zip(hits, alarms, strict=True)]
    exceeded = np.mean(np.array(bounds) > 1.0)
    assert exceeded <= 0.1 + 5 * math.sqrt(0.09 / 4_000)
    assert np.median(bounds) > 0.85


def test_an_audit_needs_enough_draws_to_see(capfd):
    code, out, err = command(capfd, "--draws", 1_000)
    assert (code, out) == (2, "")
    assert "draws" in err
    assert "Traceback" not in err


# -- local reports


@pytest.mark.parametrize("claim", [1, 3])
@pytest.mark.parametrize("kind", ["gram", "fourier", "reward"])
def test_in_the_local_model_a_world_is_a_single_round(kind, claim):
    game = trial(f"local {kind}", claim=claim)
    assert game.plan.is_local
    change = (game.worlds[1] - game.worlds[0]) / game.stds
    assert np.linalg.norm(change) == pytest.approx(game.claim, rel=1e-3)
    assert game.epoch.encoding.bound(game.plan.map) <= game.plan.privacy.mu_per_round
    for world in game.worlds:
        assert np.abs(world).max() <= game.epoch.encoding.largest


def test_reports_themselves_are_within_the_claim_and_seen():
    """The game on `mechanism.report`, one call a trial; mu is off by 0.2 in one of 10^7 audits."""
    game = trial("local fourier", claim=3)
    near, far = auditing._worst_points(game.plan, game.epoch)
    rounds = [(near, max(auditing._rewards(game.plan, game.epoch, near)))]
    rounds += [(far, min(auditing._rewards(game.plan, game.epoch, far)))]
    plan = game.plan

    def reports(_game, world, draws, bits):
        point, centred = rounds[0] if world is game.worlds[0] else rounds[1]
        reward = plan.centre + plan.half_width * centred
        sent = [mechanism.report(plan, game.epoch, point, reward, bits=bits) for _ in range(draws)]
        return np.stack(sent)

    shown = lower_bound(game, reports, 4000, 1 - 1e-3, OperatingSystem())
    assert 2.6 < shown < 3.2
