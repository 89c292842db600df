"""Studies in worlds we made up: regret, and what to expect of a plan."""
