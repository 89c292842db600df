"""The rooms of the house as a picture: the layers of the import contract, drawn as plain SVG."""

import ast
import textwrap
import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "discreet"
WIDTH, MARGIN, LINE, GAP = 960, 12, 17, 8
STYLE = (
    "text{font:13px sans-serif;fill:#1a1a1a}.room{font-weight:bold;font-size:15px}"
    ".files{fill:#4a4a4a;font-size:12px}rect{fill:#eef3f8;stroke:#2b5d8a;stroke-width:1}"
    "rect.sees{fill:#fbeee6;stroke:#b34700;stroke-width:2}"
    "rect.later{fill:#fff;stroke:#999;stroke-dasharray:5 4}"
)
#: Rooms that see people's answers, in the study they are of.
SENSITIVE = {"trusted", "bandit"}


def layers() -> list[list[str]]:
    """The rooms of each layer, the topmost first; those not built yet in parentheses."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    rooms = next(each for each in contracts["contracts"] if each["id"] == "rooms")
    return [[room.strip() for room in layer.split("|")] for layer in rooms["layers"]]


def sentence(room: str) -> str:
    """What is written over the door: the first line of the docstring."""
    package = SOURCE / room / "__init__.py"
    file = package if package.exists() else SOURCE / f"{room}.py"
    return (ast.get_docstring(ast.parse(file.read_text())) or "").splitlines()[0]


def files(room: str) -> list[str]:
    """The modules of a room."""
    return sorted(f.stem for f in (SOURCE / room).glob("[!_]*.py"))


def drawn() -> str:
    """The picture, as the text of an SVG file."""
    y, shapes = MARGIN, []
    for layer in layers():
        wide = (WIDTH - 2 * MARGIN - GAP * (len(layer) - 1)) / len(layer)
        texts = [_lines(room, wide) for room in layer]
        high = LINE * max(len(text) for text in texts) + 14
        for place, (room, text) in enumerate(zip(layer, texts, strict=True)):
            shapes.append(_room(room, text, MARGIN + place * (wide + GAP), y, wide, high))
        y += high + GAP
    size = f'viewBox="0 0 {WIDTH} {y + 4}" width="{WIDTH}" height="{y + 4}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{STYLE}</style>'
    ground = f'<rect width="{WIDTH}" height="{y + 4}" style="fill:#fff;stroke:none"/>'
    return "\n".join([head, ground, *shapes, "</svg>"]) + "\n"


def _lines(room: str, wide: float) -> list[tuple[str, str]]:
    """The class and words of each line in a room."""
    if room.startswith("("):
        return [("room", f"{room.strip('()')}: not built yet")]
    letters = int(wide / 7.2)
    words = textwrap.wrap(sentence(room), letters)
    listed = textwrap.wrap(", ".join(files(room)), int(letters * 1.06))
    return [("room", room), *(("", line) for line in words), *(("files", line) for line in listed)]


def _room(
    room: str, text: list[tuple[str, str]], x: float, y: float, wide: float, high: float
) -> str:
    kind = "later" if room.startswith("(") else "sees" if room in SENSITIVE else "room"
    box = f'<rect class="{kind}" x="{x:.0f}" y="{y:.0f}" width="{wide:.0f}" height="{high:.0f}"'
    rows = ""
    for place, (style, words) in enumerate(text):
        where = f'x="{x + 10:.0f}" y="{y + 20 + LINE * place:.0f}"'
        rows += f'<text class="{style}" {where}>{escape(words)}</text>'
    return f'{box} rx="6"/>{rows}'
