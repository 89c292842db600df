"""A plan that is given again is compared by what its author wrote; the stored one is followed."""

from dataclasses import replace

import numpy as np
import pytest
from tests.support.journals import ListJournal

import discreet
from discreet import Bandit, Box, Client, Custodian, JointDP, LocalDP, Plan, Publisher, Server
from discreet.agreement import resolve, round_looks
from discreet.agreement.schedule import Schedule
from discreet.agreement.wording import Wording
from discreet.errors import JournalDamaged, JournalForeign, Malformed
from discreet.features import choose as choosing
from discreet.storage import canonical

BOX = Box({"dose": (0, 10)})


def script(**more):
    """What an author writes: little."""
    more = {"kernel": discreet.SquaredExponential()} | more
    return Plan(domain=BOX, privacy=JointDP(2.0, 1e-5), horizon=300, **more)


def local_script():
    return Plan(domain=BOX, privacy=LocalDP(8.0, 1e-3))


@pytest.fixture
def upgraded(monkeypatch):
    """A later version: other defaults, and features that differ in their last bits."""

    def upgrade():
        plain, box = resolve.schedule_of, choosing.grid_rule

        def longer(plan, features, mu):
            found = plain(plan, features, mu)
            return replace(found, growth=found.growth + 0.05)

        def other_bits(*arguments):
            rule = box(*arguments)
            weights = rule.weights * (1 + 1e-15 * np.arange(len(rule.weights)))
            return rule._replace(weights=weights / weights.sum())

        monkeypatch.setattr(resolve, "schedule_of", longer)
        monkeypatch.setattr(round_looks, "FOUR_LOOKS", (0.9, 0.43))
        monkeypatch.setattr(choosing, "grid_rule", other_bits)

    return upgrade


def test_a_script_goes_on_with_its_study_after_an_upgrade(upgraded):
    journal, plan = ListJournal(), script()
    with Bandit(plan, journal) as bandit:
        for number in range(80):
            bandit.tell(bandit.ask(user=f"person {number}"), 0.5)
        asked, releases = bandit.asked, bandit.study.releases
    upgraded()
    again = script()
    assert again.digest != plan.digest
    with Bandit(again, journal) as bandit:
        assert bandit.plan.digest == plan.digest
        assert bandit.plan.schedule == plan.schedule
        assert bandit.asked == asked
        assert [r.digest for r in bandit.study.releases] == [r.digest for r in releases]
        for number in range(80, 120):
            bandit.tell(bandit.ask(user=f"person {number}"), 0.5)


@pytest.mark.parametrize(
    ("role", "make"),
    [(Custodian, script), (Publisher, script), (Server, local_script), (Client, local_script)],
    ids=lambda each: each.__name__,
)
def test_every_role_resumes_under_the_stored_plan(role, make, upgraded):
    journal, plan = ListJournal(), make()
    role(plan, journal).close()
    upgraded()
    assert make().digest != plan.digest
    assert role(make(), journal).plan.digest == plan.digest


@pytest.mark.parametrize(
    "changed",
    [
        {"horizon": 301},
        {"privacy": JointDP(2.1, 1e-5)},
        {"noise_std": 0.1},
        {"schedule": Schedule(first=7)},
        {"kernel": discreet.Matern(2.5)},
        {"features": "hermite"},
        {"looks": (1.0,)},
        {"name": "another"},
    ],
    ids=lambda changed: next(iter(changed)),
)
@pytest.mark.parametrize("upgrade", [False, True])
def test_another_argument_is_another_plan_before_and_after_an_upgrade(changed, upgrade, upgraded):
    journal = ListJournal()
    Bandit(script(), journal).close()
    if upgrade:
        upgraded()
    kernel = discreet.SquaredExponential()
    parts = {"domain": BOX, "privacy": JointDP(2.0, 1e-5), "kernel": kernel, "horizon": 300}
    parts |= changed
    with pytest.raises(JournalForeign, match=f"another plan: {next(iter(changed))}$"):
        Bandit(Plan(**parts), journal)


def test_an_argument_that_is_left_out_now_is_noticed():
    journal = ListJournal()
    Bandit(script(noise_std=0.2), journal).close()
    with pytest.raises(JournalForeign, match="another plan: noise_std"):
        Bandit(script(), journal)


def test_a_default_that_is_written_out_is_no_other_plan(upgraded):
    journal, plan = ListJournal(), script()
    Bandit(plan, journal).close()
    Bandit(script(schedule=plan.schedule, looks=plan.looks), journal).close()
    Bandit(script(rewards=(0, 1), kernel_error=1e-3), journal).close()


