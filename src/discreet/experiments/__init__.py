"""The problems, sweeps and figures that show what the library does."""
