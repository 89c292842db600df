"""The command line: the only place where everything is wired. A file for each command.

Exit codes: 0 done, 1 the work failed, 2 the request was wrong (one line says what to do), 130
interrupted. Whatever a command needs to compute is loaded when it runs: a shell that completes a
word waits for none of it.
"""

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer
from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs]

from discreet.cli.audit import audit_command
from discreet.cli.demo import demo_command
from discreet.cli.forecast import forecast_command
from discreet.cli.inspect import inspect_command
from discreet.cli.replay import replay_command
from discreet.cli.reproduce import reproduce_command
from discreet.cli.simulate import simulate_command
from discreet.cli.theory import theory_command
from discreet.errors import DiscreetError, JournalFailed

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None, add_completion=True)
app.command("audit")(audit_command)
app.command("demo")(demo_command)
app.command("forecast")(forecast_command)
app.command("inspect")(inspect_command)
app.command("replay")(replay_command)
app.command("reproduce")(reproduce_command)
app.command("simulate")(simulate_command)
app.command("theory")(theory_command)

#: For libraries that are loaded later than the limit below is set.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
INTERRUPTED = 130


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
    """Run a command; whatever goes wrong becomes one line and an exit code."""
    os.environ.update((name, "1") for name in THREADS)
    if "_DISCREET_COMPLETE" in os.environ:
        os.environ["COLUMNS"] = "1000"  # a shell takes a line for each word: no help may be broken
    given = sys.argv[1:] if arguments is None else list(arguments)
    with threadpool_limits(1):
        sys.exit(run(given or ["--help"]))


def run(arguments: list[str]) -> int:
    """The exit code of a command, once its error, if there is one, is said."""
    try:
        code: object = app(arguments, prog_name="discreet", standalone_mode=False)
    except typer.TyperException as error:
        return failed(f"{error.format_message()}{_where(error)}", error.exit_code)
    except DiscreetError as error:
        wrong = error.fault != "state" and not isinstance(error, JournalFailed)
        return failed(str(error), 2 if wrong else 1)
    except (OSError, MemoryError) as error:
        return failed(str(error) or "out of memory", 1)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    if code == INTERRUPTED:
        return failed("interrupted", INTERRUPTED)
    return code if isinstance(code, int) else 0


def failed(message: str, code: int) -> int:
    """Say on one line what went wrong."""
    typer.echo(f"discreet: {' '.join(message.split())}", err=True)
    return code


def _where(error: typer.TyperException) -> str:
    """Where to read on, for a request that typer could not read."""
    context: typer.Context | None = getattr(error, "ctx", None)
    return "" if context is None else f" (see {context.command_path} --help)"
