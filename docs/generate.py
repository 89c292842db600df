"""Write what is generated: docs/cli.md, docs/theory-example.md, protocol tables, pictures."""

import io
import sys
from contextlib import redirect_stdout
from pathlib import Path

import typer.main

sys.path.insert(0, str(Path(__file__).parent))

import drawing
import rooms

from discreet.cli.program import app
from discreet.protocol import epochs
from discreet.protocol.rounds import TABLE

DRAWING = Path(__file__).parent / "images" / "round.svg"
ROOMS = Path(__file__).parent / "images" / "rooms.svg"
PAGE = Path(__file__).parent / "cli.md"
PROTOCOL = Path(__file__).parent / "protocol.md"
THEORY = Path(__file__).parent / "theory-example.md"
EXAMPLE = Path(__file__).parent / "examples" / "elimination.toml"
BEGIN = "<!-- written by make docs: the table of discreet.protocol.{} -->"
END = "<!-- end -->"


def reference() -> str:
    """Every command's own help, in order."""
    group = typer.main.get_command(app)
    pages = ["# The command line", "", "Written by `make docs` from the commands' own help.", ""]
    for name in ["", *sorted(group.commands)]:
        heading = f"discreet {name}".strip()
        with redirect_stdout(io.StringIO()) as captured:
            group.main(
                [*([name] if name else []), "--help"],
                prog_name="discreet",
                standalone_mode=False,
                terminal_width=88,
            )
        text = "\n".join(line.rstrip() for line in captured.getvalue().strip().splitlines())
        pages += [f"## {heading}", "", "```", text, "```", ""]
    return "\n".join(pages)


def theory() -> str:
    """What `discreet theory` says of the example plan."""
    with redirect_stdout(io.StringIO()) as captured:
        typer.main.get_command(app).main(
            ["theory", "--plan", str(EXAMPLE)], prog_name="discreet", standalone_mode=False
        )
    text = "\n".join(line.rstrip() for line in captured.getvalue().strip().splitlines())
    return "\n".join(
        [
            "# The theory of a plan, in numbers",
            "",
            "Written by `make docs`. `discreet theory --plan docs/examples/elimination.toml` says:",
            "",
            "```",
            text,
            "```",
            "",
            "[The theory](theory.md) has the theorems.",
            "",
        ]
    )


def life_of_a_round() -> str:
    """The life of a round, as a picture and as a table."""
    rows = [
        f"| {step.state or ''} | {step.event} | {step.then} | {', '.join(step.seen_by)} |"
        for step in TABLE
    ]
    picture = f"![The states of a round; the table below says the same](images/{DRAWING.name})"
    head = ["| state | event | then | seen by |", "|---|---|---|---|"]
    return "\n".join([picture, "", *head, *rows])


def life_of_an_epoch() -> str:
    """The life of an epoch, as a table."""
    rows = [f"| {step.state or ''} | {step.event} | {step.then} |" for step in epochs.TABLE]
    return "\n".join(["| state | event | then |", "|---|---|---|", *rows])


def protocol(page: str) -> str:
    """The page with the tables as they are now."""
    for name, text in (("rounds", life_of_a_round()), ("epochs", life_of_an_epoch())):
        before, begin, rest = page.partition(BEGIN.format(name))
        _, end, after = rest.partition(END)
        page = f"{before}{begin}\n{text}\n{end}{after}"
    return page


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
    THEORY.write_text(theory(), encoding="utf-8")
    PROTOCOL.write_text(protocol(PROTOCOL.read_text(encoding="utf-8")), encoding="utf-8")
    DRAWING.write_text(drawing.drawn(), encoding="utf-8")
    ROOMS.write_text(rooms.drawn(), encoding="utf-8")
    print(f"wrote {PAGE}, {PROTOCOL}, {DRAWING} and {ROOMS}")
