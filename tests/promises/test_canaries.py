"""A thousand canaries go in; nothing the library writes outside its journal holds one.

A canary is a random number (a candidate's coordinate, a context, a reward) or a user id. The
search looks for it as text, as the eight bytes of a float, and among the decoded arrays of an
export; in natural units, scaled, centred, squared, and on the integer lattice of an encoding.
Numbers match when they agree to 4 ulp: about 1e-5 false alarms in a whole search.
"""

import base64
import hashlib
import json
import re
import sys
import zlib
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest

from discreet import (
    Bandit,
    Box,
    DiscreetError,
    JointDP,
    Plan,
    Schedule,
    SquaredExponential,
    Study,
)
from discreet.cli.figures import demo_figure
from discreet.cli.program import main
from discreet.simulation.play import Run
from discreet.storage.journal import SQLiteJournal

DOSE, AGE, REWARD = (0.0, 10.0), (18.0, 90.0), (0.0, 1.0)
USERS = 1_000
DIGITS = 10


class Canaries:
    """What users bring, and how to find it again."""

    def __init__(self, seed, users):
        rng = np.random.Generator(np.random.Philox(seed))
        self.points = rng.uniform((DOSE[0], AGE[0]), (DOSE[1], AGE[1]), (users, 3, 2))
        self.rewards = rng.uniform(*REWARD, users)
        self.ids = [f"canary-{rng.bytes(8).hex()}" for _ in range(users)]

    @property
    def numbers(self):
        """Every private number, natural, scaled to [0, 1], mirrored, centred, and squared."""
        kept = []
        for values, (low, high) in (
            (self.points[:, :, 0], DOSE),
            (self.points[:, :, 1], AGE),
            (self.rewards, REWARD),
        ):
            scaled = (values.ravel() - low) / (high - low)
            centred = 2 * scaled - 1
            kept += [values.ravel(), scaled, 1 - scaled, centred, centred**2]
        return np.unique(np.concatenate(kept))

    @property
    def marks(self):
        """The bytes that give a user away: ids, their plain hashes, and floats."""
        words = {word.encode() for word in self.ids}
        for word in self.ids:
            for hashed in (hashlib.sha256, hashlib.sha1, hashlib.md5, hashlib.blake2b):
                words.add(hashed(word.encode()).hexdigest()[:32].encode())
            words.add(base64.b64encode(word.encode())[:-4])
        return words


def leading_digits(values):
    """The first significant digits of each number, as they would be printed."""
    return {f"{abs(value):.17e}".replace(".", "")[:DIGITS] for value in values if value}


