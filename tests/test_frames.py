"""Tables as people have them lead to the same study, and what is public goes back as tables."""

import csv
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import (
    Bandit,
    Box,
    Categorical,
    Integer,
    JointDP,
    Linear,
    NonPrivate,
    Plan,
    Schedule,
    Simulation,
    SquaredExponential,
)
from discreet.errors import InvalidArgument
from discreet.frames.reading import column, columns, numbers
from discreet.frames.table import Table

PEOPLE = 24
BOX = Box(
    {
        "dose": (0, 10),
        "age": (18, 90),
        "pills": Integer(1, 4),
        "arm": Categorical(("a", "b")),
        "smokes": (0, 1),
    },
    context=["age", "pills", "arm", "smokes"],
)
RNG = np.random.Generator(np.random.Philox(5))
DATA = {
    "age": RNG.uniform(18, 90, PEOPLE),
    "pills": RNG.integers(1, 5, PEOPLE),
    "arm": [("a", "b")[i] for i in RNG.integers(0, 2, PEOPLE)],
    "smokes": RNG.integers(0, 2, PEOPLE).astype(bool),
}
USERS = [f"u{i}" for i in range(PEOPLE)]
REWARDS = RNG.random(PEOPLE)
STRUCTURED = np.array(
    list(zip(*(np.asarray(each).tolist() for each in DATA.values()), strict=True)),
    dtype=[("age", "f8"), ("pills", "i8"), ("arm", "U1"), ("smokes", "?")],
)
ROWS = [dict(zip(DATA, row, strict=True)) for row in STRUCTURED.tolist()]
FRAME = pd.DataFrame(DATA)
TABLES = {
    "rows": ROWS,
    "columns": DATA,
    "structured": STRUCTURED,
    "objects": np.array([list(row.values()) for row in ROWS], dtype=object),
    "pandas": FRAME,
    "pandas category": FRAME.astype({"arm": "category", "pills": "float64", "smokes": "int8"}),
    "pandas filtered": pd.concat([FRAME.head(2), FRAME])[2:].set_index(np.arange(PEOPLE) * 7),
    "pandas index": FRAME.set_index("age"),
    "pandas nullable": FRAME.convert_dtypes(),
    "polars": pl.DataFrame(DATA),
    "polars category": pl.DataFrame(DATA).with_columns(pl.col("arm").cast(pl.Categorical)),
    "polars enum": pl.DataFrame(DATA).with_columns(pl.col("arm").cast(pl.Enum(["a", "b"]))),
    "arrow": pa.table(DATA),
    "arrow chunks": pa.concat_tables([pa.table(FRAME[:5]), pa.table(FRAME[5:])]),
    "arrow dictionary": pa.table({**DATA, "arm": pa.array(DATA["arm"]).dictionary_encode()}).select(
        ["smokes", "arm", "pills", "age"]
    ),
    "mapping of series": dict(pl.DataFrame(DATA).to_dict()),
}


def make_plan(privacy=None):
    return Plan(
        domain=BOX,
        privacy=privacy or JointDP(epsilon=4.0, delta=1e-3),
        kernel=Linear(),
        schedule=Schedule(first=10, growth=2.0),
    )


def play(contexts, users=USERS, rewards=REWARDS):
    bandit = Bandit(make_plan(), simulation=Simulation(2))
    trials = bandit.ask_many(contexts=contexts, users=users)
    assert not trials.refusals
    bandit.tell_many(trials, rewards)
    bandit.finish()
    return trials.actions, [release.digest for release in bandit.study.releases]


@pytest.fixture(scope="module")
def expected():
    return play(ROWS)


@pytest.mark.parametrize("name", TABLES)
def test_the_same_study_from_every_kind_of_table(name, expected):
    assert play(TABLES[name]) == expected


@pytest.mark.parametrize("wrap", [np.array, pd.Series, pl.Series, pa.array, tuple])
def test_users_and_rewards_from_every_kind_of_column(wrap, expected):
    assert play(ROWS, wrap(USERS), wrap(REWARDS.tolist())) == expected


@pytest.mark.parametrize(
    "users", [[17, "18", 19], pd.Series([17, 18, 19]), pl.Series(["17", "18", "19"])]
)
def test_whole_numbers_and_their_digits_are_one_person(users):
    bandit = Bandit(make_plan())
    assert len(bandit.ask_many(contexts=FRAME.head(3), users=[17, 18, 19])) == 3
    trials = bandit.ask_many(contexts=FRAME.head(3), users=users)
    assert (trials.rows, list(trials.refusals)) == ((), [0, 1, 2])


