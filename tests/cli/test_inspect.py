"""`discreet inspect`: what it says of exports and journals, to people and to machines."""

import json
import re
from functools import cache

import numpy as np
import pytest
from tests.support.places import TESTS

from discreet import (
    Additive,
    Bandit,
    Box,
    Categorical,
    Client,
    Integer,
    JointDP,
    LocalDP,
    NonPrivate,
    Plan,
    Schedule,
    Server,
    Simulation,
    SquaredExponential,
    Study,
    compose,
)
from discreet.cli import figures as surface
from discreet.protocol.archive import Archive

PRIVATE = JointDP(4.0, 1e-6)
DOSE, AGE, PILLS = (0, 10), (18, 90), Integer(1, 4)
ARM = Categorical(("a", "b", "c"))
DOMAINS = {
    "one": Box({"dose": DOSE}),
    "one whole": Box({"pills": PILLS}),
    "one category": Box({"arm": ARM}),
    "two": Box({"dose": DOSE, "pills": PILLS}, feasible="dose <= 4 * pills"),
    "two under a context": Box({"dose": DOSE, "age": AGE}, context=["age"]),
    "ball": Box({"x": (-1, 1), "y": (-1, 1)}, shape="ball"),
    "three": Box({"dose": DOSE, "arm": ARM, "age": AGE}),
    "three under a context": Box({"dose": DOSE, "arm": ARM, "age": AGE}, context=["arm"]),
    "fourteen": Box({f"x{i}": (0, 1) for i in range(14)}),
}


def plan_of(name, **parts):
    kernel, domain = SquaredExponential(0.5), DOMAINS[name]
    usual = {
        "privacy": PRIVATE,
        "schedule": Schedule(8),
        "kernel": Additive.over(kernel, domain.dimension) if len(domain.names) > 2 else kernel,
        "kernel_error": 0.05,
        "name": name,
    }
    return Plan(domain=domain, **(usual | parts))


@cache
def study_of(name):
    """A finished study: of its first epoch where there are contexts, whose epochs take longer."""
    plan = plan_of(name)
    bandit = Bandit(plan, simulation=Simulation(3))
    for index in range(8 if plan.domain.has_context else 20):
        context = {"arm": "abc"[index % 3], "age": 18 + index}
        given = {key: context[key] for key in plan.domain.context}
        bandit.tell(bandit.ask(context=given or None, user=f"user {index}"), 0.5)
    bandit.finish()
    return bandit.study


@pytest.fixture
def real(tmp_path):
    """The export and the journal of a study whose noise is real."""
    plan = plan_of("one", horizon=100)
    with Bandit(plan, tmp_path / "study.db") as bandit:
        for index in range(30):
            trial = bandit.ask(user=f"user {index}")
            bandit.tell(trial, 1 - (trial.action["dose"] - 7) ** 2 / 100)
        bandit.export(tmp_path / "study.json")
        return bandit.study


# -- words and numbers


@pytest.mark.parametrize("name", ["study.json", "study.db"])
def test_a_study_is_said_in_words(run, real, name):
    code, out, err = run("inspect", name)
    assert (code, err) == (0, "")
    source = "an export" if name == "study.json" else "the journal of a bandit"
    assert out.startswith(f"Study 'one': {source}.\n")
    assert real.guarantee in out
    assert "Budget: mu = 0.8379 for one person in at most 1 round" in out
    assert "4 at 1e-06" in out
    assert "Spent so far, at most: all of it, by a person who has had 1 round" in out
    best = real.best()
    what = "Not surely the best action" if real.holds_back else "Best action"
    assert f"{what}: dose = {best.action['dose']:.3f}; mean reward {best.mean:.3f}" in out
    assert ("Nothing that was learnt is surely better" in out) == real.holds_back
    assert f"{len(real.releases)} epochs released" in out
    for epoch in real.epochs:
        assert re.search(rf"^ +{epoch.number} +{epoch.first} to {epoch.end - 1} ", out, re.M)


