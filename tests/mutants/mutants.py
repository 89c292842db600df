"""Ways to break the promise in one line, and who notices.

A mutant replaces `old`, which occurs once in the file, by `new`. Each of its catchers, a pytest
node, must fail then. Who changes privacy code adds the mutants of what is new.
"""

from tests.mutants.index_mutants import INDEX_MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.shuffler_mutants import SHUFFLER_MUTANTS

AUDIT = "tests/audit/test_roles.py::test_a_role_keeps_its_promise"
GRAM, FOURIER, ANNOUNCED = (
    f"{AUDIT}[custodian, {kind}]" for kind in ("gram", "fourier", "announced")
)
ONE_LOOK, FOUR_LOOKS = (f"{AUDIT}[custodian, reward, looks {count}]" for count in (1, 4))
DIRECTED = f"{AUDIT}[custodian, directed, looks 1]"
SEARCH = "tests/promises/test_looks_sensitivity.py"
DIRECTED_SEARCH = f"{SEARCH}::test_a_release_along_directions_moves_by_no_more_than_its_weights"
CLIENT = f"{AUDIT}[client, gram]"
ELIMINATION = f"{AUDIT}[custodian, elimination]"
PROVEN, EDGES = "tests/learning/test_elimination.py", "tests/learning/test_elimination_edges.py"


