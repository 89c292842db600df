"""The public record: it comes back whole, shows every edit, and holds no sample path."""

import base64
import json
from functools import cache

import numpy as np
import pytest

from discreet import (
    Bandit,
    Box,
    JointDP,
    NonPrivate,
    Plan,
    Schedule,
    Simulation,
    SquaredExponential,
    Study,
)
from discreet.errors import DiscreetError, InvalidArgument, Malformed, StudyEnded
from discreet.learning.study import Export
from discreet.storage import canonical

POINT = (7.123456789, 43.234567891)
REWARD = 0.123456789
DOMAIN = Box({"dose": (0, 10), "age": (18, 90)})


def make_plan(**parts):
    defaults = {
        "domain": Box({"dose": (0, 10)}),
        "privacy": NonPrivate(),
        "kernel": SquaredExponential(0.4),
        "schedule": Schedule(first=6, growth=1.5),
    }
    return Plan(**(defaults | parts))


def answer(trial):
    return 1 - (trial.action["dose"] - 7) ** 2 / 49


@cache
def make_study(*, finished=True, rounds=20):
    bandit = Bandit(make_plan())
    for _ in range(rounds):
        trial = bandit.ask()
        bandit.tell(trial, answer(trial))
    if finished:
        bandit.finish()
    return bandit.study