def test_a_plan_from_bytes_has_no_author_and_is_compared_as_a_whole(upgraded):
    journal, plan = ListJournal(), script()
    Bandit(plan, journal).close()
    read = canonical.decode(Plan, canonical.encode(plan))
    assert read.wording is None
    assert Bandit(read, journal).plan.digest == plan.digest
    upgraded()
    other = canonical.decode(Plan, canonical.encode(script()))
    with pytest.raises(JournalForeign, match="features, looks, schedule"):
        Bandit(other, journal)


def test_a_study_begun_by_a_plan_from_bytes_goes_on_by_it():
    journal = ListJournal()
    read = canonical.decode(Plan, canonical.encode(script()))
    Bandit(read, journal).close()
    assert Bandit(read, journal).plan.digest == read.digest
    assert Bandit(script(), journal).plan.digest == read.digest


def test_a_prior_is_compared_up_to_its_last_bits():
    bandit = Bandit(script(), simulation=discreet.Simulation(1))
    for number in range(40):
        bandit.tell(bandit.ask(user=f"person {number}"), 0.5)
    bandit.finish()
    learnt, features = bandit.study.prior(public_data=True), bandit.plan.map
    journal = ListJournal()
    Bandit(script(prior=learnt, features=features), journal).close()
    close = replace(learnt, precision=learnt.precision * (1 + 1e-13))
    Bandit(script(prior=close, features=features), journal).close()
    other = replace(learnt, precision=learnt.precision * 1.01)
    with pytest.raises(JournalForeign, match="another plan: prior"):
        Bandit(script(prior=other, features=features), journal)


def test_words_say_what_was_written_and_no_more():
    words = script(kernel=discreet.Matern(1.5), rewards=(0, 1)).wording.arguments
    assert set(words) == {"domain", "privacy", "horizon", "kernel"}
    assert words["horizon"] == "300"
    assert '"type":"Matern"' in words["kernel"]


def test_words_in_the_middle_of_a_journal_are_damage():
    journal = ListJournal()
    Bandit(script(), journal).close()
    journal.append(canonical.encode(Wording({"horizon": "300"})))
    with pytest.raises(JournalDamaged):
        Bandit(script(), journal)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (b'"encoding":"reward"', b'"encoding":"auto"'),
        (b'"decisions":"box"', b'"decisions":null'),
        (b'"exploration":', b'"exploration":null,"x":'),
    ],
)
def test_a_stored_plan_that_is_not_resolved_is_refused(field, value):
    data = canonical.encode(script())
    with pytest.raises(Malformed):
        canonical.decode(Plan, data.replace(field, value))


def test_a_stored_plan_keeps_what_the_proofs_need():
    data = canonical.encode(script(looks=(0.8, 0.6)))
    with pytest.raises(Malformed, match="looks"):
        canonical.decode(Plan, data.replace(b'"looks":[0.8,0.6]', b'"looks":[0.8,0.7]'))
    with pytest.raises(Malformed, match="encoding"):
        canonical.decode(Plan, data.replace(b'"encoding":"reward"', b'"encoding":"announced"'))


@pytest.mark.parametrize(
    ("role", "make", "weaker"),
    [
        (Bandit, script, discreet.NonPrivate()),
        (Bandit, script, JointDP(15.0, 1e-4)),
        (Custodian, script, discreet.NonPrivate()),
        (Publisher, script, discreet.NonPrivate()),
        (Client, local_script, LocalDP(15.0, 1e-4)),
        (Server, local_script, LocalDP(15.0, 1e-4)),
    ],
    ids=lambda each: getattr(each, "__name__", repr(each)),
)
def test_words_do_not_speak_for_a_stored_plan_that_says_something_else(role, make, weaker):
    """A journal whose plan is weaker than the words beside it is not opened by those words."""
    journal = ListJournal()
    plan = replace(make(), privacy=weaker, looks=None, schedule=None, encoding="auto")
    role(plan, journal).close()
    journal.kept[1] = canonical.encode(make().wording)
    with pytest.raises(JournalForeign, match=r"another plan: .*privacy"):
        role(make(), journal)


def test_a_journal_without_words_is_compared_by_every_value_that_nobody_fills_in():
    journal = ListJournal()
    parts = {"rewards": (0.0, 100.0), "name": "trial A", "expire_after": 7}
    Bandit(script(**parts), journal).close()
    del journal.kept[1]
    with pytest.raises(JournalForeign, match="another plan: expire_after, name, rewards"):
        Bandit(script(), journal)
    Bandit(script(**parts), journal).close()
