"""A client trusts no one: it checks what it is given, and answers once."""

from dataclasses import replace

import numpy as np
import pytest
from tests.support.journals import ListJournal
from tests.support.local_plans import SETS, local_plan, local_plans

from discreet import (
    Client,
    JointDP,
    Linear,
    LocalDP,
    NonPrivate,
    Plan,
    Server,
)
from discreet.agreement.release import Release
from discreet.errors import (
    DiscreetError,
    InvalidArgument,
    JournalDamaged,
    JournalFailed,
    JournalForeign,
    Malformed,
    Refused,
    TrialClosed,
    UnknownTrial,
)
from discreet.privacy.budget import Simulation
from discreet.privacy.clipping import Noise, Residual
from discreet.protocol.messages import Decline, Offer, Receipt, Report, Request, read, write
from discreet.protocol.verifier import Verifier, check_epoch
from discreet.storage.journal import SQLiteJournal
from discreet.trusted.client import fresh_id

PLANS = local_plans()
PLAN = PLANS["reward"]


def play(server, count, reward=0.7, plan=PLAN, **decisions):
    """Fresh people take part."""
    for _ in range(count):
        client = Client(plan)
        client.choose(server.offer(client.request()), **decisions)
        client.settle(server.receive(client.report(reward)))


def chosen(plan=PLAN, journal=None, **decisions):
    server, client = Server(plan), Client(plan, journal)
    client.choose(server.offer(client.request()), **decisions)
    return server, client


def is_refused(client, offer, **decisions):
    try:
        client.choose(offer, **decisions)
    except Refused:
        return True
    return False


# -- a round


@pytest.mark.parametrize("name", PLANS)
def test_a_report_is_the_encoded_round_plus_noise_of_the_stated_size(name):
    """|noise| / std is below 8 in every integer (false alarms below 1e-12 in all)."""
    plan = PLANS[name]
    server, client = chosen(plan, **SETS[name])
    report = client.report(0.9)
    epoch = server.study.open_epoch
    point = client.chosen.point
    encoded = epoch.encoding.encode(plan.map, point[None, :], np.array([0.8]))[0]
    stds = epoch.encoding.stds(plan.map)
    assert (np.abs(report.integers - encoded) < 8 * stds).all()
    assert (report.integers != encoded).any()
    assert report.epoch == epoch.digest
    assert server.receive(report) == Receipt(report.id, "counted")


@pytest.mark.parametrize("name", PLANS)
def test_a_client_chooses_what_a_bandit_would(name):
    plan = PLANS[name]
    server, client = chosen(plan, **SETS[name])
    policy, domain = server.study.open_epoch.policy, plan.domain
    choice = client.choice
    if name == "reward":
        assert choice.action == domain.decode(policy.from_menu(0))
    elif name == "context":
        context = domain.encode_context({"age": 61})[None]
        found, _ = policy.search(plan.map, np.array([0]), domain, context)
        assert choice.action == domain.decode(found[0])
    else:
        options = domain.encode(SETS[name]["candidates"])
        assert choice.chosen == policy.choose(plan.map, np.array([0]), [options])[0]


def test_two_clients_never_send_the_same_and_each_has_an_id_of_its_own():
    reports = [chosen()[1].report(0.5) for _ in range(20)]
    assert len({write(report) for report in reports}) == 20
    assert len({report.id for report in reports}) == 20
    assert len({fresh_id() for _ in range(100)}) == 100


def test_a_simulation_repeats_its_noise():
    sent = []
    for seed in (1, 1, 2):
        server, client = Server(PLAN, simulated=True), Client(PLAN, simulation=Simulation(seed))
        client.choose(server.offer(client.request("ab" * 16)))
        sent.append(write(client.report(0.5)))
    assert sent[0] == sent[1] != sent[2]


