"""Games that try to break the promise."""