# -- what is wrong with a table as a whole: nobody has asked


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (FRAME.drop(columns="age"), "a column for 'age': rename yours"),
        (FRAME.assign(income=1.0), "no columns but 'age', 'pills', 'arm', 'smokes': select them"),
        (pl.DataFrame(DATA).rename({"arm": "secret"}), "a column for 'arm'"),
        (FRAME.assign(age="61"), r"age to be a finite number within \[18.0, 90.0\]: cast"),
        (FRAME.assign(age=pd.Timestamp("2020-01-01")), "age to be a finite number"),
        (FRAME.assign(age=True), "age to be a finite number"),
        (FRAME.assign(arm=0.5), "arm to be one of 'a', 'b': cast the column"),
        (pl.DataFrame(DATA).with_columns(pl.col("age").cast(pl.String)), "age to be a finite"),
        ({**DATA, "age": [20.0]}, "columns of one length"),
        (np.zeros((3, 2)), "an array with 4 columns: age, pills, arm, smokes"),
        ({"age": 61.0}, "a data frame, a mapping of names to columns"),
        (FRAME["age"], "a data frame"),
        (61.0, "a data frame"),
    ],
)
def test_a_table_that_is_wrong_as_a_whole_is_refused_and_nobody_has_asked(table, words):
    bandit = Bandit(make_plan())
    with pytest.raises(InvalidArgument, match=words) as raised:
        bandit.ask_many(contexts=table, users=USERS)
    assert "secret" not in str(raised.value)
    assert bandit.asked == 0


# -- what is wrong in a row is that person's


def missing(kind):
    ages = [20.0, None, 40.0]
    rest = {name: list(each[:3]) for name, each in DATA.items() if name != "age"}
    return {
        "pandas": lambda: pd.DataFrame({**rest, "age": ages}),
        "pandas nullable": lambda: pd.DataFrame({**rest, "age": ages}).convert_dtypes(),
        "polars": lambda: pl.DataFrame({**rest, "age": ages}),
        "columns": lambda: {**rest, "age": ages},
        "not a number": lambda: {**rest, "age": np.array([20.0, np.nan, 40.0])},
    }[kind]()


@pytest.mark.parametrize("kind", ["pandas", "pandas nullable", "polars", "columns", "not a number"])
def test_a_gap_in_a_table_is_that_rows_refusal(kind):
    bandit = Bandit(make_plan())
    trials = bandit.ask_many(contexts=missing(kind), users=[1, 2, 3])
    assert (trials.rows, bandit.asked) == ((0, 2), 3)
    single = Bandit(make_plan())
    with pytest.raises(InvalidArgument) as raised:
        single.ask(context={**ROWS[0], "age": None}, user=1)
    assert str(trials.refusals[1]) == str(raised.value)


@pytest.mark.parametrize(
    ("rewards", "row"),
    [
        (pl.Series([0.5, None, 0.1]), 1),
        (pd.Series([0.5, 0.1, None]), 2),
        (pd.Series([1, None, 0], dtype="Int64"), 1),
        (pa.array([None, 0.5, 0.1]), 0),
        (["0.5", 0.1, 0.2], 0),
        ([0.5, 0.1, 10**400], 2),
    ],
)
def test_a_reward_that_is_missing_is_said_by_its_row(rewards, row):
    with pytest.raises(InvalidArgument, match=rf"rewards: .*\(row {row}\); abandon"):
        numbers("rewards", rewards, 3)


@pytest.mark.parametrize("frame", [FRAME[["age"]], pl.DataFrame(DATA), pa.table(DATA)])
def test_a_table_is_no_column(frame):
    with pytest.raises(InvalidArgument, match=r"one column of the table: frame\['name'\]"):
        column("users", frame, PEOPLE)


# -- candidates


CANDIDATES = Box({"dose": (0, 10), "arm": Categorical(("a", "b"))})
SETS = {17: [(1.0, "a"), (2.5, "b")], "x": [(9.0, "a")], 3: [(4.0, "b"), (5.0, "a"), (6.0, "b")]}
LONG = {
    "user": [str(user) for user, rows in SETS.items() for _ in rows],
    "dose": [row[0] for rows in SETS.values() for row in rows],
    "arm": [row[1] for rows in SETS.values() for row in rows],
}


