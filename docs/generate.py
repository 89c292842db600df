"""Write the generated pages: docs/cli.md, the reference of every command."""

import io
from contextlib import redirect_stdout
from pathlib import Path

import typer.main

from discreet.cli import app

PAGE = Path(__file__).parent / "cli.md"


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


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
    print(f"wrote {PAGE}")
