"""What tests of several files share."""

import sys

import pytest
from hypothesis import settings

# How long an example takes says more about the machine than about us.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """Run a command in an empty folder: its exit code, standard output and error output."""
    from discreet.cli.program import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.setenv("COLUMNS", "200")

    def command(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return stopped.value.code or 0, out, err

    return command
