"""Nothing of an id or of an order, and no answer, reaches the server of a shuffled study."""

import random

from tests.support.journals import ListJournal
from tests.support.mixed_plans import SECRET, Crowd, an_id, mixed_plan

from discreet import Client, ShuffleServer
from discreet.protocol.messages import write

PLAN = mixed_plan()


def reports():
    """Twelve people's sealed reports, for one epoch."""
    people, sent = Crowd(PLAN), []
    for number in range(12):
        client = Client(PLAN)
        client.choose(people.shuffler.offer(client.request(an_id(number))))
        sent.append(client.report(0.01 * number))
    return sent


def played(sent, *, order):
    """These reports in some order: what goes up, and the server's journal after it."""
    journal = ListJournal()
    people = Crowd(PLAN, journals=(None, journal))
    people.offers(12)
    for number in order:
        people.shuffler.receive(sent[number])
    batch = people.turn()
    return batch, b"\n".join(journal.records())


def test_no_id_reaches_the_server():
    sent = reports()
    batch, journal = played(sent, order=range(12))
    seen = write(batch) + journal
    for report in sent:
        assert report.id.encode() not in seen
        assert bytes.fromhex(report.id) not in seen


def test_the_servers_journal_is_the_same_in_whatever_order_people_answered():
    sent, rng = reports(), random.Random(3)
    journals = {played(sent, order=rng.sample(range(12), 12))[1] for _ in range(5)}
    assert len(journals) == 1


def test_the_shuffler_keeps_no_answer_and_no_key_that_opens_one():
    journal = ListJournal()
    people = Crowd(PLAN, journals=(journal, None))
    sent = people.come(12, reward=0.739184265137)
    people.turn()
    text = b"\n".join(journal.records())
    assert b"739184265137" not in text
    assert SECRET.encode() not in text
    assert all(report.box.encode() in text for report in sent)


def test_two_servers_with_one_secret_read_the_same_batch_alike():
    batch, journal = played(reports(), order=range(12))
    again = ListJournal()
    ShuffleServer(PLAN, SECRET, again).take(batch)
    assert b"\n".join(again.records()) == journal
