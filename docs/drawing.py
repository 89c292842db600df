"""The life of a round as a picture: the table of `discreet.protocol.rounds`, drawn as plain SVG."""

from collections.abc import Sequence

from discreet.protocol.rounds import TABLE, Step

#: The middle of each state's box; the dot is where a round begins.
PLACES = {
    "": (30, 150),
    "offered": (170, 150),
    "chosen": (420, 150),
    "reported": (650, 150),
    "abandoned": (295, 40),
    "expired": (295, 270),
}
HALF_WIDTH, HALF_HEIGHT = 52, 18
#: An arrow that would run through another state bends by so much.
BENDS = {("offered", "reported"): 70}
STYLE = (
    "text{font:14px sans-serif;text-anchor:middle;fill:#1a1a1a}"
    ".event{font-size:12px;font-style:italic;stroke:#fff;stroke-width:4;paint-order:stroke}"
    "rect.state{fill:#eef3f8;stroke:#2b5d8a;stroke-width:1.5}"
    "rect.end{stroke-width:3}path{fill:none;stroke:#555;stroke-width:1.5}"
)
HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
    'orient="auto"><path d="M0,0 L8,4 L0,8 z" style="fill:#555;stroke:none"/></marker>'
)


def drawn(table: Sequence[Step] = TABLE) -> str:
    """The picture, as the text of an SVG file."""
    ends = {step.then for step in table} - {step.state for step in table}
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 310" width="720" height="310">',
        f"<style>{STYLE}</style><defs>{HEAD}</defs>",
        '<rect width="720" height="310" fill="#fff"/>',
        *(_arrow(step.state or "", step.then, step.event) for step in table),
        '<circle cx="30" cy="150" r="7" fill="#1a1a1a"/>',
        *(_state(name, is_end=name in ends) for name in PLACES if name),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _state(name: str, *, is_end: bool) -> str:
    x, y = PLACES[name]
    kind = "state end" if is_end else "state"
    box = f'x="{x - HALF_WIDTH}" y="{y - HALF_HEIGHT}" rx="8"'
    size = f'width="{2 * HALF_WIDTH}" height="{2 * HALF_HEIGHT}"'
    return f'<rect class="{kind}" {box} {size}/><text x="{x}" y="{y + 5}">{name}</text>'


def _arrow(state: str, then: str, event: str) -> str:
    (x0, y0), (x1, y1) = PLACES[state], PLACES[then]
    bend = BENDS.get((state, then), 0)
    control = ((x0 + x1) / 2, (y0 + y1) / 2 + 2 * bend)
    start, stop = _edge((x0, y0), control, state), _edge((x1, y1), control, then)
    middle = ((start[0] + stop[0]) / 2, (start[1] + stop[1] + 2 * control[1]) / 4)
    path = f"M{start[0]:.0f},{start[1]:.0f} Q{control[0]:.0f},{control[1]:.0f} "
    path += f"{stop[0]:.0f},{stop[1]:.0f}"
    label = f'<text class="event" x="{middle[0]:.0f}" y="{middle[1] + 4:.0f}">{event}</text>'
    return f'<path d="{path}" marker-end="url(#head)"/>{label}'


def _edge(of: tuple[float, float], towards: tuple[float, float], name: str) -> tuple[float, float]:
    """Where the line leaves the box of a state."""
    dx, dy = towards[0] - of[0], towards[1] - of[1]
    wide, high = (HALF_WIDTH, HALF_HEIGHT) if name else (8, 8)
    share = min(wide / abs(dx) if dx else 1.0, high / abs(dy) if dy else 1.0)
    return of[0] + share * dx, of[1] + share * dy
