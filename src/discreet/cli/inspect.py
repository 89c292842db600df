"""`discreet inspect`: what studies promised, spent and learnt, from their exports or journals."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from discreet.cli.budgets import budget, budget_words, together, together_words
from discreet.cli.choices import AsJson
from discreet.cli.console import check_picture, in_words, print_whole, rounded_up
from discreet.errors import InvalidArgument

if TYPE_CHECKING:  # heavy: loaded when used
    from discreet.domain.box import Box
    from discreet.frames.table import Table as PublicTable
    from discreet.learning.study import Study, Value
    from discreet.protocol.archive import Archive

#: How many epochs a table shows.
ROWS = 24
#: Releases that vary more than predicted by this factor are mentioned.
NOTABLE = 1.1


def inspect_command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="An export, or the journal of any role. Several: what they cost together the "
            "people who take part in all of them.",
        ),
    ],
    context: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Where the domain has a context: what is best under this one; repeat it for each "
            "name.  [a few of them]",
        ),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Draw what was learnt: a .png, .svg or .pdf.")
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(help="Write epochs and releases: a .csv, or with pyarrow a .parquet."),
    ] = None,
    posterior: Annotated[
        Path | None,
        typer.Option(help="Write mean reward and interval at public points, in the same formats."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What a study promised, spent and learnt, from its export or its journal.

    Only what is public is read: the plan, the epochs and the releases, as in an export. Nothing is
    written, drawn or released, and a study that is running goes on undisturbed.

    Example: discreet inspect study.json --figure study.png

    Example: discreet inspect study.db --context age=61

    Example: discreet inspect study.db --table epochs.csv --posterior posterior.csv

    Example: discreet inspect spring.json autumn.db
    """
    from discreet.frames.table import check_suffix
    from discreet.protocol.archive import read_archive

    tables = {"--table": table, "--posterior": posterior}
    if len(paths) > 1:
        for option, value in {"--context": context, "--figure": figure, **tables}.items():
            if value is not None:
                raise InvalidArgument(option, "one study")
        return several(paths, as_json=as_json)
    for option, place in tables.items():
        if place is not None:
            check_suffix(option, place)
    (path,) = paths
    if figure is not None:
        check_picture(figure)
    archive = read_archive(path)
    contexts = chosen_contexts(archive.study, context)
    found = dossier(archive, contexts)
    if figure is not None:
        if not found["best"]:
            raise InvalidArgument("--figure", "a study that has released something")
        from discreet.cli.figures import study_figure

        study_figure(archive, contexts[len(contexts) // 2], figure)
    write_tables(archive.study, table, posterior, learnt=bool(found["best"]))
    if as_json:
        shown = None if figure is None else str(figure)
        typer.echo(json.dumps({"path": str(path), **found, "figure": shown}))
        return
    show(found)
    for name, written in (("Figure", figure), ("Table", table), ("Posterior", posterior)):
        if written is not None:
            typer.echo(f"{name}: {written}")


def write_tables(
    study: "Study", table: Path | None, posterior: Path | None, *, learnt: bool
) -> None:
    """What is public, as files for other programs."""
    if posterior is not None and not learnt:
        raise InvalidArgument("--posterior", "a study that has released something")
    if table is not None:
        save_table(study.to_frame(), "--table", table)
    if posterior is not None:
        save_table(study.predict(), "--posterior", posterior)


def save_table(table: "PublicTable", option: str, path: Path) -> None:
    """Write a table, or say why it could not be written."""
    try:
        table.save(path)
    except OSError as error:
        raise InvalidArgument(
            option, f"a file that can be written ({error.strerror})", str(path)
        ) from None


def several(paths: list[Path], *, as_json: bool) -> None:
    """What several studies cost the people who take part in all of them."""
    from discreet.protocol.archive import read_archive

    if len({path.resolve() for path in paths}) < len(paths):
        raise InvalidArgument("PATH", "each study once")
    found = together({str(path): read_archive(path) for path in paths})
    for line in [json.dumps(found)] if as_json else together_words(found):
        typer.echo(line)


# -- what is public, as plain data


def dossier(archive: "Archive", contexts: "list[dict[str, Value] | None]") -> dict[str, Any]:
    """Everything that is said about a study, ready for JSON."""
    from discreet.learning.study import Study

    study = archive.study
    plan = study.plan
    learnt = bool(study.releases) or (plan.prior is not None and archive.source != "client")
    return {
        "source": archive.source,
        "simulated": archive.study.is_simulated,
        "name": plan.name,
        "digest": plan.digest,
        "horizon": plan.horizon,
        "rewards": list(plan.rewards),
        "decisions": plan.decisions,
        "encoding": plan.encoding,
        "features": plan.map.dimension,
        "kernel_error": plan.map.error_bound,
        "guarantee": archive.study.guarantee,
        "budget": budget(study),
        "running": study.is_running,
        "released_asks": sum(release.asks for release in study.releases),
        "epochs": study.to_frame().rows,
        "best": [best_row(study, each) for each in contexts] if learnt else [],
        "structures": study.structures if study.releases and len(plan.domain.names) > 1 else {},
        "needed_contexts": study.needed_contexts if study.releases else {},
        "needed_contexts_at_first": Study(plan).needed_contexts,
        "holds_back": study.holds_back,
        "misfit": study.misfit,
        "certificate": None if study.certificate is None else asdict(study.certificate),
    }


def best_row(study: "Study", context: "dict[str, Value] | None") -> dict[str, Any]:
    """The highest posterior mean under a context, and its interval."""
    best = study.best(context=context)
    return {
        "context": context,
        "action": best.action,
        "mean": best.mean,
        "interval": list(best.interval),
    }


# -- contexts


def chosen_contexts(study: "Study", given: list[str] | None) -> "list[dict[str, Value] | None]":
    """The contexts to say what is best under: those given, or a few.

    These differ in the context that is likeliest to matter; others are in the middle.
    """
    domain = study.plan.domain
    if not domain.has_context:
        if given:
            raise InvalidArgument("--context", "nothing: the domain has no context")
        return [None]
    if given:
        return [read_context(domain, given)]
    name = next(iter(study.needed_contexts), domain.context[0])
    if name not in domain.discrete:
        return [_decoded(domain, name, share) for share in (0.0, 0.5, 1.0)]
    settings = domain.settings(name)
    rows = settings if len(settings) <= 6 else settings[[0, len(settings) // 2, -1]]
    return [_decoded(domain, name, row) for row in rows]


def read_context(domain: "Box", given: list[str]) -> "dict[str, Value]":
    """NAME=VALUE for each coordinate of the context."""
    from discreet.domain.box import Categorical

    found: dict[str, Value] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if name not in domain.context or not equals:
            raise InvalidArgument("--context", f"NAME=VALUE for {', '.join(domain.context)}", pair)
        if isinstance(domain.coordinate(name), Categorical):
            found[name] = text
            continue
        try:
            found[name] = float(text)
        except ValueError:
            raise InvalidArgument("--context", f"a number for {name}", text) from None
    domain.encode_context(found)
    return found


def _decoded(domain: "Box", varied: str, columns: Any) -> "dict[str, Value]":
    """The context with these columns of one that varies, the others in the middle."""
    import numpy as np

    row = np.full(domain.dimension, 0.5)
    row[list(domain.columns(varied))] = columns
    return {name: value for name, value in domain.decode(row).items() if name in domain.context}


# -- for people


def show(found: dict[str, Any]) -> None:
    """The study in words and tables."""
    source = "an export" if found["source"] == "export" else f"the journal of a {found['source']}"
    typer.echo(f"Study {found['name']!r}: {source}.")
    typer.echo(
        f"Rewards in [{found['rewards'][0]:g}, {found['rewards'][1]:g}], {found['encoding']} "
        f"encoding, {found['features']} features, kernel error at most "
        f"{rounded_up(found['kernel_error'])}."
    )
    typer.echo(f"\n{found['guarantee']}\n")
    for line in budget_words(found):
        typer.echo(line)
    if found["source"] == "client":
        typer.echo("A client's journal is one person's: beyond the plan, nothing in it is public.")
        return
    print_whole(epoch_table(found))
    if not found["best"]:
        typer.echo("Nothing is released yet: nothing is learnt.")
    if found["structures"]:
        shares = [f"{words} ({share:.0%})" for words, share in found["structures"].items()]
        typer.echo(f"What the releases say of the function: {', '.join(shares)}.")
    if found["needed_contexts"]:
        shares = [f"{name} ({share:.0%})" for name, share in found["needed_contexts"].items()]
        first = next(iter(found["needed_contexts_at_first"].values()))
        before = f"Before any release: {first:.0%}."
        typer.echo(f"How likely each context matters: {', '.join(shares)}. {before}")
    if found["holds_back"]:
        typer.echo(
            "Nothing that was learnt is surely better than first actions: these are given out. "
            "More people or a larger epsilon would change that."
        )
    if found["misfit"] > NOTABLE:
        wider = found["misfit"] ** 0.5 - 1.0
        typer.echo(f"Releases surprised: intervals are {wider:.0%} wider than the model says.")
    for best in found["best"]:
        low, high = best["interval"]
        under = "" if best["context"] is None else f" under {in_words(best['context'])}"
        free = {k: v for k, v in best["action"].items() if k not in (best["context"] or {})}
        what = "Not surely the best action" if found["holds_back"] else "Best action"
        typer.echo(
            f"{what}{under}: {in_words(free)}; mean reward {best['mean']:.3f} "
            f"(95% interval {low:.3f} to {high:.3f})"
        )
    if found["certificate"] is not None:
        typer.echo(certified(found["certificate"]))


def certified(found: dict[str, Any]) -> str:
    """What elimination proves, in a sentence."""
    return (
        f"Certified with probability {1.0 - found['failure']:g}: no action is better than this one "
        f"by more than {found['gap']:.3f}; {found['active']:,} of {found['arms']:,} arms may be "
        f"best; {found['asks']:,} asks cost at most {found['regret']:,.0f} in all."
    )


def epoch_table(found: dict[str, Any]) -> Table:
    """The epochs, the middle ones left out where there are many."""
    released = sum(row["released"] for row in found["epochs"])
    running = "1 open" if found["running"] else "none open"
    table = Table(
        title=f"{released} epochs released with {found['released_asks']:,} asks, {running}",
        caption="Clipped at: rewards, around what was predicted. Noise: the standard deviation on "
        "each sum of rewards.",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    for heading in ("epoch", "asks", "released", "clipped at", "noise"):
        table.add_column(heading, justify="right")
    table.add_column("")
    rows = found["epochs"]
    for at, row in enumerate(rows):
        if len(rows) <= ROWS or at < 3 or at >= len(rows) - ROWS + 4:
            table.add_row(*epoch_words(row))
        elif at == 3:
            table.add_row("...")
    return table


def epoch_words(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of the table."""
    last = row["first"] + row["length"] - 1
    reports = "" if row["reports"] is None else f", {row['reports']:,} reports"
    return (
        str(row["number"]),
        f"{row['first']:,} to {last:,}",
        "open" if row["asks"] is None else f"{row['asks']:,}{reports}",
        f"±{row['width']:.3g}",
        f"{row['noise_std']:.3g}",
        "fills the domain" if row["fills_the_domain"] else "",
    )
