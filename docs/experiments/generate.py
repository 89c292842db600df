"""Draw the committed results again and write their numbers into README.md; nothing is played.

python docs/experiments/generate.py
"""

import re
from pathlib import Path

from discreet.experiments import paper_figures, phases
from discreet.experiments.contenders import Played, Trial
from discreet.experiments.paper_table import slopes, table, trials
from discreet.experiments.reproductions import NAMES, REPRODUCTIONS, Name, Scale, page_of
from discreet.experiments.sweep import job_of, read_runs

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
COSTS = HERE.parent / "data" / "privacy-cost.csv"
MORE = HERE.parent / "data" / "paper-table.csv"
COMMAND = "discreet reproduce {} --out docs/experiments"


def rows_of(name: Name) -> list:
    """The committed runs of a name, those of the full command alone, in its order."""
    wanted = REPRODUCTIONS[name]
    jobs = wanted.jobs(Scale())
    order = {job: place for place, job in enumerate(jobs)}
    kind = type(jobs[0])
    rows = [(job_of(kind, row), row) for row in read_runs(wanted.row, HERE / f"{name}.csv")]
    return [row for job, row in sorted(rows, key=lambda r: order.get(r[0], -1)) if job in order]


def section(name: Name) -> str:
    """A name's caption, picture and numbers, under a heading of the second level."""
    rows = rows_of(name)
    missing = len(REPRODUCTIONS[name].jobs(Scale())) - len(rows)
    page = "#" + page_of(name, rows, COMMAND.format(name)).strip()
    note = f"\n\n{missing} runs of this are still to be played." if missing else ""
    return page + note


def whole() -> str:
    """The larger table of the paper's algorithm on the synthetic problem."""
    wanted = set(trials())
    rows = [row for row in read_runs(Played, MORE) if job_of(Trial, row) in wanted]
    return "\n".join([*table(rows), "", *slopes(rows)])


def written(page: str) -> str:
    """The page with every generated part as the committed runs have it."""
    parts = {**{name: section(name) for name in NAMES}, "paper-table": whole()}
    for name, text in parts.items():
        begin, end = f"<!-- written by generate.py: {name} -->", "<!-- end -->"
        pattern = re.escape(begin) + r".*?" + re.escape(end)
        page = re.sub(pattern, lambda _, t=f"{begin}\n{text}\n{end}": t, page, flags=re.DOTALL)
    return page


def draw_costs() -> None:
    """What privacy adds to elimination's regret, for the theory page."""
    costs = phases.kept_costs(COSTS)
    place = HERE.parent / "images" / "privacy-cost"
    paper_figures.cost_figure(phases.HORIZONS, costs, phases.exponent(costs), place)


if __name__ == "__main__":
    draw_costs()
    for each in NAMES:
        found = rows_of(each)
        REPRODUCTIONS[each].draw(found, HERE / each)
        (HERE / f"{each}.md").write_text(page_of(each, found, COMMAND.format(each)), "utf-8")
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
    print(f"wrote {PAGE} and the figures beside it")