@pytest.mark.parametrize("name", ["study.json", "study.db"])
def test_machines_are_told_the_same(run, real, name):
    code, out, _ = run("inspect", name, "--json")
    assert (code, out.count("\n")) == (0, 1)
    found = json.loads(out)
    assert (found["path"], found["digest"]) == (name, real.plan.digest)
    assert (found["simulated"], found["running"], found["figure"]) == (False, True, None)
    assert found["guarantee"] == real.guarantee
    budget = found["budget"]
    assert (budget["epsilon"], budget["delta"], budget["rounds_per_user"]) == (4.0, 1e-6, 1)
    assert budget["mu"] == real.plan.cost.mu < PRIVATE.cost.mu
    assert budget["epsilon_at"]["1e-06"] == pytest.approx(4.0)
    assert (
        budget["epsilon_at"]["1e-09"] == real.plan.cost.epsilon(1e-9) > PRIVATE.cost.epsilon(1e-9)
    )
    assert budget["spent_at_most"] == {"mu": budget["mu"], "epsilon": 4.0}
    assert [row["released"] for row in found["epochs"]] == [True] * len(real.releases) + [False]
    assert found["released_asks"] == sum(release.asks for release in real.releases)
    assert found["epochs"][0]["noise_std"] == pytest.approx(
        real.epochs[0].encoding.noise.cross * real.plan.half_width
    )
    (best,) = found["best"]
    assert best["action"] == real.best().action
    assert best["interval"] == pytest.approx(list(real.best().interval))


def test_before_a_release_nothing_is_spent_and_nothing_is_learnt(run, tmp_path):
    with Bandit(plan_of("one"), tmp_path / "study.db") as bandit:
        bandit.tell(bandit.ask(user="someone"), 0.5)
    code, out, _ = run("inspect", "study.db")
    assert code == 0
    assert "Spent so far, at most: nothing: nothing is released." in out
    assert "Nothing is released yet: nothing is learnt." in out
    _, out, _ = run("inspect", "study.db", "--json")
    found = json.loads(out)
    assert (found["best"], found["budget"]["spent_at_most"]) == ([], {"mu": 0.0, "epsilon": 0.0})
    code, _, err = run("inspect", "study.db", "--figure", "study.png")
    assert code == 2
    assert err == "discreet: --figure: expected a study that has released something\n"


def test_a_study_without_privacy_has_no_budget(run, tmp_path):
    Bandit(plan_of("one", privacy=NonPrivate()), tmp_path / "study.db").close()
    _, out, _ = run("inspect", "study.db")
    assert "No privacy guarantee" in out
    assert "Budget: none, for nothing is promised." in out


def test_a_simulation_is_called_one(run, tmp_path):
    study_of("one").save(tmp_path / "study.json")
    _, out, _ = run("inspect", "study.json")
    assert "A simulation: nothing here is private." in out
    assert "Budget, had the noise been real: " in out


def test_the_local_model_says_how_many_reports_came(run, tmp_path):
    plan = plan_of("one", privacy=LocalDP(8.0, 1e-6), schedule=Schedule(3))
    with Server(plan, tmp_path / "server.db") as server:
        for _ in range(4):
            client = Client(plan, tmp_path / "mine.db" if _ == 3 else None)
            client.choose(server.offer(client.request()))
            client.settle(server.receive(client.report(0.7)))
            client.close()
    _, out, _ = run("inspect", "server.db")
    assert "the journal of a server" in out
    assert "3, 3 reports" in out
    code, out, _ = run("inspect", "mine.db")
    assert code == 0
    assert "A client's journal is one person's: beyond the plan, nothing in it is public." in out
    assert "epoch" not in out.partition("Budget")[2].replace("epochs", "")


def test_nothing_of_a_person_is_shown(run, tmp_path):
    with Bandit(plan_of("one"), tmp_path / "study.db") as bandit:
        for index in range(12):
            bandit.tell(bandit.ask(user=f"Ada {index}"), 0.7312345)
        asked = bandit.asked
    for arguments in ([], ["--json"]):
        _, out, _ = run("inspect", "study.db", *arguments)
        assert "Ada" not in out
        assert "0.7312" not in out
        assert asked == 12  # four of them in the open epoch, which is not said
        assert "12 asks" not in out


