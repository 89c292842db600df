"""A round as integers, how far one person can move them, and what that costs."""
