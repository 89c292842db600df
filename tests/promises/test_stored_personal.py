"""A study with an open kernel, from before some contexts might idle, is read and goes on."""

import shutil

from tests.stored import personal
from tests.support.places import TESTS

import discreet
from discreet.protocol.archive import read_archive
from discreet.protocol.verifier import Verifier

FOLDER = TESTS / "stored" / "personal"
#: What the files say, whatever is computed from them.
PLAN = "4788056b4bc93b6ce9405f0ef9724611023ebd227edf8f389a760a8e15e8f18c"
FIRST, LAST = (
    "309c20a0d413482ee3262ca4e63b372fa5f5c7c80bfa372f51dc6778c3467a45",
    "c02254e078ed5e750ebbbca86ca6e868f1993aaf011575476ac766df631be255",
)


def test_the_journal_and_the_export_are_read_as_they_were():
    for name in ("study.db", "study.json"):
        study = read_archive(FOLDER / name).study
        assert study.plan.digest == PLAN
        assert (study.epochs[0].digest, study.epochs[-1].digest) == (FIRST, LAST)
        assert len(study.releases) == 8


def test_it_weighs_the_structures_that_it_began_with():
    study = discreet.Study.load(FOLDER / "study.json")
    assert study.plan.kernel.selects is None
    assert study.plan.exploration == discreet.Exploration(0.0, 0.5, foresight=True)
    assert sorted(study.structures) == [
        "contexts act together",
        "contexts do not matter",
        "each context acts by itself",
    ]
    assert abs(study.structures["contexts act together"] - 0.99399) < 1e-4


def test_the_study_goes_on_by_its_original_script(tmp_path):
    path = shutil.copy(FOLDER / "study.db", tmp_path / "study.db")
    with discreet.Bandit(personal.plan(), path) as bandit:
        assert bandit.asked == personal.VISITS
        personal.take_part(bandit, 40)
        assert bandit.study.epochs[8].digest == LAST
        eighth = bandit.study.releases[8]
        assert eighth.epoch == LAST
        assert bandit.study.epochs[9].previous == eighth.digest
        Verifier(bandit.plan).check(bandit.study.epochs[9], bandit.study.releases[:9])