# -- several studies


@pytest.fixture
def studies(real, tmp_path):
    """Beside a real one: another, a local one, one not begun, one without privacy, a simulation."""
    plans = {
        "other": plan_of("one", privacy=JointDP(8.0, 1e-5, rounds_per_user=2)),
        "local": plan_of("one", privacy=LocalDP(2.0, 1e-6), encoding="reward"),
        "pure": plan_of("one", privacy=LocalDP(2.0)),
        "purer": plan_of("one", privacy=LocalDP(0.5, rounds_per_user=2)),
        "fresh": plan_of("one", schedule=Schedule(99)),
        "open": plan_of("one", privacy=NonPrivate()),
    }
    plans["simulated"] = plans["other"]
    for name, plan in plans.items():
        simulation = Simulation(3) if name == "simulated" else None
        with Bandit(plan, tmp_path / f"{name}.db", simulation=simulation) as bandit:
            for index in range(9):
                bandit.tell(bandit.ask(user=f"user {index}"), 0.5)
            bandit.export(tmp_path / f"{name}.json")
    return {"study": real.plan, **plans}


@pytest.mark.parametrize("ending", ["db", "json"])
def test_studies_without_delta_add_up_their_epsilons(run, studies, ending):
    paths = [f"pure.{ending}", f"purer.{ending}"]
    _, out, _ = run("inspect", *paths, "--json")
    known = json.loads(out)["together"]
    assert (known["mu"], known["pure_epsilon"], known["least_delta"]) == (None, 2.5, 0.0)
    _, out, _ = run("inspect", *paths)
    assert "Together: epsilon = 2.5 with delta = 0 for one person who takes part" in out
    assert "LocalDP, epsilon = 0.5 with delta = 0, at most 2" in out
    _, out, _ = run("inspect", f"pure.{ending}")
    assert "Budget: epsilon = 2 with delta = 0 for one person in at most 1 round." in out
    assert "Spent so far, at most: all of it" in out


@pytest.mark.parametrize("ending", ["db", "json"])
def test_beside_gaussian_studies_an_epsilon_without_delta_is_added_at_the_end(run, studies, ending):
    paths = [f"study.{ending}", f"pure.{ending}"]
    _, out, _ = run("inspect", *paths, "--json")
    known = json.loads(out)["together"]
    alone = studies["study"].cost
    assert (known["mu"], known["pure_epsilon"]) == (alone.mu, 2.0)
    for delta in (1e-3, 1e-6):
        assert known["epsilon_at"][repr(delta)] == pytest.approx(2.0 + alone.epsilon(delta))
    _, out, _ = run("inspect", *paths)
    assert f"Together: mu = {alone.mu:.4g} and beside it epsilon = 2 with delta = 0 for" in out


