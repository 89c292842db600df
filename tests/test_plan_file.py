"""Plans from TOML: the names of `Plan`, every field, and errors that say where."""

import tomllib
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.places import ROOT

import discreet
from discreet import (
    Additive,
    Bandit,
    Box,
    Categorical,
    DiscreetError,
    Elimination,
    Exploration,
    Integer,
    JointDP,
    Learned,
    Linear,
    LocalDP,
    Matern,
    NonPrivate,
    Part,
    Plan,
    Polynomial,
    Schedule,
    SquaredExponential,
    Study,
    read_plan,
)
from discreet.plan_file import ARGUMENTS, HINTS, read_settings
from discreet.privacy.correlation import BLT

EXAMPLES = ROOT / "docs/examples"

#: Every field but those that only another study can give.
WHOLE = """
name = "whole"
horizon = 300
rewards = [-1, 2.5]
decisions = "candidates"
features = "hermite"
kernel_error = 0.01
max_features = 500
encoding = "gram"
signal_std = 0.5
noise_std = 0.25
expire_after = 50
public_decisions = true

[domain]
context = ["age"]
feasible = "dose <= age"
shape = "box"

[domain.coordinates]
dose = [0, 10]
pills = { type = "Integer", low = 1, high = 4 }
arm = { type = "Categorical", values = ["a", "b"] }
age = { type = "Continuous", low = 18, high = 90.5 }

[kernel]
type = "Additive"

[[kernel.parts]]
kernel = { type = "SquaredExponential", lengthscale = [0.5, 1] }
columns = [0, 3]
weight = 0.5

[[kernel.parts]]
kernel = { type = "Linear" }
columns = [1, 2]
weight = 0.5

[privacy]
type = "JointDP"
epsilon = 2
delta = 0.001
protect = "rewards"
rounds_per_user = 3

[schedule]
first = 20
growth = 1.5
second = 30

[exploration]
optimism = 1
sampling = 0.25
draws = 16
"""