@pytest.mark.parametrize("reward", [1.0, 1.5, 1e300])
def test_a_reward_beyond_the_range_counts_as_its_end(reward):
    server, client = Server(PLAN), Client(PLAN, simulation=Simulation(5))
    client.choose(server.offer(client.request("ab" * 16)))
    at_end = Client(PLAN, simulation=Simulation(5))
    at_end.choose(Server(PLAN).offer(at_end.request("ab" * 16)))
    assert write(client.report(reward)) == write(at_end.report(1.0))


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), None, "0.123"])
def test_what_is_not_a_reward_is_refused_without_an_echo(reward):
    _, client = chosen()
    with pytest.raises(InvalidArgument, match="reward: expected a finite number") as refused:
        client.report(reward)
    assert "123" not in str(refused.value)
    assert client.state == "chosen"


# -- once


def test_a_report_asked_for_again_is_the_same_bytes_whatever_the_reward_is_now():
    server, client = chosen()
    first = write(client.report(0.1))
    assert {write(client.report(reward)) for reward in (0.1, 0.9, 0.5)} == {first}
    assert write(client.outbox) == first
    client.settle(server.receive(client.report(0.1)))
    assert client.outbox is None


def test_an_offer_that_comes_again_gets_the_choice_that_was_made():
    plan = PLANS["fourier"]
    server, client = Server(plan), Client(plan)
    offer = server.offer(client.request())
    choice = client.choose(offer, [[1.0], [4.0]])
    assert client.choose(offer, [[9.0]]) == choice
    assert client.rounds == 1


def test_a_crash_between_journal_and_send_resends_the_same_bytes(tmp_path):
    path = tmp_path / "mine.db"
    server, client = chosen(journal=path)
    sent = write(client.report(0.7))  # kept, and the device stops before it is sent
    client.close()
    again = Client(PLAN, path)
    assert write(again.outbox) == sent
    assert write(again.report(0.2)) == sent
    again.settle(server.receive(again.outbox))
    again.close()
    last = Client(PLAN, path)
    assert (last.outbox, last.state, last.rounds) == (None, "reported", 1)
    with pytest.raises(Refused, match="took part in 1 of 1 rounds"):
        last.request()
    last.close()


@pytest.mark.parametrize("step", range(4))
def test_a_client_resumes_from_wherever_it_stopped(step):
    """The same round with a crash after every step, on the same journal."""
    server, journal = Server(PLAN), ListJournal()
    client = Client(PLAN, journal)
    request = client.request()
    if step == 0:
        client = Client(PLAN, journal)
        assert client.outbox == client.request() == request
    offer = server.offer(request)
    choice = client.choose(offer)
    if step == 1:
        client = Client(PLAN, journal)
        assert (client.choice, client.outbox) == (choice, None)
    report = client.report(0.3)
    if step == 2:
        client = Client(PLAN, journal)
    assert write(client.outbox) == write(report)
    receipt = server.receive(report)
    client.settle(receipt)
    if step == 3:
        client = Client(PLAN, journal)
    client.settle(receipt)
    assert (client.outbox, client.rounds, server.reports) == (None, 1, 1)


def test_a_report_that_could_not_be_kept_is_not_shown_and_not_drawn_again(monkeypatch):
    from discreet.trusted import mechanism

    draws = []
    real = mechanism.report
    monkeypatch.setattr(mechanism, "report", lambda *a, **k: draws.append(1) or real(*a, **k))
    journal = ListJournal()
    _, client = chosen(journal=journal)
    journal.failing = True
    for _ in range(3):
        with pytest.raises(JournalFailed):
            client.report(0.7)
        assert (client.outbox, client.state) == (None, "chosen")
    journal.failing = False
    client.report(0.7)
    assert draws == [1]


def test_neither_reward_nor_decision_set_is_in_what_is_sent_or_kept():
    plan = local_plan(decisions="candidates", rewards=(0.0, 1000.0))
    journal, server = ListJournal(), Server(plan)
    client = Client(plan, journal)
    client.choose(server.offer(client.request()), [[1.25], [7.625]])
    client.report(617.40625)
    kept = b"".join(journal.kept[1:])
    assert b"617.40625" not in kept
    assert b"7.625" not in kept
    assert set(vars(client.outbox)) == {"id", "epoch", "integers", "seal", "simulated"}


