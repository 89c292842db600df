"""The first study that dropped arms is read, and goes on by its original script."""

import shutil

from tests.stored import eliminating
from tests.support.places import TESTS

import discreet
from discreet.protocol.archive import read_archive

FOLDER = TESTS / "stored" / "elimination"
#: What the files say, whatever is computed from them.
PLAN = "94864d035591a2cfff9bb96d4680bbb8dfcc6e53170052e554f067f397f44a95"
EPOCHS = [
    "bcc4a5eaef04d9c6acc8ee5e4c0990c301d91680df5026154e682511d3f38493",
    "b82d18c782c484dca208c3e79e0b81ce6f63d57b365f78c61a546cc851c60268",
    "22c6baebe914565e9572dcc98ba769b13b350004e1e9b55b3dfcdf5e8f92a2d1",
]


def test_the_journal_and_the_export_are_read_as_they_were():
    for name in ("study.db", "study.json"):
        study = read_archive(FOLDER / name).study
        assert study.plan.digest == PLAN
        assert [epoch.digest for epoch in study.epochs] == EPOCHS
        assert study.certificate.asks == sum(release.asks for release in study.releases) == 120
        assert study.epochs[0].policy.counts.sum() == 60


def test_the_study_goes_on_by_its_original_script(tmp_path):
    path = shutil.copy(FOLDER / "study.db", tmp_path / "study.db")
    with discreet.Bandit(eliminating.plan(), path) as bandit:
        assert bandit.asked == eliminating.VISITS
        eliminating.take_part(bandit, 150)
        bandit.finish()
        assert [epoch.digest for epoch in bandit.study.epochs][: len(EPOCHS)] == EPOCHS
        assert bandit.study.certificate.asks == eliminating.VISITS + 150