def written(tmp_path, text, name="study.toml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def as_written():
    kernel = Additive(
        (
            Part(SquaredExponential((0.5, 1.0)), (0, 3), 0.5),
            Part(Linear(), (1, 2), 0.5),
        )
    )
    return Plan(
        name="whole",
        horizon=300,
        rewards=(-1.0, 2.5),
        decisions="candidates",
        features="hermite",
        kernel_error=0.01,
        max_features=500,
        encoding="gram",
        signal_std=0.5,
        noise_std=0.25,
        expire_after=50,
        public_decisions=True,
        domain=Box(
            {
                "dose": (0, 10),
                "pills": Integer(1, 4),
                "arm": Categorical(("a", "b")),
                "age": (18, 90.5),
            },
            context=["age"],
            feasible="dose <= age",
        ),
        kernel=kernel,
        privacy=JointDP(2.0, 0.001, "rewards", rounds_per_user=3),
        schedule=Schedule(20, 1.5, 30),
        exploration=Exploration(1.0, 0.25, 16),
    )


def test_a_file_says_what_a_plan_says(tmp_path):
    assert read_plan(written(tmp_path, WHOLE)).digest == as_written().digest


CORRELATED = """
horizon = 40
noise = "blt"
confidence = "theory"
norm = 0.5
buffers = { decays = [0.9, 0.5], scales = [0.1, 0.2] }
domain.coordinates.dose = [0, 10]
privacy = { type = "JointDP", epsilon = 1.0, delta = 0.001 }
"""


def correlated_as_written():
    return Plan(
        horizon=40,
        noise="blt",
        confidence="theory",
        norm=0.5,
        buffers=BLT((0.9, 0.5), (0.1, 0.2)),
        domain=Box({"dose": (0, 10)}),
        privacy=JointDP(1.0, 0.001),
    )


def test_a_file_may_correlate_noise(tmp_path):
    assert read_plan(written(tmp_path, CORRELATED)).digest == correlated_as_written().digest


LOOKED = """
directions = 5
looks = [0.8, 0.6]
domain.coordinates.dose = [0, 10]
privacy = { type = "JointDP", epsilon = 1.0, delta = 0.001 }
"""


def looked_as_written():
    domain = Box({"dose": (0, 10)})
    return Plan(domain=domain, privacy=JointDP(1.0, 0.001), looks=(0.8, 0.6), directions=5)


def test_a_file_may_look_again(tmp_path):
    assert read_plan(written(tmp_path, LOOKED)).digest == looked_as_written().digest


ELIMINATES = """
confidence = "theory"
norm = 2
noise_std = 0.1
domain.coordinates = { dose = [0, 10], arm = { type = "Categorical", values = ["a", "b"] } }
privacy = { type = "JointDP", epsilon = 1.0, delta = 0.001 }

[elimination]
arms = [[2.5, "a"], [5, "b"], [7.5, "b"]]
means = [0.1, 0.9]
silence = 0.01
"""


def eliminates_as_written():
    return Plan(
        confidence="theory",
        norm=2.0,
        noise_std=0.1,
        domain=Box({"dose": (0, 10), "arm": Categorical(("a", "b"))}),
        privacy=JointDP(1.0, 0.001),
        elimination=Elimination(
            arms=((2.5, "a"), (5.0, "b"), (7.5, "b")), means=(0.1, 0.9), silence=0.01
        ),
    )


def test_a_file_may_eliminate(tmp_path):
    assert read_plan(written(tmp_path, ELIMINATES)).digest == eliminates_as_written().digest


EXPLORES = """
explore = [{ dose = 4 }, { dose = 5.5 }]
domain.coordinates.dose = [0, 10]
domain.coordinates.age = [18, 90]
domain.coordinates.sex = { type = "Categorical", values = ["f", "m"] }
domain.context = ["age", "sex"]
privacy = { type = "JointDP", epsilon = 1.0, delta = 0.001 }

[public_contexts]
age = { type = "Around", mean = 61, std = 12 }
sex = { type = "Shares", shares = { f = 3, m = 1 } }
"""


def explores_as_written():
    people = {"age": (18, 90), "sex": Categorical(("f", "m"))}
    return Plan(
        explore=({"dose": 4}, {"dose": 5.5}),
        public_contexts={"age": (61, 12), "sex": {"f": 3, "m": 1}},
        domain=Box({"dose": (0, 10), **people}, context=["age", "sex"]),
        privacy=JointDP(1.0, 0.001),
    )


STARTS = """
start = { dose = 5, arm = "b" }
domain.coordinates = { dose = [0, 10], arm = { type = "Categorical", values = ["a", "b"] } }
privacy = { type = "JointDP", epsilon = 1.0, delta = 0.001 }
"""


def starts_as_written():
    domain = Box({"dose": (0, 10), "arm": Categorical(("a", "b"))})
    return Plan(domain=domain, privacy=JointDP(1.0, 0.001), start={"dose": 5, "arm": "b"})


INDICES = """
codewords = 4096
encoding = "codebook"
domain.coordinates = { dose = [0, 10] }
privacy = { type = "LocalDP", epsilon = 2.0 }
"""


def indices_as_written():
    privacy = LocalDP(2.0)
    return Plan(domain=Box({"dose": (0, 10)}), privacy=privacy, encoding="codebook", codewords=4096)


def test_a_file_may_ask_for_reports_that_are_indices(tmp_path):
    assert read_plan(written(tmp_path, INDICES)).digest == indices_as_written().digest


def test_a_file_may_say_how_to_begin_and_who_comes(tmp_path):
    assert read_plan(written(tmp_path, EXPLORES)).digest == explores_as_written().digest
    assert read_plan(written(tmp_path, STARTS)).digest == starts_as_written().digest


def test_a_file_may_give_a_region_to_begin_in(tmp_path):
    region = 'explore = { type = "Box", coordinates = { dose = [3, 6] } }'
    plan = read_plan(written(tmp_path, f"{region}\n{NEXT}"))
    assert plan.explore == Box({"dose": (3, 6)})


def test_every_field_of_a_plan_can_be_written():
    """A new field of `Plan` belongs into the texts above, or must be read in another way."""
    names = {field.name for field in ARGUMENTS}
    assert set(HINTS) == names
    texts = {
        WHOLE: as_written(),
        CORRELATED: correlated_as_written(),
        LOOKED: looked_as_written(),
        ELIMINATES: eliminates_as_written(),
        EXPLORES: explores_as_written(),
        STARTS: starts_as_written(),
        INDICES: indices_as_written(),
    }
    said = {name: plan for text, plan in texts.items() for name in tomllib.loads(text)}
    assert names - said.keys() == {"prior"}  # see "an earlier study" below
    for field in ARGUMENTS:  # and nothing in the texts is what it would be anyway
        if field.name in said:
            assert getattr(said[field.name], field.name) != field.default


@pytest.mark.parametrize(
    ("table", "kernel"),
    [
        ('type = "SquaredExponential"', SquaredExponential()),
        ('type = "Matern"\nsmoothness = 1.5\nform = "product"', Matern(1.5, form="product")),
        ('type = "Linear"\nbias = 2', Linear(2.0)),
        ('type = "Polynomial"\ndegree = 3', Polynomial(3)),
        (
            'type = "Learned"\nadditive = true\nshares = [0.0, 0.5]',
            Learned(additive=True, shares=(0.0, 0.5)),
        ),
        (
            'type = "Learned"\noptions = [{ type = "Matern", smoothness = 2.5 }]',
            Learned((Matern(2.5),)),
        ),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)  # fmt: skip
def test_every_kernel_can_be_written(tmp_path, table, kernel):
    text = f"domain.coordinates = {{ x = [0, 1] }}\nprivacy.type = 'NonPrivate'\n[kernel]\n{table}"
    assert read_plan(written(tmp_path, text)).kernel == kernel


@pytest.mark.parametrize(
    ("table", "privacy"),
    [
        ("type = 'NonPrivate'", NonPrivate()),
        ("type = 'JointDP'\nepsilon = 1\ndelta = 1e-6", JointDP(1.0, 1e-6)),
        ("type = 'LocalDP'\nepsilon = 8\ndelta = 1e-6\nrounds_per_user = 2", LocalDP(8.0, 1e-6, 2)),
    ],
)
def test_every_promise_can_be_written(tmp_path, table, privacy):
    text = f"domain.coordinates = {{ x = [0, 1] }}\n[privacy]\n{table}"
    assert read_plan(written(tmp_path, text)).privacy == privacy


def test_the_example_is_a_plan_and_so_is_every_change_of_it():
    plan = read_plan(EXAMPLES / "dosing.toml")
    assert (plan.name, plan.horizon, plan.decisions) == ("dosing", 600, "context")
    changed = read_plan(
        EXAMPLES / "dosing.toml", {"privacy.epsilon": 2, "kernel": {"type": "Linear"}}
    )
    assert (changed.privacy.epsilon, changed.privacy.delta) == (2.0, plan.privacy.delta)
    assert changed.kernel == Linear()


def test_settings_need_not_be_whole():
    found = read_settings(EXAMPLES / "settings.toml", {"horizon": 5})
    assert found.keys() == {"horizon", "encoding", "privacy", "exploration"}
    assert found["horizon"] == 5
    assert read_settings(None, {"horizon": 7}) == {"horizon": 7}


# -- an earlier study


def earlier(folder, privacy):
    plan = Plan(
        domain=Box({"dose": (0, 10)}), privacy=privacy, horizon=30, kernel=SquaredExponential(0.4)
    )
    bandit = Bandit(plan)
    for index in range(30):
        bandit.tell(bandit.ask(user=f"user {index}"), 0.5)
    bandit.finish()
    bandit.export(folder / "earlier.json")
    return bandit.study


NEXT = """
domain.coordinates.dose = [0, 10]
privacy = { type = "JointDP", epsilon = 1.0, delta = 1e-6 }
"""


def test_an_earlier_study_is_found_beside_the_file_and_brings_features_and_kernel(tmp_path):
    study = earlier(tmp_path, JointDP(4.0, 1e-6))
    plan = read_plan(written(tmp_path, 'prior = "earlier.json"\n' + NEXT))
    expected = Plan(
        domain=study.plan.domain,
        privacy=JointDP(1.0, 1e-6),
        kernel=study.plan.kernel,
        prior=study.prior(),
        features=study.plan.map,
    )
    assert plan.digest == expected.digest


def test_data_without_privacy_is_taken_only_when_declared_public(tmp_path):
    earlier(tmp_path, NonPrivate())
    with pytest.raises(DiscreetError, match=r"study\.toml: prior: expected a private study, or"):
        read_plan(written(tmp_path, 'prior = "earlier.json"\n' + NEXT))
    declared = 'prior = { study = "earlier.json", public_data = true }\n'
    assert read_plan(written(tmp_path, declared + NEXT)).prior.releasable


def test_features_beside_an_earlier_study_are_refused(tmp_path):
    earlier(tmp_path, JointDP(4.0, 1e-6))
    text = 'prior = "earlier.json"\nfeatures = "grid"\n' + NEXT
    with pytest.raises(DiscreetError, match="features: expected nothing beside prior"):
        read_plan(written(tmp_path, text))


def test_a_damaged_earlier_study_is_named(tmp_path):
    earlier(tmp_path, JointDP(4.0, 1e-6))
    export = tmp_path / "earlier.json"
    export.write_bytes(export.read_bytes()[:-20])
    with pytest.raises(DiscreetError, match="prior: expected the export of an earlier study"):
        read_plan(written(tmp_path, 'prior = "earlier.json"\n' + NEXT))


# -- errors


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("privacy.epsilom", 1, "privacy.epsilom: expected a key out of epsilon, delta, protect"),
        ("horizn", 1, "horizn: expected a key out of domain, privacy, kernel"),
        ("privacy.epsilon", "one", "privacy.epsilon: expected a number, got 'one'"),
        ("privacy.epsilon", True, "privacy.epsilon: expected a number, got True"),
        ("privacy.epsilon", 0, "privacy.epsilon: expected a finite number above 0, got 0.0"),
        ("privacy.epsilon", float("nan"), "privacy.epsilon: expected a finite number above 0"),
        ("privacy.delta", 1.0, "privacy.delta: expected a probability below 1, got 1.0"),
        ("privacy.epsilon", 1e6, "privacy: expected a smaller epsilon"),
        (
            "privacy",
            {"type": "JointDP", "epsilon": 1},
            "privacy.delta: expected a number, and it is missing",
        ),
        (
            "privacy",
            {"epsilon": 1},
            "privacy.type: expected 'NonPrivate' or 'JointDP' or 'LocalDP' or 'ShuffledDP', and it",
        ),
        (
            "privacy.type",
            "DP",
            "privacy.type: expected 'NonPrivate' or 'JointDP' or 'LocalDP' or 'ShuffledDP', got",
        ),
        ("privacy", 3, "privacy: expected a table, got 3"),
        ("privacy.epsilon.x", 3, "privacy.epsilon.x: expected a table 'epsilon' to change"),
        ("horizon", 2.5, "horizon: expected a whole number, got 2.5"),
        ("rewards", [0, 1, 2], "rewards: expected an array of 2, got [0, 1, 2]"),
        ("rewards", [0, "1"], "rewards[1]: expected a number, got '1'"),
        ("rewards", [1, 0], "rewards: expected a pair (low, high)"),
        ("decisions", "some", "decisions: expected 'box' or 'context' or 'candidates', got 'some'"),
        (
            "domain.coordinates.dose",
            3,
            "domain.coordinates.dose: expected a table or an array of 2",
        ),
        (
            "domain.coordinates.dose",
            {"type": "Integer", "low": 1},
            "domain.coordinates.dose.high: expected a whole number, and it is missing",
        ),
        ("domain.context", "age", "domain.context: expected an array (each: text), got 'age'"),
        (
            "domain.context",
            ["sex"],
            "domain.context: expected different names out of 'dose', 'age'",
        ),
        (
            "kernel",
            {"type": "SquaredExponential", "lengthscale": -1},
            "kernel.lengthscale: expected a finite number above 0, got -1.0",
        ),
        (
            "kernel",
            {"type": "SquaredExponential", "lengthscale": [0.1, 0.2, 0.3]},
            "lengthscale: expected one number, or 2 of them",
        ),
        ("schedule", {"first": 0}, "schedule.first: expected a whole number of at least 1, got 0"),
        ("schedule", {"growth": 2.0}, "schedule.first: expected a whole number, and it is missing"),
        ("exploration.type", "Plan", "exploration.type: expected 'Exploration', got 'Plan'"),
        (
            "features",
            "magic",
            "features: expected 'auto' or 'grid' or 'hermite' or 'random' or 'leading', got",
        ),
        ("prior", 3, "prior: expected text or a table, got 3"),
        ("prior", "no.json", "prior: expected the export of an earlier study"),
    ],
    ids=lambda value: value if isinstance(value, str) and "expected" not in value else "",
)
def test_an_error_names_the_file_the_key_and_what_is_expected(place, value, words):
    path = EXAMPLES / "dosing.toml"
    with pytest.raises(DiscreetError) as error:
        read_plan(path, {place: value})
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert words in message
    assert "\n" not in message
    assert error.value.fault == "caller"