def candidates_plan():
    return Plan(
        domain=CANDIDATES,
        privacy=JointDP(epsilon=4.0, delta=1e-3),
        kernel=SquaredExponential(0.5),
        kernel_error=0.2,
        decisions="candidates",
    )


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_a_table_of_everyones_candidates_is_a_set_for_each(make):
    plan = candidates_plan()
    sets = Bandit(plan).ask_many(candidates=list(SETS.values()), users=list(SETS))
    table = make({name: LONG[name] for name in ("dose", "arm")})
    found = Bandit(plan).ask_many(candidates=table, users=make(LONG)["user"])
    assert list(found) == list(sets)
    assert found.rows == (0, 1, 2)


def test_a_bad_candidate_is_its_owners_alone():
    bandit = Bandit(candidates_plan())
    table = {"dose": [1.0, 2.0, 99.0, 4.0], "arm": ["a", "b", "a", "b"]}
    trials = bandit.ask_many(candidates=table, users=[1, 2, 2, 3])
    assert (trials.rows, bandit.asked) == ((0, 2), 3)
    assert "(row 1)" in str(trials.refusals[1])


def test_a_table_of_candidates_needs_its_owners():
    bandit = Bandit(candidates_plan())
    table = {"dose": [1.0], "arm": ["a"]}
    with pytest.raises(InvalidArgument, match="whose each row of candidates is"):
        bandit.ask_many(candidates=table)
    with pytest.raises(InvalidArgument, match=r"in every row \(row 0\)"):
        bandit.ask_many(candidates=table, users=[1.5])
    assert bandit.asked == 0


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_one_persons_candidates_may_be_a_table(make):
    rows = [{"dose": 1.0, "arm": "a"}, {"dose": 2.5, "arm": "b"}]
    table = make({"dose": [1.0, 2.5], "arm": ["a", "b"]})
    plan = candidates_plan()
    assert Bandit(plan).ask(table, user=1) == Bandit(plan).ask(rows, user=1)
    assert Bandit(plan).best(table).chosen == Bandit(plan).best(rows).chosen


# -- tables to take away


@pytest.fixture(scope="module")
def study():
    bandit = Bandit(make_plan(NonPrivate()))
    trials = bandit.ask_many(contexts=FRAME)
    bandit.tell_many(trials, REWARDS)
    bandit.finish()
    return bandit.study


def test_trials_are_columns_for_every_kind_of_frame():
    trials = Bandit(make_plan()).ask_many(contexts=FRAME, users=USERS)
    table = trials.to_frame()
    for frame in (pd.DataFrame(dict(table)), pl.DataFrame(table), pa.table(table)):
        listed = {name: list(frame[name]) for name in table}
        assert [str(each) for each in listed["arm"]] == DATA["arm"]
    assert pl.DataFrame(table)["dose"].to_list() == trials.actions["dose"]
    assert table["trial number"] == tuple(range(PEOPLE))


def test_the_epochs_and_the_posterior_are_tables(study):
    epochs = study.to_frame()
    assert epochs["release"] == tuple(release.digest for release in study.releases)
    assert sum(epochs["asks"]) == PEOPLE
    action = study.best(context=ROWS[0])
    predicted = study.predict([action.action])
    assert predicted["mean reward"][0] == pytest.approx(action.mean)
    found = (predicted["interval low"][0], predicted["interval high"][0])
    assert found == pytest.approx(action.interval)
    everywhere = pl.DataFrame(study.predict())
    assert everywhere.shape == (256, 8)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_is_read_back_from_its_file(study, tmp_path, suffix):
    path = tmp_path / f"epochs.{suffix}"
    study.to_frame().save(path)
    if suffix == "parquet":
        assert pq.read_table(path).to_pylist() == study.to_frame().rows
    else:
        with path.open(newline="") as file:
            read = list(csv.DictReader(file))
        assert [float(row["noise_std"]) for row in read] == list(study.to_frame()["noise_std"])


def test_other_files_are_refused(study, tmp_path):
    with pytest.raises(InvalidArgument, match=r"ends in .csv or .parquet"):
        study.to_frame().save(tmp_path / "epochs.xlsx")
    with pytest.raises(InvalidArgument, match="one length"):
        Table({"a": [1], "b": []})


def test_without_pyarrow_a_frame_hears_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InvalidArgument, match=r"pip install 'discreet\[frames\]'"):
        columns("contexts", pl.DataFrame(DATA), tuple(DATA))
    assert list(columns("contexts", DATA, tuple(DATA))) == list(DATA)
