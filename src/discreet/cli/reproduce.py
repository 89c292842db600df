"""`discreet reproduce`: the paper's figures and table, and where they are beaten."""

import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from discreet.cli.choices import AsJson
from discreet.errors import InvalidArgument

if TYPE_CHECKING:  # heavy: loaded when used
    from discreet.experiments.reproductions import Name, Reproduced, Scale


def reproduce_command(
    name: Annotated[
        Literal[
            "figure-alpha",
            "figure-beta",
            "table",
            "features",
            "growth",
            "no-gap",
            "successors",
            "ablation",
            "trust",
            "all",
        ],
        typer.Argument(help="Which figure or table; all of them."),
    ],
    out: Annotated[Path, typer.Option(help="The folder to write to, and to go on from.")] = Path(
        "reproduced"
    ),
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer runs and rounds: minutes on a laptop.")
    ] = False,
    runs: Annotated[
        int | None, typer.Option(min=2, help="Runs of each cell, instead of the usual number.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Local processes; by default one for each core.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="The address of a Dask scheduler to play on instead.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play, draw and tabulate what the paper shows, its printed noise and our default beside it.

    Writes NAME.png, NAME.svg, NAME.csv and NAME.md. A finished run is a line of the CSV at once:
    stop when you like, and the same command goes on.

    Example: discreet reproduce all --quick --out reproduced
    """
    make_folder(out)
    from discreet.experiments.reproductions import NAMES, Scale

    begun, made = time.monotonic(), list["Reproduced"]()
    for each in NAMES if name == "all" else (name,):
        made.append(one(each, out, Scale(quick, runs), workers or os.cpu_count() or 1, cluster))
        if not as_json:
            typer.echo(made[-1].page)
    if as_json:
        seconds = round(time.monotonic() - begun, 1)
        results = [asdict(each) for each in made]
        typer.echo(json.dumps({"quick": quick, "seconds": seconds, "reproduced": results}))
        return
    for each in made:
        typer.echo(f"{each.name}: {', '.join(each.files.values())}")


def make_folder(out: Path) -> None:
    """Make the folder, or refuse one that cannot be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidArgument("--out", f"a folder that can be written ({error.strerror})") from None
    if not os.access(out, os.W_OK):
        raise InvalidArgument("--out", "a folder that can be written", str(out))


def one(name: "Name", out: Path, scale: "Scale", workers: int, cluster: str | None) -> "Reproduced":
    """Reproduce one name under a progress bar of runs on the error stream."""
    from discreet.experiments.reproductions import reproduce

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TextColumn("runs"), TimeElapsedColumn(), console=Console(stderr=True)
    ) as bar:
        task = bar.add_task(name, total=None)

        def heard(done: int, total: int, row: object) -> None:
            bar.update(task, completed=done, total=total)

        return reproduce(
            name,
            out,
            scale,
            command=command_of(name, out, scale),
            workers=workers,
            cluster=cluster,
            heard=heard,
        )


def command_of(name: "Name", out: Path, scale: "Scale") -> str:
    """The command that makes the same files; how many workers play does not show in them.

    >>> from discreet.experiments.reproductions import Scale
    >>> command_of("table", Path("here"), Scale(quick=True))
    'discreet reproduce table --out here --quick'
    """
    quick = " --quick" if scale.quick else ""
    runs = "" if scale.runs is None else f" --runs {scale.runs}"
    return f"discreet reproduce {name} --out {out}{quick}{runs}"