@pytest.mark.parametrize("names", [("study", "other"), ("study", "other", "local", "fresh")])
@pytest.mark.parametrize("ending", ["db", "json"])
def test_several_studies_say_what_they_cost_together(run, studies, names, ending):
    paths = [f"{name}.{ending}" for name in names]
    code, out, _ = run("inspect", *paths, "--json")
    found = json.loads(out)
    assert (code, [row["path"] for row in found["studies"]]) == (0, paths)
    known, costs = found["together"], [studies[name].cost for name in names]
    assert known["mu"] == pytest.approx(np.sqrt(sum(cost.mu**2 for cost in costs)))
    assert known["slack"] == pytest.approx(sum(cost.slack for cost in costs))
    assert known["delta"] == 1e-5
    assert known["epsilon_at"]["1e-05"] == compose(costs).epsilon(1e-5)
    assert known["epsilon_at"]["1e-09"] is None
    begun = [studies[name].cost for name in names if name != "fresh"]
    assert known["spent_at_most"]["mu"] == pytest.approx(compose(begun).mu)
    code, out, err = run("inspect", *paths)
    assert (code, err) == (0, "")
    assert f"Together: mu = {known['mu']:.4g} for one person who takes part in each study" in out
    other = f"mu = {studies['other'].cost.mu:.4g}, at most 2 rounds."
    assert f"JointDP, epsilon = 8 at delta = 1e-05, {other}" in out
    assert "not certified at " in out
    assert ("all of it, by a person" in out) == ("fresh" not in names)
    assert ("some studies have released nothing" in out) == ("fresh" in names)
    assert "A joint study trusts its custodian." in out
    assert ("A local study trusts nobody" in out) == ("local" in names)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("open", "'one' promises no privacy"), ("simulated", "'one' is a simulation")],
)
def test_beside_a_study_without_a_guarantee_there_is_none(run, studies, name, reason):
    code, out, _ = run("inspect", "study.db", f"{name}.db")
    assert code == 0
    assert out.endswith(f"Together: no guarantee, for {reason}.\n")
    _, out, _ = run("inspect", "study.db", f"{name}.db", "--json")
    assert json.loads(out)["together"] is None


