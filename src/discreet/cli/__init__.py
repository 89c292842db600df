"""The command line: the only place where everything is wired. A file for each command.

Exit codes: 0 done, 1 the work failed, 2 the request was wrong (one line says what to do).
"""

import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer
from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs]

from discreet.cli.audit import audit_command
from discreet.cli.demo import demo_command
from discreet.cli.forecast import forecast_command
from discreet.cli.reproduce import reproduce_command
from discreet.cli.simulate import simulate_command
from discreet.errors import DiscreetError

app = typer.Typer(
    no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None, add_completion=True
)
app.command("audit")(audit_command)
app.command("demo")(demo_command)
app.command("forecast")(forecast_command)
app.command("reproduce")(reproduce_command)
app.command("simulate")(simulate_command)


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        typer.echo(f"discreet {version('discreet')}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Private Gaussian-process bandits: choose the best action again and again."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; our own errors become one line and an exit code."""
    try:
        with threadpool_limits(1):
            app(arguments, standalone_mode=True)
    except DiscreetError as error:
        typer.echo(f"discreet: {error}", err=True)
        sys.exit(2 if error.fault == "caller" else 1)
