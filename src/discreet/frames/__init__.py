"""Tables as people have them, and tables they can take away."""