MUTANTS = (
    Mutant(
        "half the noise along directions",
        "privacy/directed.py",
        "Noise.split(mu, residual.width, 1.0)",
        "Noise.split(2 * mu, residual.width, 1.0)",
        (f"{SEARCH}::test_no_two_versions_of_a_round_are_further_apart_than_mu",),
    ),
    Mutant(
        "an epoch along directions with half the noise is allowed and drawn",
        "privacy/directed.py",
        "return 2.0 / min(self.noise.gram, self.noise.cross / self.residual.width)",
        "return 1.0 / min(self.noise.gram, self.noise.cross / self.residual.width)",
        (f"{SEARCH}::test_no_two_versions_of_a_round_are_further_apart_than_mu",),
    ),
    Mutant(
        "no noise on the spread along directions beyond that of cross",
        "privacy/directed.py",
        "spread = [self.noise.spread(self.residual.width) / self.residual.width**2]",
        "spread = [self.noise.cross / self.residual.width]",
        (DIRECTED_SEARCH,),
    ),
    Mutant(
        "the diagonal of the gram has the noise of the rest",
        "privacy/directed.py",
        "np.where(rows == columns, math.sqrt(2.0), 1.0)",
        "np.where(rows == columns, 1.0, 1.0)",
        (DIRECTED_SEARCH,),
    ),
    Mutant(
        "a look along directions counts whole",
        "privacy/directed.py",
        "phi, root = features(points), math.sqrt(weight)",
        "phi, root = features(points), 1.0",
        (DIRECTED_SEARCH,),
    ),
    Mutant(
        "the spread along directions counts its weight twice",
        "privacy/directed.py",
        "h = fixed_point(root * (self.residual.of(phi, rewards) / self.residual.width), self.bits)",
        "h = fixed_point(self.residual.of(phi, rewards) / self.residual.width, self.bits)",
        (DIRECTED_SEARCH,),
    ),
    Mutant(
        "a first look is a whole one, and others come on top",
        "trusted/privatizer.py",
        "self._rounds = in_sight(_Rounds(self._plan.looks_from(epoch.first)), self._rounds)",
        "looks = (1.0, *self._plan.looks_from(epoch.first)[1:])\n"
        "        self._rounds = in_sight(_Rounds(looks), self._rounds)",
        (f"{SEARCH}::test_the_privatizer_spends_no_more_than_mu_on_any_round",),
    ),
    Mutant(
        "a quarter of the noise of a release",
        "trusted/mechanism.py",
        "integers=noisy(totals, epoch.additive.stds(plan.map), bits=bits)",
        "integers=noisy(totals, np.maximum(epoch.additive.stds(plan.map) / 4, 1024.0), bits=bits)",
        (GRAM,),
    ),
    Mutant(
        "no noise on a report",
        "trusted/mechanism.py",
        "return noisy(own, epoch.additive.stds(plan.map), bits=bits)",
        "return noisy(own, 0 * epoch.additive.stds(plan.map), bits=bits)",
        (CLIENT,),
    ),
    Mutant(
        "the reports of a batch share their noise",
        "trusted/mechanism.py",
        "return noisy(own, epoch.additive.stds(plan.map), bits=bits)",
        "return own + noisy(0 * own[:1], epoch.additive.stds(plan.map), bits=bits)",
        ("tests/trusted/test_mechanism.py::test_every_report_of_a_batch_has_noise_of_its_own",),
    ),
    Mutant(
        "in one process a report that was not kept is drawn again",
        "trusted/in_process.py",
        "if number not in self._drawn]",
        "]",
        ("tests/test_local.py::test_a_report_that_could_not_be_kept_is_not_drawn_again",),
    ),
    Mutant(
        "an epoch that is weaker than the plan is released",
        "trusted/mechanism.py",
        "if not plan.allows(epoch.encoding, epoch.smallest_group):",
        "if False:",
        (
            "tests/trusted/test_mechanism.py::test_an_epoch_that_is_weaker_than_the_plan_is_not_released",
        ),
    ),
    Mutant(
        "an answer counts twice",
        "trusted/privatizer.py",
        "        newest.add(points, rewards)",
        "        newest.add(points, rewards)\n        self._look(points, rewards, newest.looks[0])",
        (GRAM, ONE_LOOK),
    ),
    Mutant(
        "noise drawn at every call",
        "trusted/privatizer.py",
        "        if self._drawn is None:\n            bits",
        "        if True:\n            bits",
        (
            "tests/trusted/test_privatizer.py::test_noise_is_drawn_once_however_often_a_release_is_asked_for",
            "tests/promises/test_crashes.py::test_a_release_that_could_not_be_committed_is_not_drawn_again_and_not_shown",
        ),
    ),
    Mutant(
        "noise drawn at every call of a custodian",
        "trusted/custody.py",
        "        if self.release is not None:\n            return self.release\n",
        "        if self.release is not None:\n"
        "            self._privatizer._drawn = None\n"
        "            return self._privatizer.release()\n",
        (GRAM,),
    ),
    Mutant(
        "late answers kept in two epochs",
        "trusted/privatizer.py",
        "        self._sums = Sums(size)\n",
        "        before = getattr(self, '_sums', None)\n"
        "        self._sums = Sums(size)\n"
        "        if before is not None and epoch.number > 1 and before.total.size == size:\n"
        "            self._sums.add(before.total)\n",
        (GRAM,),
    ),
    Mutant(
        "every look a whole one",
        "trusted/privatizer.py",
        "self._look(points, rewards, each.looks[age])",
        "self._look(points, rewards, 1.0)",
        (FOUR_LOOKS,),
    ),
    Mutant(
        "the first look a whole one",
        "trusted/privatizer.py",
        "self._look(points[some], rewards[some], newest.looks[0])",
        "self._look(points[some], rewards[some], 1.0)",
        (
            "tests/promises/test_looks_sensitivity.py::test_the_privatizer_spends_no_more_than_mu_on_any_round",
        ),
    ),
    Mutant(
        "a closed round is answered again",
        "protocol/rounds.py",
        '        raise TrialClosed(f"trial {number} was already told or abandoned")',
        "        return self._last",
        (
            "tests/protocol/test_rounds.py::test_no_sequence_of_calls_closes_a_round_twice_or_loses_one",
        ),
    ),
    Mutant(
        "a report randomised anew when it is sent again",
        "trusted/client.py",
        '        if self._report is not None and is_repeat(self._state, "report"):\n'
        "            return self._report",
        '        if self._report is not None and is_repeat(self._state, "report"):\n'
        "            return self._draw(reward)",
        (CLIENT,),
    ),
    Mutant(
        "residuals are not clipped",
        "privacy/clipping.py",
        "return np.clip(rewards - np.sum(phi * self.prediction, axis=1), -self.width, self.width)",
        "return rewards - np.sum(phi * self.prediction, axis=1)",
        (
            "tests/privacy/test_encodings.py::test_a_residual_beyond_the_width_counts_as_the_width",
            "tests/promises/test_sensitivity.py::test_no_two_rounds_are_further_apart_than_the_bound",
        ),
    ),
    Mutant(
        "half the noise on the gram",
        "privacy/clipping.py",
        "return cls((1 + share) / mu, ",
        "return cls((1 + share) / mu / 2, ",
        ("tests/privacy/test_encodings.py::test_the_noise_costs_the_mu_it_was_fit_for",),
    ),
    Mutant(
        "rewards pay for half of their move",
        "privacy/reward.py",
        "noise=Noise(0.0, cross * excess)",
        "noise=Noise(0.0, cross * excess / 2)",
        ("tests/privacy/test_encodings.py::test_the_noise_costs_the_mu_it_was_fit_for",),
    ),
    Mutant(
        "the bound of rewards forgets half of the move",
        "privacy/reward.py",
        "return 2.0 * residual.width / noise.cross + 3.0",
        "return 1.0 * residual.width / noise.cross + 3.0",
        (
            "tests/promises/test_sensitivity.py::test_no_two_rounds_are_further_apart_than_the_bound",
        ),
    ),
    Mutant(
        "directions are not normalised",
        "privacy/unit_directions.py",
        "return np.divide(seen, lengths, out=np.zeros_like(seen), where=lengths > 1e-150)",
        "return seen",
        (
            "tests/promises/test_sensitivity.py::test_no_directions_take_two_rounds_beyond_the_bound",
        ),
    ),
    Mutant(
        "noise on h^2 as if it moved no more than h",
        "privacy/clipping.py",
        "return self.cross * width * math.sqrt(2.0 / min(q, 1.0))",
        "return self.cross * width * math.sqrt(0.5 / min(q, 1.0))",
        ("tests/promises/test_sensitivity.py::test_silence_is_closer_to_a_round_than_the_bound",),
    ),
    Mutant(
        "exact numbers rounded to the nearest, not toward zero",
        "privacy/clipping.py",
        "return np.trunc(np.ldexp(values, bits)).astype(np.int64)",
        "return np.sign(values).astype(np.int64) * np.ceil(np.abs(np.ldexp(values, bits)))"
        ".astype(np.int64)",
        (
            "tests/privacy/test_encodings.py::test_fixed_point_rounds_toward_zero_by_less_than_one_step",
        ),
    ),
    Mutant(
        "a diagonal entry with the noise of two halves",
        "privacy/gram.py",
        "np.where(rows == columns, math.sqrt(2.0), 1.0)",
        "np.where(rows == columns, 0.5, 1.0)",
        (
            "tests/promises/test_sensitivity.py::test_no_two_rounds_are_further_apart_than_the_bound",
        ),
    ),
    Mutant(
        "Fourier moments with the same noise each",
        "privacy/fourier.py",
        "moments = self.noise.gram / np.sqrt(difference_grid(features).autocorrelation)",
        "moments = self.noise.gram + 0 * difference_grid(features).autocorrelation",
        (
            "tests/promises/test_sensitivity.py::test_no_two_rounds_are_further_apart_than_the_bound",
        ),
    ),
    Mutant(
        "looks that add up to more than one",
        "privacy/looks.py",
        "if math.fsum(weight**2 for weight in looks) > 1.0 + 1e-12:",
        "if math.fsum(weight**2 for weight in looks) > 2.0:",
        ("tests/privacy/test_looks.py::test_weights_that_could_cost_more_are_refused",),
    ),
    Mutant(
        "a late answer costs more than a prompt one",
        "privacy/looks.py",
        "    if reach(looks) > 2.0 + 1e-12:",
        "    if reach(looks) > 3.0:",
        ("tests/privacy/test_looks.py::test_a_weight_of_nearly_all_is_refused_by_what_it_moves",),
    ),
    Mutant(
        "a person takes part once too often",
        "trusted/participants.py",
        "if rounds >= privacy.rounds_per_user:",
        "if rounds > privacy.rounds_per_user:",
        (
            "tests/trusted/test_participants.py::test_a_user_takes_part_as_often_as_the_guarantee_allows",
            "tests/trusted/test_custodian.py::test_nobody_takes_part_more_often_than_the_guarantee_allows",
        ),
    ),
    Mutant(
        "a device takes part once too often",
        "trusted/client.py",
        "if self._rounds >= self._most:",
        "if self._rounds > self._most:",
        ("tests/trusted/test_client.py::test_a_client_takes_part_no_more_often_than_its_cap",),
    ),
    Mutant(
        "each of several rounds costs the whole",
        "privacy/budget.py",
        "return mu / self.rounds_per_user",
        "return mu",
        ("tests/privacy/test_budget.py::test_rounds_share_the_mu_of_a_person",),
    ),
    Mutant(
        "finite precision takes nothing from delta",
        "privacy/cost.py",
        "left = delta - share_of(slack, epsilon)",
        "left = delta",
        (
            "tests/trusted/test_randomness.py::test_a_plan_pays_for_finite_precision_out_of_its_delta",
        ),
    ),
    Mutant(
        "a seed in a real study",
        "trusted/randomness.py",
        "return OperatingSystem() if simulation is None else Seeded(simulation, epoch)",
        "return Seeded(simulation or Simulation(0), epoch)",
        ("tests/trusted/test_custodian.py::test_a_study_ends_at_its_horizon",),
    ),
    Mutant(
        "a simulation marked private",
        "trusted/randomness.py",
        "    private = False",
        "    private = True",
        ("tests/trusted/test_randomness.py::test_only_the_operating_system_is_private",),
    ),
    Mutant(
        "noise without its fine part",
        "trusted/randomness.py",
        "noise[noisy] = (coarse + smoothing).astype(np.int64)",
        "noise[noisy] = np.where(np.abs(coarse) > 3 * stds[noisy], 0, coarse).astype(np.int64)",
        (
            "tests/trusted/test_randomness.py::test_noise_has_the_standard_deviation_that_was_asked_for",
        ),
    ),
    Mutant(
        "shown before it is kept",
        "protocol/role.py",
        "        try:\n            self._append(*records)\n        except DiscreetError:\n"
        "            self._broken = False\n            raise\n"
        "        self._apply_all(records)\n",
        "        self._apply_all(records)\n"
        "        try:\n            self._append(*records)\n        except DiscreetError:\n"
        "            self._broken = False\n            raise\n",
        (
            "tests/promises/test_crashes.py::test_a_release_that_could_not_be_committed_is_not_drawn_again_and_not_shown",
        ),
    ),
    Mutant(
        "a write that was interrupted is forgotten",
        "protocol/role.py",
        "        self._broken = True\n        try:",
        "        self._broken = False\n        try:",
        (
            "tests/test_bandit.py::test_an_interrupt_between_commit_and_apply_leaves_a_journal_that_resumes",
        ),
    ),
    Mutant(
        "whoever brings nothing admissible takes no index",
        "trusted/entries.py",
        "found[place] = Entry(Passed(first + i, pseudonym), refusal=decisions.refusals[i])",
        "raise decisions.refusals[i]",
        (
            "tests/promises/test_refusals.py::test_in_a_bandit",
            "tests/promises/test_refusals.py::test_by_a_custodian",
        ),
    ),
    Mutant(
        "a menu decides who is refused",
        "learning/personal.py",
        "    rows = np.flatnonzero(waiting)\n    points[rows]",
        "    rows = np.flatnonzero(waiting)[:0]\n    points[rows]",
        (
            "tests/promises/test_refused_by_plan_alone.py::test_a_client_refuses_the_same_people_under_every_epoch",
        ),
    ),
    Mutant(
        "whose options lead to an error takes no index",
        "protocol/decisions.py",
        "return Decisions(np.full((1, plan.domain.dimension), np.nan), refusals={0: error})",
        "raise",
        (
            "tests/promises/test_batches.py::test_an_error_that_one_persons_options_lead_to_is_theirs_alone",
        ),
    ),
    Mutant(
        "an epoch may have more directions than the plan pays for",
        "agreement/plan.py",
        "if encoding.size(self.map) > self.most_integers:",
        "if False:",
        (
            "tests/agreement/test_plan.py::test_a_plan_from_before_directions_pays_for_one_a_feature",
            "tests/trusted/test_custodian.py::test_an_epoch_with_more_directions_than_the_plan_pays_for_is_refused",
        ),
    ),
    Mutant(
        "a release is paid for as if it were one integer",
        "agreement/plan.py",
        "releases * self.most_integers * self.encode_with.slack",
        "releases * self.encode_with.slack",
        ("tests/promises/test_certified_levels.py::test_no_epsilon_is_said_that_is_not_proven",),
    ),
    Mutant(
        "an epoch's noise is taken on trust",
        "protocol/verifier.py",
        "    if not plan.allows(encoding, epoch.smallest_group):\n"
        "        raise Refused(\"this epoch's noise is weaker",
        "    if False:\n        raise Refused(\"this epoch's noise is weaker",
        (
            "tests/trusted/test_custodian.py::test_a_weaker_epoch_is_refused_and_nobody_acts_under_it",
            "tests/trusted/test_client.py::test_a_tampered_epoch_is_refused_and_nothing_is_sent",
        ),
    ),
    Mutant(
        "integers that can wrap around",
        "protocol/verifier.py",
        "if not 1 <= encoding.bits <= 62 or encoding.largest > 1 << spare_bits(rounds):",
        "if not 1 <= encoding.bits <= 62:",
        (
            "tests/trusted/test_custodian.py::test_an_epochs_integers_leave_room_for_the_late_answers_of_others",
        ),
    ),
    Mutant(
        "an action depends on the number of answers",
        "trusted/custody.py",
        "found = entries(self._plan, self._epoch,",
        "epoch = __import__('dataclasses').replace(\n"
        "            self._epoch, first=self._epoch.first - len(self.session.open_rounds)\n"
        "        )\n"
        "        found = entries(self._plan, epoch,",
        (
            "tests/promises/test_side_doors.py::test_nothing_of_one_user_reaches_an_action_of_another_in_the_same_epoch",
        ),
    ),
    Mutant(
        "a late answer counts where a phase knows its asks",
        "trusted/privatizer.py",
        "first = self._epoch.first if self._plan.eliminates else 0",
        "first = 0",
        (
            "tests/promises/test_elimination_sensitivity.py::test_a_late_answer_moves_no_release_of_elimination",
        ),
    ),
    Mutant(
        "a phase of elimination with half of its noise",
        "learning/elimination.py",
        "Residual(prediction, width), plan.mu, 1.0, rounds)",
        "Residual(prediction, width), 2.0 * (plan.mu or 0.5), 1.0, rounds)",
        (
            "tests/promises/test_elimination_sensitivity.py::test_no_two_rounds_of_a_phase_are_further_apart_than_mu",
            "tests/learning/test_elimination.py::test_a_study_goes_on_after_a_restart",
        ),
    ),
    Mutant(
        "elimination chooses from what people bring",
        "agreement/resolve.py",
        'plan.decisions != "box",\n            "decisions",',
        'False,\n            "decisions",',
        ("tests/learning/test_elimination.py::test_what_does_not_go_together_is_refused",),
    ),
    Mutant(
        "a phase of elimination through a custodian with a quarter of its noise",
        "trusted/mechanism.py",
        "integers=noisy(totals, epoch.additive.stds(plan.map), bits=bits)",
        "integers=noisy(totals, np.maximum(epoch.additive.stds(plan.map) / 4, 1024.0), bits=bits)",
        (ELIMINATION,),
    ),
    Mutant(
        "elimination's widths forget half of the union over arms and phases",
        "learning/elimination_bounds.py",
        "return math.sqrt(2.0 * math.log(4.0 * arms / own))",
        "return 0.5 * math.sqrt(2.0 * math.log(4.0 * arms / own))",
        (f"{PROVEN}::test_no_promise_is_broken_more_often_than_its_failure",),
    ),
    Mutant(
        "elimination's widths forget the noise of releases",
        "learning/phase.py",
        "own = np.eye(len(self.sums)) * self.private**2",
        "own = np.eye(len(self.sums)) * self.private**2 / 9",
        (f"{PROVEN}::test_no_promise_is_broken_more_often_than_its_failure",),
    ),
    Mutant(
        "elimination foresees half of the largest lever q_k",
        "learning/elimination_bounds.py",
        "n, q = expected.asks, (1.0 + TOLERANCE) * rank",
        "n, q = expected.asks, (1.0 + TOLERANCE) * rank / 2",
        (f"{PROVEN}::test_no_width_is_wider_than_foreseen",),
    ),
    Mutant(
        "elimination's bias forgets the misfit of the asked arms",
        "learning/phase.py",
        "misfit = (arms.misfit + arms.norm * left) * (1.0 + pull @ self.counts)",
        "misfit = (arms.misfit + arms.norm * left) * (1.0 + 0.5 * pull @ self.counts)",
        (f"{EDGES}::test_an_adversary_takes_most_of_the_bias_and_never_more",),
    ),
    Mutant(
        "elimination's bias forgets half of the silent",
        "learning/phase.py",
        "silent=silence * release.asks if",
        "silent=0.5 * silence * release.asks if",
        (f"{EDGES}::test_an_adversary_takes_most_of_the_bias_and_never_more",),
    ),
    *INDEX_MUTANTS,
    *SHUFFLER_MUTANTS,
)
