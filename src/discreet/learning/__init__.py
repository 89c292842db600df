"""From releases to a belief, a policy and the next epoch. Public: it never sees an answer."""