# -- its own cap


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_a_client_takes_part_no_more_often_than_its_cap(rounds):
    plan = local_plan(privacy=LocalDP(4.0, 1e-3, rounds_per_user=rounds))
    server, journal = Server(plan), ListJournal()
    for _ in range(rounds):
        client = Client(plan, journal)  # a new start does not forget
        client.choose(server.offer(client.request()))
        client.settle(server.receive(client.report(0.5)))
    for again in (client, Client(plan, journal)):
        with pytest.raises(Refused, match=f"took part in {rounds} of {rounds} rounds"):
            again.request()


@pytest.mark.parametrize("end", ["abandon", "expire"])
def test_a_round_without_an_answer_counts_towards_the_cap(end):
    _, client = chosen()
    getattr(client, end)()
    with pytest.raises(Refused, match="took part in 1 of 1 rounds"):
        client.request()


def test_a_request_that_never_led_to_a_choice_does_not_count():
    server, client = Server(PLAN), Client(PLAN)
    request = client.request()
    client.expire()
    assert client.outbox is None
    assert client.request().id != request.id
    client.choose(server.offer(client.request()))


def test_a_report_waits_for_its_receipt_before_the_next_round():
    plan = local_plan(privacy=LocalDP(4.0, 1e-3, rounds_per_user=2))
    server, client = chosen(plan)
    with pytest.raises(Refused, match="a round is open"):
        client.request()
    report = client.report(0.4)
    with pytest.raises(Refused, match="waits for its receipt"):
        client.request()
    client.settle(server.receive(report))
    assert client.request().id != report.id


def test_a_report_that_came_too_late_is_let_go():
    plan = local_plan(privacy=LocalDP(4.0, 1e-3, rounds_per_user=2))
    server, client = chosen(plan)
    report = client.report(0.4)
    play(server, 3, plan=plan)
    with pytest.raises(TrialClosed):
        server.receive(report)
    client.expire()
    assert client.outbox is None
    assert client.request().known == 0


# -- what is refused


def weakened(epoch, **parts):
    return replace(epoch, encoding=replace(epoch.encoding, **parts))


def tampered(plan, epoch):
    """Epochs that would be worth less privacy, or wrap around, or not fit."""
    encoding = epoch.encoding
    noise, residual = encoding.noise, encoding.residual
    yield "less noise", weakened(epoch, noise=Noise(noise.gram * 0.999, noise.cross * 0.999))
    yield "no noise", weakened(epoch, noise=Noise.none())
    yield "less on rewards", weakened(epoch, noise=Noise(noise.gram, noise.cross * 0.99))
    yield "endless noise", weakened(epoch, noise=Noise(1e300, 1e300))
    yield "tiny noise", weakened(epoch, noise=Noise(1e-300, 1e-300))
    yield "negative noise", weakened(epoch, noise=Noise(-noise.gram, -noise.cross))
    yield "mixed noise", weakened(epoch, noise=Noise(1e300, 1e-300))
    wide = Residual(residual.prediction, residual.width * 1.01)
    yield "a wider range", weakened(epoch, residual=wide)
    yield "an endless range", weakened(epoch, residual=Residual(residual.prediction, 1e300))
    for large in (1e10, 1e308):
        signs = large * (-1.0) ** np.arange(plan.map.dimension)
        yield "a wild prediction", weakened(epoch, residual=Residual(signs, residual.width))
    for bits in (-1, 0, 3, 40, 62, 63, 10**9, 10**30):
        yield f"{bits} bits", weakened(epoch, bits=bits)
    if plan.encoding != "reward":
        yield "another size", weakened(epoch, residual=Residual(np.zeros(2), residual.width))
    yield "another plan", replace(epoch, plan="ab" * 32)
    yield "too long", replace(epoch, length=epoch.length + 1)
    yield "another start", replace(epoch, first=1)
    yield "another number", replace(epoch, number=1)
    yield "another past", replace(epoch, previous="cd" * 32)
    empty = np.zeros((0, plan.domain.dimension))
    policy = replace(epoch.policy, menu=empty, tilts=np.zeros((0, plan.map.dimension)))
    yield "no policy", replace(epoch, policy=policy)