def test_a_kernel_beyond_the_features_asked_for_is_refused_by_the_file():
    kernel = {"type": "Polynomial", "degree": 99}
    with pytest.raises(DiscreetError, match=r"dosing\.toml: .* features, over the limit of 2048"):
        read_plan(EXAMPLES / "dosing.toml", {"kernel": kernel, "features": "grid"})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"horizon = [", "expected TOML (Invalid value"),
        (b"horizon = 5\nhorizon = 6", "expected TOML (Cannot overwrite a value"),
        (b"name = '\xe9'", "expected TOML ('utf-8' codec can't decode"),
        (b"a = " + b"[" * 100_000, "expected TOML ("),
        (b"", "domain: expected a table, and it is missing"),
    ],
    ids=["broken", "twice", "not text", "deep", "empty"],
)
def test_a_file_that_is_none_is_refused(tmp_path, content, words):
    path = tmp_path / "study.toml"
    path.write_bytes(content)
    with pytest.raises(DiscreetError) as error:
        read_plan(path)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("path", ["no.toml", "."])
def test_a_file_that_is_not_there_is_refused(tmp_path, path):
    with pytest.raises(DiscreetError, match=r"expected a readable TOML file \("):
        read_plan(tmp_path / path)


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.sampled_from([field.name for field in ARGUMENTS] + ["JointDP", "Additive", "Integer"]),
)  # fmt: skip
TOKENS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["type", "kernel", "parts", "options", "low", "high", "epsilon", "x"]),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=6,
)
PLACES = st.sampled_from(
    [*HINTS, "kernel.type", "kernel.parts", "kernel.options", "privacy.delta", "domain.coordinates"]
)


@settings(deadline=None, max_examples=300)
@given(st.dictionaries(PLACES, TOKENS, max_size=3))
def test_nonsense_is_refused_and_never_crashes(changes):
    with suppress(DiscreetError):
        read_settings(EXAMPLES / "dosing.toml", changes)


def test_a_plan_that_was_read_runs(tmp_path):
    plan = read_plan(EXAMPLES / "dosing.toml", {"horizon": 25})
    bandit = discreet.Bandit(plan)
    for index in range(25):
        bandit.tell(bandit.ask(context={"age": 18 + index}, user=f"u {index}"), 0.5)
    bandit.finish()
    bandit.export(tmp_path / "study.json")
    assert Study.load(tmp_path / "study.json").plan.digest == plan.digest


def test_the_module_shows_a_plan_that_can_be_read(tmp_path):
    from discreet import plan_file

    shown = plan_file.__doc__.partition("\n\n")[2].partition("Every key")[0]
    text = "\n".join(line.removeprefix("    ") for line in shown.splitlines())
    assert tomllib.loads(text)
    assert read_plan(written(tmp_path, text)).privacy == JointDP(8.0, 1e-6)