def found_in(data, canaries, *, lattices=()):
    """Every trace of a canary in some bytes: which, and how it was found."""
    numbers, traces = canaries.numbers, set()
    traces |= {("id", word) for word in canaries.marks if word in data}
    runs = re.findall(rb"\d{%d,}" % DIGITS, data.replace(b".", b""))
    windows = {
        run[at : at + DIGITS].decode() for run in runs for at in range(len(run) - DIGITS + 1)
    }
    traces |= {("text", digits) for digits in leading_digits(numbers) & windows}
    for order in ("<", ">"):
        secret = np.frombuffer(numbers.astype(f"{order}f8").tobytes(), "<u8")
        for offset in range(8):
            words = np.frombuffer(data[offset : offset + (len(data) - offset) // 8 * 8], "<u8")
            traces |= {("bytes", int(word)) for word in np.intersect1d(words, secret)}
    for values in decoded(data):
        scales = (0, *lattices) if values.dtype.kind == "i" else (0,)
        for bits in scales:
            traces |= {("array", near) for near in close(np.ldexp(values, -bits), numbers)}
    return traces


def decoded(data):
    """Every base64 text in some bytes, as floats and as integers."""
    for text in re.findall(rb'"data":"([A-Za-z0-9+/]*={0,2})"', data):
        raw = base64.b64decode(text)
        yield np.frombuffer(raw, "<f8").copy()
        yield np.frombuffer(raw, "<i8").copy()


def close(values, numbers):
    """The numbers that some value agrees with to 4 ulp; zeros and ones are nobody's."""
    values = np.asarray(values, dtype=np.float64)
    values = values[np.isfinite(values) & (values != 0) & (np.abs(values) != 1)]
    at = np.clip(np.searchsorted(numbers, values), 1, len(numbers) - 1)
    for neighbour in (numbers[at - 1], numbers[at]):
        with np.errstate(over="ignore"):
            same = np.abs(values - neighbour) <= 4 * np.spacing(np.abs(neighbour))
        yield from neighbour[same].tolist()


def make_plan(kind):
    return Plan(
        domain=Box({"dose": DOSE, "age": AGE}, context=["age"] * (kind == "context")),
        privacy=JointDP(epsilon=1.0, delta=1e-6),
        kernel=SquaredExponential(0.6),
        kernel_error=0.05,
        rewards=REWARD,
        decisions="context" if kind == "context" else "candidates",
        schedule=Schedule(first=40, growth=1.4),
        noise=None if kind in ("candidates", "context") else kind,
        horizon=None if kind in ("candidates", "context") else USERS + 100,
        name=f"canaries of {kind}",
    )


def brought(kind, points):
    return (
        {"context": {"age": float(points[0, 1])}} if kind == "context" else {"candidates": points}
    )


def messages(call):
    """What an error says, and everything beneath it."""
    try:
        call()
    except DiscreetError as error:
        said, link = [], error
        while link is not None:
            said.append(f"{link} {link!r} {link.args}")
            link = link.__cause__ or link.__context__
        return "\n".join(said)
    raise AssertionError("it should have been refused")


def play(kind, canaries, folder, journal):
    """A study of canaries that writes all it can; returns what its errors said."""
    plan, said = make_plan(kind), []
    bandit = Bandit(plan, journal)
    for count, (points, reward, user) in enumerate(
        zip(canaries.points, canaries.rewards, canaries.ids, strict=True)
    ):
        own = brought(kind, points)
        trial = bandit.ask(**own, user=user)
        number = trial.number  # asks that fail have one, too
        if count % 100 == 17:
            bandit.export(folder / f"at-{count}.json")
            said.append(messages(lambda: bandit.ask(**own, user=user)))  # noqa: B023
            said.append(messages(lambda: bandit.ask(**own)))  # noqa: B023
            wrong = [[1e6 + points[0, 0], points[0, 1]]]
            said.append(messages(lambda: bandit.ask(wrong, user=f"{user}x")))  # noqa: B023
            said.append(messages(lambda: bandit.tell(trial, str(reward))))  # noqa: B023
            said.append(messages(lambda: bandit.tell(number + 2, reward)))  # noqa: B023
        if count % 10:  # some answer late, or never
            bandit.tell(trial, float(reward))
        elif count >= 20:
            with suppress(DiscreetError):
                bandit.tell(number - 20, float(canaries.rewards[count - 20]))
        if count % 400 == 399:
            bandit.close()
            bandit = Bandit(plan, journal)
    said.append(repr(bandit.study.releases[-1]) + repr(bandit.best(context=best_for(kind))))
    bandit.finish()
    said.append(messages(lambda: bandit.tell(0, float(canaries.rewards[0]))))
    bandit.export(folder / "study.json")
    bandit.close()
    return "\n".join(said), bandit.study


def best_for(kind):
    return {"age": 40.0} if kind == "context" else None


def draw(study, folder):
    """Figures of a study; the true surface and the regret are not the users'."""
    problem = SimpleNamespace(domain=study.plan.domain, mean=lambda x: 0.0 * x[:, 0])
    for ending in ("png", "svg", "pdf"):
        run = Run(problem, np.zeros(USERS), study, 0.0)
        demo_figure({"private": run}, folder / f"study.{ending}")


def inflated(data):
    """The picture's own bytes too, where they are compressed."""
    parts = [data]
    for start in (match.start() for match in re.finditer(rb"x[\x01\x5e\x9c\xda]", data)):
        with suppress(zlib.error):
            parts.append(zlib.decompressobj().decompress(data[start:]))
    return b"\n".join(parts)


@pytest.mark.parametrize(
    ("kind", "users"),
    [("candidates", USERS), ("context", 200), ("tree", 200), ("blt", 200)],
)
def test_nothing_outside_the_journal_holds_a_canary(kind, users, tmp_path, capfd):
    canaries = Canaries(1, users)
    public, journal = tmp_path / "public", tmp_path / "study.db"
    public.mkdir()
    said, study = play(kind, canaries, public, journal)
    draw(study, public)
    Study.load(public / "study.json").save(public / "again.json")
    out, err = capfd.readouterr()
    (public / "said.txt").write_text(said + out + err)
    lattices = {epoch.encoding.bits for epoch in study.epochs}
    lattices |= {2 * bits for bits in lattices}
    files = sorted(public.iterdir())
    assert len(files) >= 8
    assert not [file for file in files if file.suffix == ".part"]
    for file in files:
        data = file.read_bytes()
        data = inflated(data) if file.suffix in (".png", ".pdf") else data
        assert len(data) > 100
        assert not found_in(data, canaries, lattices=lattices), file.name
    assert {file.name for file in tmp_path.iterdir()} <= {"public", "study.db", "study.db-wal"}
    # The same search finds what the journal holds: it is not blind.
    with SQLiteJournal(journal) as kept:
        records = b"\n".join(kept.records())
    held = dict.fromkeys(("id", "text", "bytes", "array"), 0)
    for how, _ in found_in(records, canaries):
        held[how] += 1
    assert held["text"] > 0.8 * users  # rewards
    assert held["array"] > 0.8 * users  # points
    assert held["id"] == 0  # ids are not even there
    pseudonyms = set(re.findall(rb'"user":"([0-9a-f]{32})"', records))
    assert len(pseudonyms) == users + len(range(17, users, 100))  # with those whose ask failed
    for file in files:
        data = file.read_bytes()
        assert not any(pseudonym in data for pseudonym in pseudonyms)
    (key,) = re.findall(rb'"key":"([0-9a-f]{64})"', records)
    assert not any(key in file.read_bytes() for file in files)


OWN = """
import numpy as np
from discreet import Box
from tests.promises.test_canaries import AGE, DOSE, REWARD, Canaries

class Aviary:
    domain = Box({{"dose": DOSE, "age": AGE}})
    rewards = REWARD

    def __init__(self):
        self.canaries, self.asked, self.answered = Canaries(2, {users}), 0, 0

    def decision_set(self, rng):
        self.asked += 1
        return self.canaries.points[(self.asked - 2) % {users}]

    def mean(self, x):
        return 0.0 * x[:, 0]

    def reward(self, x, rng):
        self.answered += 1
        return float(self.canaries.rewards[self.answered - 1])

aviary = Aviary()
"""


def test_a_simulation_prints_no_canary(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    (tmp_path / "beside.py").write_text(OWN.format(users=300))
    arguments = ["simulate", "--problem", "beside:aviary", "--model", "joint", "--epsilon", "1"]
    arguments += ["--delta", "1e-6", "--rounds", "300", "--runs", "1"]
    printed = []
    for more in (["--json"], []):
        with pytest.raises(SystemExit) as stopped:
            main(arguments + more)
        assert not stopped.value.code
        printed += capfd.readouterr()
        sys.modules.pop("beside")
    assert json.loads(printed[0])["rounds"] == 300
    assert not found_in("".join(printed).encode(), Canaries(2, 300))
    leftovers = {path.name for path in tmp_path.iterdir()} - {"beside.py", "__pycache__"}
    assert not leftovers


# -- the search itself


@pytest.mark.parametrize(
    ("plant", "how"),
    [
        (lambda c: repr(float(c.rewards[3])).encode(), "text"),
        (lambda c: f"x{c.points[5, 1, 1]:.10f}".encode(), "text"),
        (lambda c: f"{2 * c.rewards[3] - 1:.14e}".encode(), "text"),
        (lambda c: f"{(2 * c.rewards[3] - 1) ** 2:.14e}".encode(), "text"),
        (lambda c: b"odd" + c.points[7, 0, 0].tobytes(), "bytes"),
        (lambda c: b"x" + np.array([c.rewards[9]]).astype(">f8").tobytes(), "bytes"),
        (lambda c: array(np.array([0.5, (c.points[2, 1, 1] - 18) / 72])), "array"),
        (lambda c: array(np.array([1, int(c.rewards[4] * 2**52)])), "array"),
        (lambda c: c.ids[8].encode(), "id"),
        (lambda c: hashlib.sha256(c.ids[8].encode()).hexdigest().encode(), "id"),
        (lambda c: base64.b64encode(c.ids[8].encode()), "id"),
    ],
)
def test_the_search_finds_a_canary_where_there_is_one(plant, how):
    canaries = Canaries(3, 50)
    noise = np.random.Generator(np.random.Philox(9)).bytes(10_000)
    assert not found_in(noise, canaries, lattices=(52,))
    hits = found_in(noise + plant(canaries) + noise, canaries, lattices=(52,))
    assert how in {kind for kind, _ in hits}


def array(values):
    data = base64.b64encode(values.tobytes()).decode()
    return json.dumps({"data": data}, separators=(",", ":")).encode()