@pytest.mark.parametrize("name", ["reward", "fourier", "gram"])
def test_a_tampered_epoch_is_refused_and_nothing_is_sent(name):
    plan = PLANS[name]
    server = Server(plan)
    refused = 0
    for what, epoch in tampered(plan, server.study.open_epoch):
        client = Client(plan)
        try:
            offer = Offer(client.request().id, epoch.first, epoch)
        except InvalidArgument:
            continue
        assert is_refused(client, offer, **SETS[name]), what
        assert client.state is None
        with pytest.raises(DiscreetError):
            client.report(0.5)
        refused += 1
    assert refused >= 20


def test_a_tampered_plan_is_refused_by_whoever_has_the_true_one():
    data = write(PLAN)
    weaker = read(Plan, data.replace(b'"epsilon":4.0', b'"epsilon":8.0'))
    assert weaker.mu > PLAN.mu
    for mine, theirs in ((PLAN, weaker), (weaker, PLAN)):
        client = Client(mine)
        with pytest.raises(Refused, match="belongs to another plan"):
            client.choose(Server(theirs).offer(client.request()))
    for changed in (data[:-1], data.replace(b'"study"', b'"Study" '), data.replace(b"4.0", b"4")):
        with pytest.raises(Malformed):
            read(Plan, changed)


def test_an_epoch_of_another_encoding_is_refused():
    own, other = PLANS["gram"], PLANS["fourier"]
    epoch = Server(own).study.open_epoch
    swapped = replace(epoch, encoding=Server(other).study.open_epoch.encoding)
    with pytest.raises(Refused, match="not randomised as the plan promises"):
        check_epoch(own, swapped)


@pytest.mark.parametrize("place", [1.5, -0.1, 1e6])
def test_a_menu_outside_the_domain_is_refused_for_features_are_bounded_only_inside(place):
    plan = local_plan(kernel=Linear(), features="grid") if place > 1e5 else PLAN
    epoch = Server(plan).study.open_epoch
    menu = epoch.policy.menu.copy()
    menu[0] = place
    with pytest.raises(Refused, match="policy does not fit"):
        check_epoch(plan, replace(epoch, policy=replace(epoch.policy, menu=menu)))


@pytest.mark.parametrize("value", [1e308, -1e308, 1e200])
def test_a_wild_policy_leads_to_no_action_outside_the_domain(value):
    plan = PLANS["context"]
    server, client = Server(plan), Client(plan)
    offer = server.offer(client.request())
    policy = offer.epoch.policy
    wild = replace(
        policy,
        tilts=np.full_like(policy.tilts, value),
        packed_whitening=np.full_like(policy.packed_whitening, value),
    )
    with np.errstate(all="ignore"):
        try:
            choice = client.choose(
                replace(offer, epoch=replace(offer.epoch, policy=wild)), context={"age": 61}
            )
        except (Refused, InvalidArgument):
            assert client.state is None
        else:
            assert 0.0 <= choice.action["dose"] <= 10.0


def test_the_honest_epochs_of_a_study_pass_every_check():
    for name, plan in PLANS.items():
        server = Server(plan)
        play(server, 8, plan=plan, **SETS[name])
        for epoch in server.study.epochs:
            check_epoch(plan, epoch)
        assert len(server.study.epochs) == 3


def test_an_offer_for_someone_else_is_refused():
    server, one, two = Server(PLAN), Client(PLAN), Client(PLAN)
    offer = server.offer(one.request())
    with pytest.raises(Refused, match="nothing was requested"):
        two.choose(offer)
    two.request()
    with pytest.raises(Refused, match="not for this client's request"):
        two.choose(offer)


@pytest.mark.parametrize(
    "receipt", [Receipt("ab" * 16, "counted"), Receipt("cd" * 16, "declined")], ids=repr
)
def test_a_receipt_for_something_else_is_refused(receipt):
    server, client = Server(PLAN), Client(PLAN)
    client.choose(server.offer(client.request("cd" * 16)))
    client.report(0.5)
    with pytest.raises(Refused, match="was not sent"):
        client.settle(receipt)
    assert client.outbox is not None


