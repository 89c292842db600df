"""Ways to break the shuffled model, and who notices."""

from tests.mutants.mutant import Mutant

SHUFFLER = "tests/trusted/test_shuffler.py"
SHUFFLED_AUDIT = "tests/audit/test_shuffled.py"

SHUFFLER_MUTANTS = (
    Mutant(
        "a batch keeps the order in which people came",
        "trusted/shuffler.py",
        "else tuple(mixed(group))",
        "else tuple(group)",
        (
            f"{SHUFFLER}::test_the_order_of_a_batch_is_not_the_order_in_which_people_came",
            f"{SHUFFLED_AUDIT}::test_a_shuffler_keeps_its_promise",
        ),
    ),
    Mutant(
        "all batches are mixed alike",
        "trusted/randomness.py",
        "random.SystemRandom().shuffle(own)",
        "random.Random(7).shuffle(own)",
        ("tests/trusted/test_mixing.py::test_every_order_is_as_likely_as_any_other",),
    ),
    Mutant(
        "a group of few reports is handed up",
        "trusted/shuffler.py",
        "() if promise.drops(len(group), asks) else",
        "() if not group else",
        (f"{SHUFFLER}::test_a_group_of_which_too_few_reported_is_left_out_and_others_are_not",),
    ),
    Mutant(
        "a batch of few reports is handed up",
        "trusted/shuffler.py",
        "if len(self._boxes) < promise.minimum:",
        "if not self._boxes:",
        (f"{SHUFFLER}::test_a_batch_below_the_minimum_is_not_handed_up_and_the_study_goes_on",),
    ),
    Mutant(
        "sums of a group of few reports come out of one process",
        "protocol/handed_up.py",
        "rows[list(map(promise.drops, answers, epoch.groups))] = 0",
        "rows[[not each for each in answers]] = 0",
        (f"{SHUFFLER}::test_a_bandit_leaves_out_what_a_shuffler_would_not_hand_up",),
    ),
    Mutant(
        "a copied box counts again",
        "trusted/shuffler.py",
        "if report.box in self._boxes or any(",
        "if any(",
        (f"{SHUFFLER}::test_a_box_that_was_copied_is_refused",),
    ),
    Mutant(
        "a shuffler takes reports for any key",
        "trusted/shuffler.py",
        "if report.key != self._opened.key:",
        "if not report.key:",
        (f"{SHUFFLER}::test_reports_of_another_epoch_or_for_another_key_are_refused",),
    ),
    Mutant(
        "a client of a shuffled plan answers in the clear",
        "trusted/client.py",
        "if (offer.key is None) == self._plan.is_shuffled:",
        "if offer.key is not None and not self._plan.is_shuffled:",
        (f"{SHUFFLER}::test_a_client_of_a_shuffled_plan_sends_nothing_in_the_clear",),
    ),
    Mutant(
        "dishonest people hide others",
        "privacy/shuffled.py",
        "dishonest = (1.0 - self.honest) * asks",
        "dishonest = 0.0",
        (
            "tests/privacy/test_shuffled.py::test_what_is_allowed_keeps_the_promise_among_honest_reports_alone",
        ),
    ),
    Mutant(
        "dishonest people are a share of reports, not of those asked",
        "privacy/shuffled.py",
        "dishonest = (1.0 - self.honest) * asks",
        "dishonest = (1.0 - self.honest) * self.least(asks)",
        (
            "tests/privacy/test_shuffled.py::test_dishonest_people_who_all_report_leave_as_many_honest_reports_as_are_counted",
        ),
    ),
    Mutant(
        "a crowd is counted forty times",
        "privacy/shuffled.py",
        "return max(1, math.floor(round(self.least(asks) - dishonest, 9)))",
        "return 40 * max(1, math.floor(round(self.least(asks) - dishonest, 9)))",
        (f"{SHUFFLED_AUDIT}::test_a_shuffler_keeps_its_promise",),
    ),
    Mutant(
        "people who were asked hide others, answered or not",
        "privacy/shuffled.py",
        "return math.ceil(round(self.answering * asks, 9))",
        "return asks",
        (
            "tests/privacy/test_shuffled.py::test_what_is_allowed_keeps_the_promise_among_honest_reports_alone",
        ),
    ),
    Mutant(
        "the blanket has one person more",
        "privacy/blanket.py",
        "moved = _Law.of(people, either)",
        "moved = _Law.of(people + 1, either)",
        ("tests/privacy/test_blanket.py::test_the_accounting_equals_enumeration_of_every_batch",),
    ),
    Mutant(
        "caps of the two worlds have something in common",
        "privacy/blanket.py",
        "apart = min(blanket.cap, blanket.size - blanket.cap)",
        "apart = max(1, min(blanket.cap, blanket.size - blanket.cap) - 1)",
        ("tests/privacy/test_blanket.py::test_the_accounting_equals_enumeration_of_every_batch",),
    ),
    Mutant(
        "reports at the level of a larger crowd",
        "agreement/index_reports.py",
        "return privacy.level(group, lambda",
        "return privacy.level(4 * group, lambda",
        (f"{SHUFFLER}::test_reports_are_sent_at_a_level_that_the_smallest_group_hides",),
    ),
)
