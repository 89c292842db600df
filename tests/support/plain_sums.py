"""What an epoch's sums are before noise, written down plainly for tests."""

import numpy as np

from discreet.privacy.reward import RewardEncoding


class LookedAt:
    """Remembers the rounds of a study, and sums what each epoch looks at."""

    def __init__(self, plan):
        self.plan, self.rounds = plan, []

    def sums(self, epoch, points, rewards):
        """The rounds of this epoch and of those before it, as much as each counts."""
        encoding, features = epoch.encoding, self.plan.map
        if not isinstance(encoding, RewardEncoding):
            return encoding.encode(features, points, rewards).sum(axis=0)
        self.rounds.append((epoch.number, self.plan.looks_from(epoch.first), points, rewards))
        total = np.zeros(encoding.size(features), dtype=np.int64)
        for number, looks, x, y in self.rounds:
            age = epoch.number - number
            if age < len(looks):
                total += encoding.encode(features, x, y, looks[age]).sum(axis=0)
        return total
