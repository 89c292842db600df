"""`python -m discreet.cli`."""

from discreet.cli.program import main

main()
