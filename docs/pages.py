"""The examples of a page, run in order as a reader would.

A ```python block runs in the namespace of its page. A ```text block after it is what it prints,
word for word; under `<!-- numbers vary -->`, in which only numbers may differ. A line of a shell
block that begins with `discreet` is a command. `python docs/pages.py` runs the pages whose
numbers vary and keeps the pictures and the numbers of that run.
"""

import io
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, fill

from discreet.cli.program import app

DOCS = Path(__file__).parent
SHELLS = ("", "sh", "console")
#: Commands that take no time: they are run, too.
CHEAP = {"inspect"}
#: Longer lines of what a page shows are folded.
WIDTH = 110
VARIES = "<!-- numbers vary -->"
FENCE = re.compile(
    r"^(?P<before>[^\n]*)\n(?P<margin> *)```(?P<language>[\w{}-]*)\n(?P<text>.*?)^(?P=margin)```$",
    re.MULTILINE | re.DOTALL,
)
#: Under the heading of a table: as long as its numbers take.
RULE = re.compile("─+")
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, and whether the numbers in it may differ."""

    language: str
    text: str
    varies: bool

    @property
    def commands(self) -> list[list[str]]:
        """The words of each `discreet ...` line."""
        if self.language not in SHELLS:
            return []
        lines = self.text.replace("\\\n", " ").splitlines()
        found = [line.removeprefix("$ ") for line in lines]
        return [shlex.split(line, comments=True) for line in found if line.startswith("discreet ")]

    def shows(self, printed: str) -> bool:
        """Whether this block is what was printed; line breaks are the page's own."""
        shown, printed = " ".join(self.text.split()), " ".join(printed.split())
        if not self.varies:
            return shown == printed
        shown, printed = (RULE.sub("─", text) for text in (shown, printed))
        form = re.compile(NUMBER.pattern.join(map(re.escape, NUMBER.split(shown))))
        return form.fullmatch(printed) is not None


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page."""
    return [
        Block(found["language"], dedent(found["text"]), found["before"].strip() == VARIES)
        for found in FENCE.finditer(page.read_text(encoding="utf-8"))
    ]


def run(page: Path) -> Iterator[tuple[Block, str, dict[str, object]]]:
    """Every block in order, what it printed when it was run, and the page's names so far."""
    names: dict[str, object] = {"__name__": page.stem}
    for block in blocks(page):
        with redirect_stdout(io.StringIO()) as printed:
            if block.language == "python":
                exec(compile(block.text, page.name, "exec"), names)  # noqa: S102
            for words in block.commands:
                if words[1] in CHEAP:
                    app(words[1:], prog_name="discreet", standalone_mode=False)
        yield block, printed.getvalue(), names


def folded(printed: str) -> str:
    """What was printed, in lines that a page has room for."""
    lines = (
        fill(line, WIDTH) if len(line) > WIDTH else line.rstrip() for line in printed.split("\n")
    )
    return "\n".join(lines)


def refresh(page: Path) -> None:
    """Run a page, and keep what it drew and the numbers of that same run."""
    text, said = page.read_text(encoding="utf-8"), ""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for block, printed, _ in run(page):
            if block.varies:
                text = text.replace(f"```text\n{block.text}```", f"```text\n{said}```")
            said = folded(printed)
        for drawn in Path().glob("*.png"):
            shutil.copy(drawn, DOCS / "images" / drawn.name)
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for tutorial in sorted(DOCS.glob("*.md")):
        if VARIES in tutorial.read_text(encoding="utf-8"):
            refresh(tutorial)
            print(f"ran {tutorial}")
