"""Ways to break the promise in one line, and who notices.

A mutant replaces `old`, which occurs once in the file, by `new`. Each of its catchers, a pytest
node, must fail then. Who changes privacy code adds the mutants of what is new.
"""

from dataclasses import dataclass

AUDIT = "tests/audit/test_roles.py::test_a_role_keeps_its_promise"
GRAM, FOURIER, ANNOUNCED = (
    f"{AUDIT}[custodian, {kind}]" for kind in ("gram", "fourier", "announced")
)
ONE_LOOK, FOUR_LOOKS = (f"{AUDIT}[custodian, reward, looks {count}]" for count in (1, 4))
CLIENT = f"{AUDIT}[client, gram]"


@dataclass(frozen=True)
class Mutant:
    """One broken line."""

    name: str
    file: str
    old: str
    new: str
    catchers: tuple[str, ...]


MUTANTS = (
    Mutant(
        "a quarter of the noise of a release",
        "trusted/mechanism.py",
        "integers=noisy(totals, epoch.encoding.stds(plan.map), bits=bits)",
        "integers=noisy(totals, np.maximum(epoch.encoding.stds(plan.map) / 4, 1024.0), bits=bits)",
        (GRAM,),
    ),
    Mutant(
        "no noise on a report",
        "trusted/mechanism.py",
        "return noisy(own, epoch.encoding.stds(plan.map), bits=bits)[0]",
        "return noisy(own, 0 * epoch.encoding.stds(plan.map), bits=bits)[0]",
        (CLIENT,),
    ),
    Mutant(
        "an epoch that is weaker than the plan is released",
        "trusted/mechanism.py",
        "if not plan.allows(epoch.encoding):",
        "if False:",
        (),
    ),
    Mutant(
        "an answer counts twice",
        "trusted/privatizer.py",
        "        newest.add(point, centred)",
        "        newest.add(point, centred)\n"
        "        self._look(point[None, :], np.array([centred]), newest.looks[0])",
        (GRAM, ONE_LOOK),
    ),
    Mutant(
        "noise drawn at every call",
        "trusted/privatizer.py",
        "        if self._drawn is None:\n            bits",
        "        if True:\n            bits",
        (),
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
        "self._look(point[None, :], np.array([centred]), newest.looks[0])",
        "self._look(point[None, :], np.array([centred]), 1.0)",
        (FOUR_LOOKS,),
    ),
    Mutant(
        "a closed round is answered again",
        "protocol/rounds.py",
        '        raise TrialClosed(f"trial {number} was already told or abandoned")',
        "        return self._last",
        (),
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
        "rewards are not clipped",
        "agreement/plan.py",
        "return min(max(reward, self.rewards[0]), self.rewards[1])",
        "return reward",
        (),
    ),
    Mutant(
        "residuals are not clipped",
        "privacy/clipping.py",
        "return np.clip(rewards - np.sum(phi * self.prediction, axis=1), -self.width, self.width)",
        "return rewards - np.sum(phi * self.prediction, axis=1)",
        (),
    ),
    Mutant(
        "half the noise on the gram",
        "privacy/clipping.py",
        "return cls((1 + share) / mu, ",
        "return cls((1 + share) / mu / 2, ",
        (),
    ),
    Mutant(
        "rewards pay for half of their move",
        "privacy/reward.py",
        "cross = 2.0 * residual.width / mu",
        "cross = residual.width / mu",
        (),
    ),
    Mutant(
        "the bound of rewards forgets half of the move",
        "privacy/reward.py",
        "return 2.0 * residual.width / noise.cross + 3.0",
        "return 1.0 * residual.width / noise.cross + 3.0",
        (),
    ),
    Mutant(
        "directions are not normalised",
        "privacy/reward.py",
        "return np.divide(seen, lengths, out=np.zeros_like(seen), where=lengths > 1e-150)",
        "return seen",
        (),
    ),
    Mutant(
        "noise on h^2 as if it moved no more than h",
        "privacy/clipping.py",
        "return self.cross * width * math.sqrt(2.0 / min(q, 1.0))",
        "return self.cross * width * math.sqrt(0.5 / min(q, 1.0))",
        (),
    ),
    Mutant(
        "exact numbers rounded to the nearest, not toward zero",
        "privacy/clipping.py",
        "return np.trunc(np.ldexp(values, bits)).astype(np.int64)",
        "return np.sign(values).astype(np.int64) * np.ceil(np.abs(np.ldexp(values, bits)))"
        ".astype(np.int64)",
        (),
    ),
    Mutant(
        "a diagonal entry with the noise of two halves",
        "privacy/gram.py",
        "np.where(rows == columns, math.sqrt(2.0), 1.0)",
        "np.where(rows == columns, 0.5, 1.0)",
        (),
    ),
    Mutant(
        "Fourier moments with the same noise each",
        "privacy/fourier.py",
        "moments = self.noise.gram / np.sqrt(difference_grid(features).autocorrelation)",
        "moments = self.noise.gram + 0 * difference_grid(features).autocorrelation",
        (),
    ),
    Mutant(
        "looks that add up to more than one",
        "privacy/looks.py",
        "if math.fsum(weight**2 for weight in looks) > 1.0 + 1e-12:",
        "if math.fsum(weight**2 for weight in looks) > 2.0:",
        (),
    ),
    Mutant(
        "a late answer costs more than a prompt one",
        "privacy/looks.py",
        "    if reach(looks) > 2.0 + 1e-12:",
        "    if reach(looks) > 3.0:",
        (),
    ),
    Mutant(
        "a person takes part once too often",
        "trusted/participants.py",
        "if self._rounds_of.get(pseudonym, 0) >= privacy.rounds_per_user:",
        "if self._rounds_of.get(pseudonym, 0) > privacy.rounds_per_user:",
        (),
    ),
    Mutant(
        "a device takes part once too often",
        "trusted/client.py",
        "if self._rounds >= self._most:",
        "if self._rounds > self._most:",
        (),
    ),
    Mutant(
        "each of several rounds costs the whole",
        "privacy/budget.py",
        "return mu / self.rounds_per_user",
        "return mu",
        (),
    ),
    Mutant(
        "finite precision takes nothing from delta",
        "privacy/budget.py",
        "cost = GaussianPrivacy.of(privacy.epsilon, privacy.delta - slack)",
        "cost = GaussianPrivacy.of(privacy.epsilon, privacy.delta + slack)",
        (),
    ),
    Mutant(
        "a seed in a real study",
        "trusted/randomness.py",
        "return OperatingSystem() if simulation is None else Seeded(simulation, epoch)",
        "return Seeded(simulation or Simulation(0), epoch)",
        (),
    ),
    Mutant(
        "a simulation marked private",
        "trusted/randomness.py",
        "    private = False",
        "    private = True",
        (),
    ),
    Mutant(
        "noise without its fine part",
        "trusted/randomness.py",
        "noise[noisy] = (coarse + smoothing).astype(np.int64)",
        "noise[noisy] = np.where(np.abs(coarse) > 3 * stds[noisy], 0, coarse).astype(np.int64)",
        (),
    ),
    Mutant(
        "shown before it is kept",
        "protocol/role.py",
        "        try:\n            self._append(*records)\n        except Exception:\n"
        "            self._broken = False\n            raise\n"
        "        for record in records:\n            self._apply(record)\n",
        "        for record in records:\n            self._apply(record)\n"
        "        try:\n            self._append(*records)\n        except Exception:\n"
        "            self._broken = False\n            raise\n",
        (),
    ),
    Mutant(
        "a write that was interrupted is forgotten",
        "protocol/role.py",
        "        self._broken = True\n        try:",
        "        self._broken = False\n        try:",
        (),
    ),
    Mutant(
        "whoever brings nothing admissible takes no index",
        "trusted/custody.py",
        "            return Entry(Passed(number, pseudonym), refusal=error)",
        "            raise error",
        (),
    ),
    Mutant(
        "an epoch's noise is taken on trust",
        "protocol/verifier.py",
        '    if not plan.allows(encoding):\n        raise Refused("this epoch\'s noise is weaker',
        '    if False:\n        raise Refused("this epoch\'s noise is weaker',
        (),
    ),
    Mutant(
        "integers that can wrap around",
        "protocol/verifier.py",
        "if not 1 <= encoding.bits <= 62 or encoding.largest > 1 << spare_bits(rounds):",
        "if not 1 <= encoding.bits <= 62:",
        (),
    ),
    Mutant(
        "an action depends on the number of answers",
        "trusted/custody.py",
        "point, chosen = decide(self._plan, self._epoch, number, options)",
        "point, chosen = decide(\n"
        "                self._plan, self._epoch, number + len(self.session.open), options\n"
        "            )",
        (),
    ),
)