def test_nothing_can_be_reported_or_abandoned_before_there_is_an_action():
    client = Client(PLAN)
    with pytest.raises(Refused, match="nothing was requested"):
        client.abandon()
    client.request()
    for step in (lambda: client.report(0.5), client.abandon):
        with pytest.raises(UnknownTrial):
            step()
    with pytest.raises(Refused, match="no action was chosen"):
        _ = client.choice


def test_an_abandoned_round_can_not_be_reported():
    server, client = chosen()
    decline = client.abandon()
    assert client.abandon() == decline == client.outbox
    with pytest.raises(TrialClosed, match="is abandoned: it can not be reported now"):
        client.report(0.5)
    client.settle(server.decline(decline))
    assert client.outbox is None


@pytest.mark.parametrize("privacy", [NonPrivate(), JointDP(1.0, 1e-3)], ids=repr)
def test_a_plan_that_is_not_local_has_no_clients(privacy):
    with pytest.raises(InvalidArgument, match="plan: expected one with LocalDP privacy"):
        Client(local_plan(privacy=privacy))


def test_a_device_holds_on_to_the_plan_it_pinned(tmp_path):
    path = tmp_path / "mine.db"
    Client(PLAN, path).close()
    weaker = local_plan(privacy=LocalDP(8.0, 1e-3))
    with pytest.raises(JournalForeign, match="another plan: privacy"):
        Client(weaker, path)
    with SQLiteJournal(path) as journal:
        assert len(list(journal.records())) == 3  # the plan, its words, and that noise is real


@pytest.mark.parametrize(
    "record",
    [PLAN, Decline("ab" * 16), Receipt("ab" * 16, "counted"), Request("ab" * 16)],
    ids=lambda record: type(record).__name__,
)
def test_a_damaged_journal_of_a_client_is_not_used(record):
    journal = ListJournal()
    client = Client(PLAN, journal)
    server = Server(PLAN)
    offer = server.offer(client.request())
    if not isinstance(record, Request):
        client.choose(offer)
    else:
        journal.append(write(offer))  # an offer, and then another request's offer
    journal.append(write(record))
    if isinstance(record, Request):
        journal.append(write(offer))
    with pytest.raises((JournalDamaged, Refused)):
        Client(PLAN, journal)


# -- the chain


def grown(count):
    server = Server(PLAN)
    play(server, count)
    return server


def test_a_client_follows_the_chain_however_many_epochs_it_missed():
    plan = local_plan(privacy=LocalDP(4.0, 1e-3, rounds_per_user=9))
    server, client = Server(plan), Client(plan)
    epochs = []
    for missed in (0, 2, 0, 5, 20, 1):
        play(server, missed, plan=plan)
        offer = server.offer(client.request())
        client.choose(offer)
        client.settle(server.receive(client.report(0.5)))
        epochs.append(offer.epoch.number)
    assert epochs == [0, 1, 1, 2, 4, 4]


def tampered_releases(releases):
    first, second = releases[:2]
    louder = first.integers.copy()
    louder[0] += 1
    yield "changed integers", (replace(first, integers=louder), *releases[1:])
    yield "fewer reports", (replace(first, reports=first.reports - 1), *releases[1:])
    yield "not counted", (replace(first, reports=None), *releases[1:])
    yield "another count", (replace(first, asks=first.asks + 1), *releases[1:])
    yield "another epoch", (replace(first, epoch="ab" * 32), *releases[1:])
    yield "private or not", (replace(first, private=False), *releases[1:])
    yield "one left out", releases[1:]
    yield "the last left out", releases[:-1]
    yield "swapped", (second, first, *releases[2:])
    yield "one twice", (first, first, *releases[1:])
    yield "none", ()


def test_a_tampered_release_is_refused():
    server = grown(20)
    reader = Client(PLAN)
    honest = server.offer(reader.request())
    assert len(honest.releases) == 3
    for what, releases in tampered_releases(honest.releases):
        assert is_refused(reader, replace(honest, releases=releases)), what
    reader.choose(honest)  # refusing has changed nothing


