"""`discreet audit`: try to break the promise."""

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from discreet.cli.choices import AsJson
from discreet.cli.console import shown


def audit_command(
    draws: Annotated[
        int, typer.Option(min=30_000, help="Releases drawn in each world of each game.")
    ] = 100_000,
    as_json: AsJson = False,
) -> None:
    """Play the distinguishing game against every mechanism, and against broken ones.

    Fails (exit code 1) when a mechanism leaks more than it claims, when the audit sees less than
    0.85 of a claim, or when a control is not caught.

    Example: discreet audit --json
    """
    from discreet.audit.contest import verdict
    from discreet.audit.games import audit

    with shown(Progress(console=Console(stderr=True))) as bar:
        task = bar.add_task("audit", total=None)
        findings = audit(draws, advance=lambda name: bar.update(task, description=name))
    passed = verdict(findings)
    if as_json:
        rows = [{**asdict(finding), "passed": finding.passed} for finding in findings]
        typer.echo(json.dumps({"passed": passed, "draws": draws, "findings": rows}))
    else:
        title = (
            "shown: a lower bound on mu; of clients that send an index, on epsilon; "
            "of shufflers, on delta"
        )
        table = Table("game", "claimed", "shown", "", title=title)
        for finding in findings:
            word = (
                ("caught" if finding.passed else "MISSED")
                if finding.control
                else ("passed" if finding.passed else "FAILED")
            )
            row = (finding.name, f"{finding.claim:.3f}", f"{finding.lower_bound:.3f}", word)
            table.add_row(*row)
        Console().print(table)
    if not passed:
        raise typer.Exit(1)
