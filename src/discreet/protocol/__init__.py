"""What the roles say to each other, the states of a round, and the public roles."""