def dump(record):
    """JSON as `canonical` writes it."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


# -- round trip


@pytest.mark.parametrize("finished", [True, False], ids=["finished", "running"])
def test_an_export_comes_back_whole(tmp_path, finished):
    study = make_study(finished=finished)
    study.save(tmp_path / "study.json")
    loaded = Study.load(tmp_path / "study.json")
    assert canonical.encode(loaded) == canonical.encode(study)
    assert loaded.best() == study.best()
    assert (loaded.posterior.precision == study.posterior.precision).all()


def test_a_bandit_exports_its_public_record(tmp_path):
    bandit = Bandit(make_plan())
    bandit.tell(bandit.ask(), 0.5)
    bandit.export(str(tmp_path / "study.json"))
    assert canonical.digest(Study.load(tmp_path / "study.json")) == canonical.digest(bandit.study)
    assert [file.name for file in tmp_path.iterdir()] == ["study.json"]


def test_the_posterior_moves_epoch_by_epoch_as_it_would_from_the_start():
    study = make_study()
    anew = Study(study.plan, study.epochs, study.releases)
    assert (anew.posterior.information == study.posterior.information).all()
    assert (anew.posterior.precision == study.posterior.precision).all()
    assert (anew.belief.scales, anew.belief.choice) == (study.belief.scales, study.belief.choice)
    assert study.belief is study.belief  # folded once


def test_a_finished_study_has_no_open_epoch():
    assert make_study(finished=False).open_epoch is make_study(finished=False).epochs[-1]
    with pytest.raises(StudyEnded, match="no open epoch"):
        _ = make_study().open_epoch


# -- tampering


def edit_integer(study, number):
    integers = study["releases"][number]["integers"]
    data = bytearray(base64.b64decode(integers["data"]))
    data[0] ^= 1
    integers["data"] = base64.b64encode(data).decode()


def edit_menu(study, number):
    menu = study["epochs"][number]["policy"]["menu"]
    values = np.frombuffer(base64.b64decode(menu["data"]), "<f8").copy()
    values[0] = 1 - values[0]
    menu["data"] = base64.b64encode(values.tobytes()).decode()


def edit_optimism(study, number):
    study["epochs"][number]["policy"]["optimism"] += 0.5


def edit_bits(study, number):
    study["epochs"][number]["encoding"]["bits"] -= 1


def edit_length(study, number):
    study["epochs"][number]["length"] += 1


def edit_number(study, number):
    study["epochs"][number]["number"] += 1


def edit_plan_digest(study, number):
    study["epochs"][number]["plan"] = "0" * 64


def edit_previous(study, number):
    study["releases"][number]["previous"] = "1" * 64


def claim_privacy(study, number):
    study["releases"][number]["private"] = True


def drop_epoch(study, number):
    del study["epochs"][number]


def drop_release(study, number):
    del study["releases"][number]


def drop_both(study, number):
    del study["epochs"][number], study["releases"][number]


def swap_releases(study, number):
    other = number - 1
    releases = study["releases"]
    releases[number], releases[other] = releases[other], releases[number]


def swap_both(study, number):
    swap_releases(study, number)
    epochs = study["epochs"]
    epochs[number], epochs[number - 1] = epochs[number - 1], epochs[number]


TAMPERING = (
    edit_integer, edit_menu, edit_optimism, edit_bits, edit_length, edit_number,
    edit_plan_digest, edit_previous, claim_privacy, drop_epoch, drop_release, drop_both,
    swap_releases, swap_both,
)  # fmt: skip


@pytest.mark.parametrize("tamper", TAMPERING, ids=lambda tamper: tamper.__name__)
def test_an_edited_export_is_refused(tmp_path, tamper):
    path = tmp_path / "study.json"
    make_study().save(path)
    data = path.read_bytes()
    assert dump(json.loads(data)) == data  # so a refusal is not about the form
    epochs = len(make_study().epochs)
    assert epochs >= 4
    for number in range(epochs):
        export = json.loads(data)
        tamper(export["study"], number)
        path.write_bytes(dump(export))
        with pytest.raises(Malformed):
            Study.load(path)


@pytest.mark.parametrize("tamper", TAMPERING, ids=lambda tamper: tamper.__name__)
def test_the_chain_alone_shows_every_edit_before_the_last_record(tamper):
    """Without the digest of the file, that is: an edit inside the record fits nowhere."""
    data = canonical.encode(make_study())
    for number in range(len(make_study().epochs) - 1):
        study = json.loads(data)
        tamper(study, number)
        with pytest.raises(Malformed):
            canonical.decode(Study, dump(study))


def test_an_edited_plan_is_refused():
    study = json.loads(canonical.encode(make_study()))
    study["plan"]["name"] = "another"
    with pytest.raises(Malformed, match="epoch 0 does not fit"):
        canonical.decode(Study, dump(study))


def test_a_running_studys_open_epoch_cannot_be_edited(tmp_path):
    path = tmp_path / "study.json"
    make_study(finished=False).save(path)
    export = json.loads(path.read_bytes())
    edit_menu(export["study"], -1)
    path.write_bytes(dump(export))
    with pytest.raises(Malformed, match="something in it was changed"):
        Study.load(path)


def test_releases_and_epochs_of_different_studies_do_not_mix():
    study, other = make_study(), Study(make_plan(name="other"))
    with pytest.raises(InvalidArgument, match="epoch 0 does not fit"):
        Study(other.plan, study.epochs, study.releases)
    with pytest.raises(InvalidArgument, match="a release of this epoch"):
        other.opened(other.next_epoch()).released(study.releases[0])
    with pytest.raises(InvalidArgument, match="one for each epoch but the open one"):
        Study(study.plan, study.epochs[:2], study.releases)
    with pytest.raises(InvalidArgument, match="digest"):
        Export(study, "0" * 64)


# -- files


@pytest.mark.parametrize("content", [b"", b"dear diary", b"{}", b'{"type":"Study"}', b"\xff"])
def test_a_file_that_is_no_export_is_refused(tmp_path, content):
    (tmp_path / "study.json").write_bytes(content)
    with pytest.raises(Malformed):
        Study.load(tmp_path / "study.json")


@pytest.mark.parametrize("name", ["missing.json", ".", "missing/study.json"])
def test_a_path_that_cannot_be_read_is_named(tmp_path, name):
    with pytest.raises(InvalidArgument, match="path: expected a readable export"):
        Study.load(tmp_path / name)


@pytest.mark.parametrize("name", ["", "folder", "missing/study.json", "a" * 300])
def test_a_path_that_cannot_be_written_is_named_and_nothing_is_left(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(InvalidArgument, match="path: expected a"):
        make_study().save(name)
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]


def test_an_export_that_fails_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "study.json"
    make_study(finished=False).save(path)
    before = path.read_bytes()

    def fail(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(InvalidArgument, match="No space left"):
        make_study().save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["study.json"]


# -- no sample path


def numbers_in(value):
    """Every number in a JSON value, also those in its arrays."""
    if isinstance(value, dict) and value.get("dtype") in ("float64", "int64"):
        kind = "<f8" if value["dtype"] == "float64" else "<i8"
        yield from np.frombuffer(base64.b64decode(value["data"]), kind).tolist()
    elif isinstance(value, dict):
        for part in value.values():
            yield from numbers_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from numbers_in(part)
    elif isinstance(value, (int, float)):
        yield value


def exported_numbers(bandit, path):
    bandit.export(path)
    text = path.read_text()
    return text, np.array(list(numbers_in(json.loads(text))), dtype=float)


def traces(value, low, high):
    """A private number as it came, scaled to the unit interval and centred."""
    scaled = (value - low) / (high - low)
    return value, scaled, 2 * scaled - 1, 1 - scaled


@pytest.mark.parametrize("encoding", ["gram", "fourier"])
@pytest.mark.parametrize("kind", ["box", "context", "candidates"])
def test_an_export_holds_no_answer_and_nothing_a_user_brought(tmp_path, kind, encoding):
    domain = Box(DOMAIN.coordinates, context=["age"] if kind == "context" else [])
    plan = make_plan(
        domain=domain, decisions=kind, encoding=encoding, kernel_error=0.05, name=f"{kind} canary"
    )
    bandit = Bandit(plan)
    rng = np.random.Generator(np.random.Philox(1))
    for number in range(20):
        own = number % 4 == 1
        point = POINT if own else rng.uniform((0, 18), (10, 90))
        arguments = {"context": {"context": {"age": float(point[1])}}, "candidates": {
            "candidates": [list(point)]}}.get(kind, {})  # fmt: skip
        trial = bandit.ask(**arguments)
        bandit.tell(trial, REWARD if own else float(rng.random()))
    bandit.finish()
    text, numbers = exported_numbers(bandit, tmp_path / "study.json")
    secrets = [*traces(REWARD, 0.0, 1.0)]
    if kind != "box":
        secrets += traces(POINT[1], 18.0, 90.0)
    if kind == "candidates":
        secrets += traces(POINT[0], 0.0, 10.0)
    for secret in secrets:
        assert np.abs(numbers - secret).min() > 1e-12
        assert repr(secret) not in text
    assert "123456789" not in text
    assert "234567891" not in text


def test_the_search_for_canaries_finds_them_where_they_are():
    record = {"dtype": "float64", "data": base64.b64encode(np.array([REWARD])).decode()}
    assert list(numbers_in([{"a": record, "b": 2}])) == [REWARD, 2]


# -- warm start


@cache
def earlier_study():
    bandit = Bandit(make_plan(horizon=150))
    rng = np.random.Generator(np.random.Philox(5))
    for _ in range(150):
        trial = bandit.ask()
        bandit.tell(trial, answer(trial) + 0.1 * rng.standard_normal())
    bandit.finish()
    return bandit.study


def regret(plan, rounds=30):
    bandit = Bandit(plan)
    total = 0.0
    for _ in range(rounds):
        trial = bandit.ask()
        bandit.tell(trial, answer(trial))
        total += 1 - answer(trial)
    return total


def test_a_warm_start_begins_where_the_other_study_ended(tmp_path):
    study = earlier_study()
    study.save(tmp_path / "study.json")
    loaded = Study.load(tmp_path / "study.json")
    plan = make_plan(prior=loaded.prior(), features=loaded.plan.features)
    assert Bandit(plan).best() == study.best()
    assert abs(Bandit(plan).best().action["dose"] - 7) < 2.0


def test_a_warm_start_beats_a_cold_one():
    study = earlier_study()
    warm = make_plan(prior=study.prior(), features=study.plan.features)
    assert regret(warm) < 0.5 * regret(make_plan())


def test_a_warm_start_can_be_journalled_exported_and_passed_on(tmp_path):
    study = earlier_study()
    plan = make_plan(prior=study.prior(), features=study.plan.features)
    with Bandit(plan, tmp_path / "study.db") as bandit:
        for _ in range(8):
            bandit.tell(bandit.ask(), 0.5)
        before = canonical.digest(bandit.study)
    with Bandit(plan, tmp_path / "study.db") as bandit:
        assert canonical.digest(bandit.study) == before
        bandit.finish()
        bandit.export(tmp_path / "study.json")
    third = Study.load(tmp_path / "study.json")
    plan = make_plan(prior=third.prior(), features=third.plan.features)
    assert Bandit(plan).best() == third.best()


def test_a_prior_of_other_features_or_rewards_is_refused():
    prior = earlier_study().prior()
    with pytest.raises(InvalidArgument, match="prior: expected a study with these features"):
        make_plan(prior=prior, kernel=SquaredExponential(0.2))
    with pytest.raises(InvalidArgument, match="prior: expected a study"):
        make_plan(prior=prior, domain=DOMAIN)
    with pytest.raises(InvalidArgument, match="prior: expected a study with rewards"):
        make_plan(prior=prior, features=earlier_study().plan.features, rewards=(0.0, 2.0))
    with pytest.raises(DiscreetError, match=r"prior: expected Study\.prior\(\)"):
        make_plan(prior=earlier_study())


# -- under joint privacy


def private_plan(**parts):
    defaults = {"privacy": JointDP(epsilon=8.0, delta=1e-2), "schedule": Schedule(first=100)}
    return make_plan(**(defaults | parts))


@cache
def private_study():
    """Real noise; 400 rounds of a budget with which the best dose is found."""
    bandit = Bandit(private_plan())
    rng = np.random.Generator(np.random.Philox(6))
    for number in range(400):
        trial = bandit.ask(user=f"user {number}")
        bandit.tell(trial, answer(trial) + 0.1 * rng.standard_normal())
    bandit.finish()
    return bandit.study


def test_a_finished_private_study_is_exported_verified_and_as_good_as_before(tmp_path):
    study = private_study()
    assert len(study.releases) == len(study.epochs) > 3
    assert all(release.private for release in study.releases)
    study.save(tmp_path / "study.json")
    loaded = Study.load(tmp_path / "study.json")
    assert canonical.encode(loaded) == canonical.encode(study)
    assert loaded.best() == study.best()
    assert abs(loaded.best().action["dose"] - 7) < 2


@pytest.mark.parametrize(
    "tamper",
    [tamper for tamper in TAMPERING if tamper is not claim_privacy],
    ids=lambda tamper: tamper.__name__,
)
def test_an_edited_private_export_is_refused(tmp_path, tamper):
    path = tmp_path / "study.json"
    private_study().save(path)
    export = json.loads(path.read_bytes())
    tamper(export["study"], 1)
    path.write_bytes(dump(export))
    with pytest.raises(Malformed):
        Study.load(path)


def test_a_simulated_record_cannot_be_passed_off_as_private(tmp_path):
    bandit = Bandit(private_plan(), simulation=Simulation(1))
    for number in range(120):
        bandit.tell(bandit.ask(user=str(number)), 0.5)
    bandit.finish()
    bandit.export(tmp_path / "study.json")
    export = json.loads((tmp_path / "study.json").read_bytes())
    assert not any(release["private"] for release in export["study"]["releases"])
    claim_privacy(export["study"], 0)
    (tmp_path / "study.json").write_bytes(dump(export))
    with pytest.raises(Malformed):
        Study.load(tmp_path / "study.json")


def test_a_private_study_ends_once_and_shows_its_last_epoch(tmp_path):
    plan = private_plan(schedule=Schedule(first=6, growth=1.5))
    with Bandit(plan, tmp_path / "study.db") as bandit:
        for number in range(8):
            bandit.tell(bandit.ask(user=str(number)), 0.5)
        assert len(bandit.study.releases) == 1
        bandit.finish()
        before = canonical.digest(bandit.study)
        assert len(bandit.study.releases) == len(bandit.study.epochs) == 2
        bandit.finish()
        with pytest.raises(StudyEnded):
            bandit.ask(user="9")
    with Bandit(plan, tmp_path / "study.db") as bandit:
        bandit.finish()
        assert canonical.digest(bandit.study) == before


@pytest.mark.parametrize("private", [True, False], ids=["private", "not private"])
def test_a_private_study_warms_up_the_next_one(tmp_path, private):
    private_study().save(tmp_path / "study.json")
    earlier = Study.load(tmp_path / "study.json")
    make = private_plan if private else make_plan
    plan = make(prior=earlier.prior(), features=earlier.plan.features)
    bandit = Bandit(plan)
    # A maximum is flat: rounding of the mean moves it by the root of that.
    assert bandit.best().action == pytest.approx(earlier.best().action, rel=1e-6)
    assert bandit.best().interval == pytest.approx(earlier.best().interval, rel=1e-9)
    bandit.tell(bandit.ask(user="u"), 0.5)
    bandit.export(tmp_path / "next.json")
    assert canonical.digest(Study.load(tmp_path / "next.json")) == canonical.digest(bandit.study)


# -- the best of a list


def test_the_best_of_candidates_is_the_one_with_the_highest_mean_and_its_interval():
    study = make_study()
    doses = [1.0, 6.5, 3.0, 9.5]
    best = study.best([{"dose": dose} for dose in doses])
    assert (best.action, best.chosen) == ({"dose": 6.5}, 1)
    mean, variance = (float(f(np.array([[0.65]]))[0]) for f in moments(study))
    plan = study.plan
    assert best.mean == pytest.approx(plan.centre + plan.half_width * mean)
    half = study.belief.margin(variance**0.5) * plan.half_width
    assert best.interval == pytest.approx((best.mean - half, best.mean + half))
    assert study.best(np.array(doses)[:, None]) == best
    assert study.best().chosen is None
    assert study.best([study.best().action]).mean == pytest.approx(study.best().mean)


def moments(study):
    return study.posterior.mean, study.posterior.variance


def test_of_equal_candidates_the_first_is_chosen():
    assert make_study().best([[2.0], [7.0], [7.0], [2.0]]).chosen == 1


def test_a_bandit_and_its_study_know_the_same_best_of_candidates_also_with_a_context():
    domain = Box({"dose": (0, 10), "age": (18, 90)}, context=["age"])
    for decisions in ("context", "candidates"):
        bandit = Bandit(make_plan(domain=domain, decisions=decisions))
        listed = [{"dose": 3, "age": 40}, {"dose": 5, "age": 40}]
        assert bandit.best(listed) == bandit.study.best(listed)


@pytest.mark.parametrize(
    ("candidates", "words"),
    [
        ([], "a non-empty sequence of points"),
        ({"dose": 5}, "a non-empty sequence of points"),
        ([{"dose": 987654.5}], r"dose to be a finite number within \[0.0, 10.0\] \(row 0\)"),
        ([{"dose": 5}, {"pills": 5}], r"a value for 'dose' \(row 1\)"),
    ],
)
def test_the_best_of_bad_candidates_is_refused_as_an_ask_would_be(candidates, words):
    plan = make_plan(decisions="candidates")
    for call in (Bandit(plan).best, Bandit(plan).study.best, Bandit(plan).check):
        with pytest.raises(InvalidArgument, match=f"candidates: expected {words}") as refused:
            call(candidates)
        assert "987654" not in str(refused.value)


def test_candidates_beside_a_context_are_refused():
    with pytest.raises(InvalidArgument, match="context: expected none beside candidates"):
        make_study().best([{"dose": 5}], context={})
