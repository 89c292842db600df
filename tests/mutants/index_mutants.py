"""Ways to break reports that are indices, and who notices."""

from tests.mutants.mutant import Mutant

INDEX_CLIENT = (
    "tests/audit/test_indices.py::test_the_real_client_keeps_its_promise_exactly_and_uses_it_up"
)
INDEX_CAP, INDEX_BOOK = "tests/privacy/test_cap.py", "tests/privacy/test_codebook.py"

INDEX_MUTANTS = (
    Mutant(
        "the odds of an index are rounded up",
        "privacy/cap.py",
        "(share.numerator << THRESHOLD_BITS) // share.denominator)",
        "(share.numerator << THRESHOLD_BITS) // share.denominator + 1)",
        (f"{INDEX_CAP}::test_no_index_is_likelier_by_more_than_the_factor_as_rational_numbers",),
    ),
    Mutant(
        "e^epsilon is taken from above",
        "privacy/cap.py",
        "        total += term\n",
        "        total += term + 1\n",
        (f"{INDEX_CAP}::test_the_rational_number_is_below_the_exponential_and_hardly",),
    ),
    Mutant(
        "the odds of the cap are too large",
        "trusted/randomness.py",
        "< cap.threshold\n",
        "< cap.threshold + (1 << 56)\n",
        (
            INDEX_CLIENT,
            "tests/trusted/test_index_client.py::test_the_threshold_decides_to_the_last_word",
        ),
    ),
    Mutant(
        "one word too many is for the cap",
        "trusted/randomness.py",
        "< cap.threshold\n",
        "<= cap.threshold\n",
        ("tests/trusted/test_index_client.py::test_the_threshold_decides_to_the_last_word",),
    ),
    Mutant(
        "words beyond a whole multiple are not drawn again",
        "trusted/randomness.py",
        "while (beyond := found >= whole).any():",
        "while (beyond := found > found).any():",
        ("tests/trusted/test_index_client.py::test_words_beyond_a_whole_multiple_are_drawn_again",),
    ),
    Mutant(
        "the cap that indices are drawn by is smaller than the plan's",
        "trusted/mechanism.py",
        "    places = randomness.places(encoding.cap, len(points), bits=bits)",
        "    small = type(encoding.cap)(encoding.cap.size, 9, encoding.cap.threshold)\n"
        "    places = randomness.places(small, len(points), bits=bits)",
        (INDEX_CLIENT,),
    ),
    Mutant(
        "an epoch of another N, K or p is allowed",
        "agreement/index_reports.py",
        "return encoding.cap == cap and cap.is_within(self.report_epsilon)",
        "return True",
        ("tests/trusted/test_index_client.py::test_an_epoch_of_another_n_k_or_p_is_refused",),
    ),
    Mutant(
        "every round of a person costs the whole epsilon",
        "privacy/budget.py",
        "return Fraction(self.epsilon) / self.rounds_per_user",
        "return Fraction(self.epsilon)",
        (
            "tests/trusted/test_index_client.py::test_of_k_rounds_each_costs_a_kth_and_the_next_is_refused",
        ),
    ),
    Mutant(
        "a round costs twice what is promised",
        "privacy/budget.py",
        "return Fraction(self.epsilon) / self.rounds_per_user",
        "return 2 * Fraction(self.epsilon) / self.rounds_per_user",
        (INDEX_CLIENT,),
    ),
    Mutant(
        "an index of the cap stands for two places",
        "privacy/book.py",
        "^ (place >= nearest))",
        "^ (place >= nearest and pair % 2))",
        (
            f"{INDEX_BOOK}::test_a_hostile_book_leaves_every_index_possible_and_a_cap_of_k",
            f"{INDEX_BOOK}::test_any_two_vectors_give_every_index_probabilities_within_the_factor",
        ),
    ),
    Mutant(
        "an interval's others overlap with its cap",
        "privacy/interval.py",
        "outside = np.where(others < begins, others, places)",
        "outside = np.where(others <= begins, others, places)",
        (
            "tests/privacy/test_interval.py::test_any_two_residuals_give_every_index_probabilities_within_the_factor",
        ),
    ),
    Mutant(
        "of two studies without delta the dearer one counts",
        "privacy/cost.py",
        "exact = math.fsum(pure.total for",
        "exact = max(pure.total for",
        ("tests/cli/test_inspect.py::test_studies_without_delta_add_up_their_epsilons",),
    ),
)
