"""What earlier versions wrote is read, and a study goes on by its original script."""

import json
import shutil
from pathlib import Path

import pytest
from tests.stored import studies
from tests.support.places import TESTS

import discreet
from discreet.errors import JournalForeign, TrialClosed
from discreet.protocol.archive import read_archive
from discreet.protocol.messages import Answer, Ask
from discreet.storage.snapshot import records

FOLDERS = sorted(path.parent for path in TESTS.glob("stored/*/facts.json"))
STUDIES = [(folder, name) for folder in FOLDERS for name in studies.PLANS]
pytestmark = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
by_study = pytest.mark.parametrize("name", studies.PLANS)


def facts(folder, name):
    return json.loads((folder / "facts.json").read_text())[name]


@pytest.fixture
def copied(tmp_path):
    """A journal may be read as a copy; what is resumed here is nobody's data."""

    def copy(folder, name):
        return Path(shutil.copy(folder / name, tmp_path / name))

    return copy


PARTS = ("plan", "epochs", "releases")


def known_public(known):
    return {part: known[part] for part in PARTS}


def public(study):
    return {
        "plan": study.plan.digest,
        "epochs": [epoch.digest for epoch in study.epochs],
        "releases": [release.digest for release in study.releases],
    }


@by_study
def test_a_study_goes_on_by_its_original_script(folder, name, copied):
    known, path = facts(folder, name), copied(folder, f"{name}.db")
    before = records(path)
    with discreet.Bandit(studies.PLANS[name](folder), path) as bandit:
        assert bandit.asked == known["asked"]
        assert list(bandit.open_trials) == known["open"]
        assert public(bandit.study) == {
            part: known[part] for part in ("plan", "epochs", "releases")
        }
        epochs = len(bandit.study.epochs)
        while len(bandit.study.epochs) < epochs + 2:
            studies.take_part(bandit, 1)
        bandit.finish()
        after = public(bandit.study)
        assert all(
            after[part][: len(known[part])] == known[part] for part in ("epochs", "releases")
        )
        assert len(after["releases"]) == len(known["releases"]) + 3
    assert records(path)[: len(before)] == before


@by_study
def test_a_journal_and_an_export_are_read_as_they_were(folder, name):
    known = facts(folder, name)
    for ending in (".db", ".json"):
        archive = read_archive(folder / f"{name}{ending}")
        assert public(archive.study) == {
            part: known[part] for part in ("plan", "epochs", "releases")
        }
        assert not archive.study.is_simulated
        assert archive.study.guarantee == archive.study.plan.guarantee


@by_study
def test_another_plan_than_the_stored_one_is_still_foreign(folder, name, copied):
    path = copied(folder, f"{name}.db")
    for other in set(studies.PLANS) - {name}:
        with pytest.raises(JournalForeign, match="belongs to another plan"):
            discreet.Bandit(studies.PLANS[other](folder), path)


def test_a_finished_study_stays_finished(folder, copied):
    path = copied(folder, "finished.db")
    with discreet.Bandit(studies.box(folder), path) as bandit:
        assert not bandit.study.is_running
        bandit.finish()
        with pytest.raises(discreet.DiscreetError, match="finished"):
            bandit.ask(user="someone")
        known = facts(folder, "finished")
        assert public(bandit.study)["releases"] == known["releases"]


def test_a_simulation_stays_one(folder, copied):
    path = copied(folder, "simulated.db")
    plan = studies.context(folder)
    with pytest.raises(discreet.DiscreetError, match="that of a simulation"):
        discreet.Bandit(plan, path)
    with discreet.Bandit(plan, path, simulation=discreet.Simulation(seed=5)) as bandit:
        assert bandit.guarantee.startswith("A simulation")
        studies.take_part(bandit, 30)


def test_the_joint_roles_go_on_in_the_middle_of_a_turn(folder, copied):
    plan = studies.context(folder)
    with (
        discreet.Custodian(plan, copied(folder, "custodian.db")) as custodian,
        discreet.Publisher(plan, copied(folder, "publisher.db")) as publisher,
    ):
        known = facts(folder, "custodian")
        assert custodian.asked == known["asked"]
        assert public(publisher.study) == facts(folder, "publisher")
        assert custodian.outbox.digest == custodian.release().digest == known["release"]
        custodian.open(publisher.publish(custodian.outbox))
        action = custodian.choose(Ask("ab" * 16, "person 30", context={"age": 44}))
        assert custodian.receive(Answer(action.id, 0.5)).outcome == "counted"
        late = custodian.receive(Answer(f"{11:032x}", 0.5))  # asked in the first epoch
        assert late.outcome == "counted"
        assert custodian.receive(Answer(f"{3:032x}", 0.5)).outcome == "counted"  # a repeat


def test_the_local_roles_go_on_and_a_kept_report_is_sent_as_it_is(folder, copied):
    plan = studies.local_context(folder)
    with (
        discreet.Server(plan, copied(folder, "server.db")) as server,
        discreet.Client(plan, copied(folder, "client.db")) as client,
    ):
        known = facts(folder, "server")
        assert (server.asked, server.reports) == (known["asked"], known["reports"])
        assert public(server.study) == {
            part: known[part] for part in ("plan", "epochs", "releases")
        }
        assert client.rounds == facts(folder, "client")["rounds"] == 2
        assert client.outbox.seal == client.report(0.1).seal == facts(folder, "client")["report"]
        try:
            client.settle(server.receive(client.outbox))
        except TrialClosed:
            pytest.fail("the report was for the epoch that is open")
        with pytest.raises(discreet.DiscreetError, match="2 of 2 rounds"):
            client.request()
        while len(server.study.releases) < 4:
            other = discreet.Client(server.plan)
            other.choose(server.offer(other.request()), context={"age": 30})
            other.settle(server.receive(other.report(0.5)))
