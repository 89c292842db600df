"""The shuffled model on the command line."""

import json

import pytest
from tests.support.mixed_plans import Crowd, mixed_plan

from discreet import ShuffledDP, Study
from discreet.cli.program import main


def said(capsys, *words):
    with pytest.raises(SystemExit) as raised:
        main(list(words))
    return raised.value.code, capsys.readouterr()


def test_a_shuffled_study_is_simulated(capsys):
    words = "simulate --model shuffled --epsilon 1 --delta 1e-6 --rounds 600 --runs 1 --json"
    code, out = said(capsys, *words.split())
    assert code == 0
    assert json.loads(out.out)


@pytest.mark.parametrize("flags", ["--epsilon 1", "--delta 1e-6", "--epsilon 1 --protect rewards"])
def test_a_shuffled_simulation_needs_epsilon_and_delta(capsys, flags):
    code, out = said(capsys, "simulate", "--model", "shuffled", *flags.split())
    assert code == 2
    assert "--epsilon" in out.err or "--protect" in out.err


def test_inspect_says_what_a_shuffled_study_promises_and_costs(capsys, tmp_path):
    people = Crowd(mixed_plan(privacy=ShuffledDP(1.0, 1e-3, minimum=6, honest=0.9)))
    people.come(12)
    people.turn()
    path = tmp_path / "mixed.json"
    people.server.study.save(path)
    code, out = said(capsys, "inspect", str(path))
    assert code == 0
    assert "Shuffled differential privacy" in out.out
    assert "epsilon = 1 at delta = 0.001" in " ".join(out.out.split())
    assert Study.load(path).plan.privacy.minimum == 6


def test_the_journals_of_a_shuffler_and_its_server_are_read(capsys, tmp_path):
    places = tmp_path / "shuffler.db", tmp_path / "server.db"
    people = Crowd(mixed_plan(), journals=places)
    people.come(12)
    people.turn()
    people.shuffler.close()
    people.server.close()
    for place, role in zip(places, ("shuffler", "server"), strict=True):
        code, out = said(capsys, "inspect", str(place), "--json")
        found = json.loads(out.out)
        assert code == 0
        assert role in json.dumps(found)