def test_a_second_version_of_the_same_epoch_is_refused():
    server, verifier = grown(4), Verifier(PLAN)
    one = server.offer(Request("ab" * 16))
    verifier.take(one.epoch, one.releases)
    policy = replace(one.epoch.policy, menu=one.epoch.policy.menu[:-1])
    for releases in (one.releases, ()):
        other = replace(one, epoch=replace(one.epoch, policy=policy), releases=releases)
        with pytest.raises(Refused):
            verifier.take(other.epoch, other.releases)
    verifier.take(one.epoch, one.releases)


def test_who_was_shown_a_forged_epoch_notices_at_the_next_release():
    plan = local_plan(privacy=LocalDP(4.0, 1e-3, rounds_per_user=2))
    server, client = Server(plan), Client(plan)
    offer = server.offer(client.request())
    policy = replace(offer.epoch.policy, menu=offer.epoch.policy.menu[::-1].copy())
    client.choose(replace(offer, epoch=replace(offer.epoch, policy=policy)))
    with pytest.raises(TrialClosed):  # the server does not know that epoch
        server.receive(client.report(0.5))
    client.expire()
    play(server, 4, plan=plan)
    with pytest.raises(Refused, match="do not follow"):
        client.choose(server.offer(client.request()))


def test_a_restored_server_that_tells_another_story_is_refused():
    server, verifier = grown(4), Verifier(PLAN)
    first = server.offer(Request("ab" * 16))
    verifier.take(first.epoch, first.releases)
    other = grown(12).offer(Request("ab" * 16, known=verifier.known))
    with pytest.raises(Refused, match="do not follow"):
        verifier.take(other.epoch, other.releases)


def test_an_older_epoch_is_refused():
    server, verifier = grown(2), Verifier(PLAN)
    old = server.offer(Request("ab" * 16))
    play(server, 2)
    first = server.offer(Request("cd" * 16))
    verifier.take(first.epoch, first.releases)
    with pytest.raises(Refused):
        verifier.take(old.epoch, old.releases)


def test_the_chain_survives_the_wire_and_a_restart():
    plan = local_plan(privacy=LocalDP(4.0, 1e-3, rounds_per_user=3))
    server, journal = Server(plan), ListJournal()
    for expected in (0, 1, 2):
        client = Client(plan, journal)
        offer = read(Offer, write(server.offer(read(Request, write(client.request())))))
        assert offer.epoch.number == expected
        client.choose(offer)
        report = read(Report, write(client.report(0.5)))
        client.settle(read(Receipt, write(server.receive(report))))
        play(server, (3, 3)[expected % 2] if expected < 1 else 5, plan=plan)
    assert isinstance(server.study.releases[0], Release)


def test_a_simulated_report_never_counts_as_a_private_one(tmp_path):
    server, client = Server(PLAN), Client(PLAN, simulation=Simulation(1))
    client.choose(server.offer(client.request()))
    report = client.report(0.5)
    assert report.simulated is True
    with pytest.raises(Refused, match="do not go together"):
        server.receive(report)
    real = Client(PLAN)
    simulated = Server(PLAN, simulated=True)
    real.choose(simulated.offer(real.request()))
    with pytest.raises(Refused, match="do not go together"):
        simulated.receive(real.report(0.5))


@pytest.mark.parametrize("first", [None, Simulation(1)], ids=["real", "simulated"])
def test_a_journal_does_not_change_where_noise_comes_from(tmp_path, first):
    other = Simulation(1) if first is None else None
    Client(PLAN, tmp_path / "mine.db", simulation=first).close()
    with pytest.raises(Refused, match="cannot go on as the other"):
        Client(PLAN, tmp_path / "mine.db", simulation=other)


def test_what_is_private_is_in_no_repr():
    from discreet.protocol.records import Chosen

    assert "0.3" not in repr(Chosen(np.array([0.3]), 3))
    assert "3" not in repr(Chosen(np.array([0.3]), 3))