def test_studies_that_have_released_nothing_have_spent_nothing(run, studies, tmp_path):
    Bandit(studies["fresh"], tmp_path / "late.db").close()
    _, out, _ = run("inspect", "fresh.db", "late.db")
    assert "Spent so far, at most: nothing: nothing is released." in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["study.db", "study.json"], "PATH: expected each study once: study.db and study.json"),
        (["fresh.db", "./fresh.db"], "PATH: expected each study once"),
        (["study.db", "other.db", "--context", "age=6"], "--context: expected one study"),
        (["study.db", "other.db", "--figure", "a.png"], "--figure: expected one study"),
        (["study.db", "no.json"], "there is no such file"),
    ],
)
def test_what_makes_no_sum_is_refused(run, studies, arguments, words):
    code, out, err = run("inspect", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_many_epochs_are_abridged_for_people_alone(run, tmp_path):
    plan = plan_of("one", privacy=NonPrivate(), schedule=Schedule(1, growth=1.01))
    bandit = Bandit(plan)
    for index in range(40):
        bandit.tell(bandit.ask(), index / 40)
    bandit.export(tmp_path / "study.json")
    _, out, _ = run("inspect", "study.json")
    assert "\n   ...  " in out
    assert out.count(" to ") < 40
    _, out, _ = run("inspect", "study.json", "--json")
    assert len(json.loads(out)["epochs"]) == 40


# -- contexts


def test_without_a_context_a_few_are_shown_and_with_one_that_one(run, tmp_path):
    study = study_of("two under a context")
    study.save(tmp_path / "study.json")
    _, out, _ = run("inspect", "study.json", "--json")
    ages = [row["context"]["age"] for row in json.loads(out)["best"]]
    assert ages == [18.0, 54.0, 90.0]
    _, out, _ = run("inspect", "study.json", "--context", "age=61", "--json")
    (row,) = json.loads(out)["best"]
    assert row["action"] == study.best(context={"age": 61}).action
    _, out, _ = run("inspect", "study.json", "--context", "age=61")
    assert "Best action under age = 61.000: dose = " in out


def test_every_category_of_a_context_is_shown(run, tmp_path):
    study_of("three under a context").save(tmp_path / "study.json")
    _, out, _ = run("inspect", "study.json", "--json")
    assert [row["context"] for row in json.loads(out)["best"]] == [{"arm": arm} for arm in "abc"]
    code, out, _ = run("inspect", "study.json", "--context", "arm=b")
    assert (code, out.count("Best action under arm = b: ")) == (0, 1)


@pytest.mark.parametrize(
    ("name", "context", "words"),
    [
        ("two under a context", "age", "--context: expected NAME=VALUE for age, got 'age'"),
        ("two under a context", "dose=3", "--context: expected NAME=VALUE for age"),
        ("two under a context", "age=old", "--context: expected a number for age, got 'old'"),
        ("two under a context", "age=7", "context: expected age to be a finite number within"),
        ("three under a context", "arm=z", "context: expected arm to be"),
        ("one", "age=61", "--context: expected nothing: the domain has no context"),
    ],
)
def test_a_context_that_is_none_is_refused(run, tmp_path, name, context, words):
    study_of(name).save(tmp_path / "study.json")
    code, out, err = run("inspect", "study.json", "--context", context)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


# -- figures


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """The figure of a study, as drawn and before it is written."""

    def draw(study, context=None):
        kept = []
        monkeypatch.setattr(surface, "save", lambda figure, path: kept.append(figure))
        surface.study_figure(Archive("export", study), context, tmp_path / "a.png")
        return kept[0]

    return draw


@pytest.mark.parametrize(
    ("ending", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_the_figure_is_written_as_its_name_says(run, tmp_path, ending, magic):
    study_of("one").save(tmp_path / "study.json")
    code, out, _ = run("inspect", "study.json", "--figure", f"a.{ending}")
    assert code == 0
    assert out.endswith(f"Figure: a.{ending}\n")
    assert (tmp_path / f"a.{ending}").read_bytes().startswith(magic)


@pytest.mark.parametrize("name", DOMAINS)
def test_every_domain_can_be_drawn(run, tmp_path, name):
    study_of(name).save(tmp_path / "study.json")
    code, out, _ = run("inspect", "study.json", "--figure", "a.png", "--json")
    assert (code, json.loads(out)["figure"]) == (0, "a.png")
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_a_line_is_the_posterior_mean_and_its_band_the_interval_of_best(drawn):
    study = study_of("one")
    axes = drawn(study).axes[0]
    doses, mean = axes.get_lines()[0].get_data()
    points = np.linspace(0, 1, len(doses))[:, None]
    expected = study.posterior.mean(points) * 0.5 + 0.5
    assert mean == pytest.approx(expected)
    assert (doses[0], doses[-1], axes.get_xlabel()) == (0.0, 10.0, "dose")
    best = study.best()
    corners = axes.collections[0].get_paths()[0].vertices
    near = corners[np.abs(corners[:, 0] - best.action["dose"]) < 0.06, 1]
    assert near.min() == pytest.approx(best.interval[0], abs=0.02)
    assert near.max() == pytest.approx(best.interval[1], abs=0.02)


def test_a_surface_shows_the_mean_where_actions_are_allowed(drawn):
    study = study_of("two")
    figure = drawn(study)
    learnt = figure.axes[0].collections[0].get_array()
    assert learnt.shape == (4, 101)  # pills, doses
    pills, doses = np.meshgrid(np.arange(4) / 3, np.linspace(0, 1, 101), indexing="ij")
    points = np.stack([doses.ravel(), pills.ravel()], axis=1)
    allowed = study.plan.domain.admits(points)
    expected = np.clip(study.posterior.mean(points) * 0.5 + 0.5, 0, 1)
    assert np.asarray(learnt).ravel()[allowed] == pytest.approx(expected[allowed])
    assert (np.ma.getmaskarray(learnt).ravel() == ~allowed).all()
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("dose", "pills")


def test_under_a_context_the_best_action_is_drawn_for_each(drawn):
    study = study_of("two under a context")
    axes = drawn(study, {"age": 54.0}).axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("age (context)", "dose")
    ages, doses = axes.get_lines()[0].get_data()
    assert len(ages) == 25
    assert doses[7] == pytest.approx(study.best(context={"age": ages[7]}).action["dose"])


def test_slices_go_through_the_best_action(drawn):
    study = study_of("three under a context")
    figure = drawn(study, {"arm": "b"})
    best = study.best(context={"arm": "b"})
    assert "arm = b" in figure.get_suptitle()
    dose, arm, age = figure.axes
    assert [axes.get_xlabel() for axes in (dose, arm, age)] == ["dose", "arm (context)", "age"]
    assert [label.get_text() for label in arm.get_xticklabels()] == ["a", "b", "c"]
    for axes, name in ((dose, "dose"), (age, "age")):
        cross = axes.get_lines()[-1].get_data()
        assert cross[0] == pytest.approx(best.action[name])
        assert cross[1] == pytest.approx(best.mean, abs=1e-3)


def test_a_caption_says_that_a_simulation_is_one(drawn):
    caption = drawn(study_of("one")).get_supxlabel()
    assert "a simulation, not private: JointDP, epsilon = 4 at delta = 1e-06" in caption


def test_actions_are_drawn_only_where_they_are_public(drawn):
    assert drawn(study_of("two")).axes[1].get_lines()
    assert not drawn(study_of("two under a context"), {"age": 54.0}).axes[1].get_lines()


def test_a_study_of_an_earlier_one_shows_what_it_begins_with(run, tmp_path):
    earlier = study_of("one")
    plan = plan_of(
        "one",
        privacy=NonPrivate(),
        prior=earlier.prior(public_data=True),
        features=earlier.plan.map,
    )
    Study(plan).save(tmp_path / "study.json")
    code, out, _ = run("inspect", "study.json")
    assert code == 0
    assert "Best action: dose = " in out


def test_public_tables_are_written_beside_the_words(run, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    bandit = Bandit(Plan(domain=DOMAINS["one"], privacy=NonPrivate(), horizon=20))
    bandit.tell_many(bandit.ask_many(20), [0.5] * 20)
    bandit.finish()
    bandit.export(tmp_path / "study.json")
    code, out, _ = run(
        "inspect", "study.json", "--table", "epochs.csv", "--posterior", "posterior.parquet"
    )
    assert code == 0
    assert "Table: epochs.csv" in out
    first = (tmp_path / "epochs.csv").read_text().splitlines()[0]
    assert first.split(",") == list(bandit.study.to_frame())
    found = pq.read_table(tmp_path / "posterior.parquet").to_pylist()
    assert found == bandit.study.predict().rows


def test_a_posterior_is_of_a_study_that_has_released_something(run, tmp_path):
    Bandit(Plan(domain=DOMAINS["one"], privacy=NonPrivate())).export(tmp_path / "study.json")
    code, _, err = run("inspect", "study.json", "--posterior", "posterior.csv")
    assert (code, "released something" in err) == (2, True)
    assert not (tmp_path / "posterior.csv").exists()
    assert run("inspect", "study.json", "--table", "folder/that/is/not.csv")[0] == 2


# -- a kernel that is left open


def test_what_the_releases_say_of_the_function_and_of_contexts_is_said(run, tmp_path):
    domain = Box({"dose": DOSE, "age": AGE, "size": (0, 1)}, context=["age", "size"])
    plan = Plan(domain, NonPrivate(), horizon=80)
    with Bandit(plan, tmp_path / "study.db") as bandit:
        for number in range(80):
            context = {"age": 18.0 + 37 * number % 72, "size": 0.7 * number % 1}
            trial = bandit.ask(context=context)
            bandit.tell(trial, 1.0 - abs(trial.action["dose"] / 10 - (context["age"] - 18) / 72))
        study = bandit.study
    code, out, _ = run("inspect", "study.db")
    assert code == 0
    for words, share in study.structures.items():
        assert f"{words} ({share:.0%})" in out
    first, second = study.needed_contexts.items()
    assert first[0] == "age"
    words = f"age ({first[1]:.0%}), size ({second[1]:.0%}). Before any release: 62%."
    assert f"How likely each context matters: {words}" in out
    assert [f"age = {age}, size = 0.500" in out for age in ("18.000", "54.000", "90.000")] == [
        True
    ] * 3
    found = json.loads(run("inspect", "study.db", "--json")[1])
    assert found["needed_contexts"] == study.needed_contexts


def test_where_all_contexts_matter_or_none_no_chance_of_each_is_said(run):
    export = TESTS / "stored" / "personal" / "study.json"
    _, out, _ = run("inspect", export)
    assert "contexts act together (99%)" in out
    assert "each context matters" not in out
