"""The list of mutants fits the code; a few are tried in every run, all by `make mutants`."""

import shutil
from pathlib import Path

import pytest
from tests.mutants.mutants import MUTANTS
from tests.mutants.run import FAILED, ROOT, apply, run, survivors

QUICK = ("a person takes part once too often", "a simulation marked private")


def test_there_are_enough_of_them_under_names_of_their_own():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 20


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_changes_one_place_and_is_still_python(mutant, tmp_path):
    path = Path("discreet") / mutant.file
    (tmp_path / path).parent.mkdir(parents=True)
    shutil.copy(ROOT / "src" / path, tmp_path / path)
    apply(mutant, tmp_path)
    compile((tmp_path / path).read_text(), str(path), "exec")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_catcher_exists(mutant):
    assert mutant.catchers
    for catcher in mutant.catchers:
        file, _, test = catcher.partition("::")
        assert f"def {test.partition('[')[0]}(" in (ROOT / file).read_text()


@pytest.mark.parametrize("mutant", [each for each in MUTANTS if each.name in QUICK])
def test_a_mutant_is_caught(mutant):
    assert survivors(mutant) == []


def test_a_mutant_that_nobody_catches_is_told():
    """A catcher that passes, and one that does not exist, have not caught anything."""
    assert run(ROOT / "src", "tests/trusted/test_sums.py::test_sums_are_exact") != FAILED
    assert run(ROOT / "src", "tests/trusted/test_sums.py::test_that_is_not_there") != FAILED
