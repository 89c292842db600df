"""What `discreet reproduce` can make: for each name what is played, drawn, tabulated and said.

Everything of one name lies in one folder: NAME.csv, a line a run; NAME.png and NAME.svg; NAME.md,
the setting and the numbers. A run that another name of the folder has played is not played again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args

from discreet import checks
from discreet.errors import InvalidArgument
from discreet.experiments import no_gap, paper, successors, tables, trust
from discreet.experiments.contenders import Played, play
from discreet.experiments.growth import DELTA, EPSILON, OCTAVES, THEORY, growth_of, growth_trials
from discreet.experiments.kernel_errors import Measured, measure, wanted
from discreet.experiments.sweep import Heard, read_runs, sweep

Name = Literal[
    "figure-alpha",
    "figure-beta",
    "table",
    "features",
    "growth",
    "no-gap",
    "successors",
    "ablation",
    "trust",
]
NAMES: tuple[Name, ...] = get_args(Name)
#: The octaves of a quick growth figure.
QUICK_OCTAVES = tuple(range(7, 12))


@dataclass(frozen=True)
class Scale:
    """How much is played: everything, or what a laptop does in minutes; `runs` overrides."""

    quick: bool = False
    runs: int | None = None

    def __post_init__(self) -> None:
        if self.runs is not None:
            checks.count("runs", self.runs)

    def number(self, full: int, quick: int) -> int:
        """A number of runs."""
        return self.runs if self.runs is not None else self.rounds(full, quick)

    def rounds(self, full: int, quick: int) -> int:
        """A number of rounds."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Reproduction:
    """One figure or table: its jobs, how they are played, its picture, its numbers, its setting."""

    title: str
    jobs: Callable[[Scale], list[Any]]
    draw: Callable[[Sequence[Any], Path], None]
    table: Callable[[Sequence[Any]], list[str]]
    setting: Callable[[Sequence[Any]], str]
    row: type[Any] = Played
    play: Callable[[Any], Any] = field(default=play)


@dataclass(frozen=True)
class Reproduced:
    """What was made: the files, by their endings, and the page's text."""

    name: str
    runs: int
    files: dict[str, str]
    page: str


def reproduce(
    name: Name,
    out: Path,
    scale: Scale,
    *,
    command: str,
    workers: int = 1,
    cluster: str | None = None,
    heard: Heard = lambda done, total, row: None,
) -> Reproduced:
    """Play what is missing of one name, draw it and write it down."""
    if name not in REPRODUCTIONS:
        raise InvalidArgument("name", f"one of {', '.join(REPRODUCTIONS)}", name)
    wanted = REPRODUCTIONS[name]
    rows = sweep(
        wanted.row,
        out / f"{name}.csv",
        wanted.jobs(scale),
        wanted.play,
        workers=workers,
        cluster=cluster,
        known=siblings(name, out),
        heard=heard,
    )
    wanted.draw(rows, out / name)
    page = page_of(name, rows, command)
    (out / f"{name}.md").write_text(page, encoding="utf-8")
    endings = ("png", "svg", "csv", "md")
    return Reproduced(
        name, len(rows), {ending: str(out / f"{name}.{ending}") for ending in endings}, page
    )


def siblings(name: Name, out: Path) -> list[Any]:
    """The rows that other names of a folder have, where they are of the same kind."""
    kind = REPRODUCTIONS[name].row
    others = (n for n in NAMES if n != name and REPRODUCTIONS[n].row is kind)
    return [row for other in others for row in read_runs(kind, out / f"{other}.csv")]


def page_of(name: Name, rows: Sequence[Any], command: str) -> str:
    """The caption of a figure with its numbers, as Markdown."""
    wanted = REPRODUCTIONS[name]
    setting = f"{wanted.setting(rows)} Made by `{command}`."
    picture = f"![{wanted.title}]({name}.png)"
    return (
        "\n\n".join([f"# {wanted.title}", picture, setting, "\n".join(wanted.table(rows))]) + "\n"
    )


# -- settings, in words


def _runs(rows: Sequence[Played]) -> str:
    """How many runs, of how many rounds, from which seed."""
    cells: dict[tuple[object, ...], int] = {}
    for row in rows:
        key = (row.problem, row.way, row.epsilon, row.delta)
        cells[key] = cells.get(key, 0) + 1
    few, many = min(cells.values()), max(cells.values())
    runs = f"{few}" if few == many else f"{few} to {many}"
    rounds = sorted({row.rounds for row in rows})
    seeds = sorted({row.seed for row in rows})
    return (
        f"T = {' and '.join(f'{n:,}' for n in rounds)}, {runs} runs of each cell "
        f"(seed {', '.join(map(str, seeds))}), the same worlds for all. Mean ± standard error "
        "over runs, in brackets how many; bands and bars are one standard error to both sides."
    )


PROTECTED = (
    "Private rows protect decision sets and rewards (joint differential privacy, one user-round "
    "replaced); α is ε and β is δ."
)
PAPERS = (
    "*As printed* is the paper's algorithm with the noise of its Lemma 2, read as a variance; "
    "*exact* is the same algorithm and tree with exact calibration; both release every round and "
    "play mean + {beta} std. *Ours* is the default: independent epochs, one release each."
)


def _figure_setting(varied: str) -> Callable[[Sequence[Played]], str]:
    def words(rows: Sequence[Played]) -> str:
        fixed = "β = 0.1" if varied == "epsilon" else "α = 1"
        return (
            f"Regret so far on the synthetic problem of the paper's Section 6 (n = 25 candidates, "
            f"Bernoulli rewards, SE kernel, 69 grid features) at {fixed}. {_runs(rows)} "
            f"{PROTECTED} {PAPERS.format(beta=0.3)} The dotted lines are uniform play and ours "
            "without privacy, the same in all panels. The paper prints no numbers for this figure."
        )

    return words


def _table_setting(rows: Sequence[Played]) -> str:
    return (
        f"The paper's Table 1: regret on three functions over their whole box, δ = 0.1. "
        f"{_runs(rows)} {PROTECTED} {PAPERS.format(beta=1)} The paper's algorithm has one SE "
        "kernel, additive for the last two functions (69, 340 and 290 grid features), and makes a "
        "new decision when 5% of the rounds were added (1% without noise), with the noise of a "
        "release every round. Without privacy printed and exact are the same. Ours learns its "
        "kernel among three for the additive functions. The dotted line is uniform play; crosses "
        "are the published means, after 10,000 rounds. They are shown, not beaten: the paper gives "
        "neither the lengthscales nor the scaling nor the β of its Table 1, and its algorithm "
        "without privacy scores 50 here on camelback where it prints 519. The problems differ."
    )


def _ablation_setting(rows: Sequence[Played]) -> str:
    return (
        "From the paper's algorithm to ours, one change at a time, δ = 0.1; the figure is at "
        f"ε = 1. {_runs(rows)} {PROTECTED} Ticks are single runs. "
        "Exact calibration; noise correlated by a BLT instead of the tree; independent epochs "
        "with sequential updates (gram encoding, rewards clipped at their range); Fourier "
        "encoding; residuals clipped at one predictive standard deviation (rewards that are coin "
        "flips are never clipped closer); the gram from the public policy instead of a noisy "
        "release, noise only on directions worth it, and a round's budget over four releases, "
        "with shorter epochs (all three where the whole box is allowed: not on the synthetic "
        "problem)."
    )


def _growth_setting(rows: Sequence[Played]) -> str:
    return (
        "Regret of our default against the number of rounds on the synthetic problem, "
        f"ε = {EPSILON:g}, δ = {DELTA:g}, decision sets and rewards protected, with a trusted "
        f"custodian (joint) and without (local). {_runs(rows)} Thin dashed lines: as fast as the "
        "theory allows from "
        "the first point on. Exponents by least squares over the last octaves, jackknife errors."
    )


def _no_gap_setting(rows: Sequence[Played]) -> str:
    return (
        "Regret against the number of rounds on camelback over its whole box, where actions come "
        f"as near to the best as one likes, ε = {EPSILON:g}, δ = {DELTA:g}, the paper's algorithm "
        "(tree, exact calibration, a tuned constant), elimination as proven, and our default; "
        f"rewards protected, actions are public. {_runs(rows)} Dotted: what is proven, at every T, "
        "for elimination and for the paper's algorithm played with its proven width; both theorems "
        "promise an exponent of 0.5 up to logarithms, elimination's with the cost of privacy added "
        "and the paper's with it multiplied. Exponents by least squares over the last octaves."
    )


def _successors_setting(rows: Sequence[Played]) -> str:
    return (
        "What was published after the paper, beside it, elimination and our default, "
        f"ε = {EPSILON:g}, δ = {DELTA:g} for all, each calibrated exactly. *Private covariance* is "
        "after Pavlovic, Zhao and Salgia (2025): batches, joint. *Private rewards* is after Zhou "
        "and Tan (2021): GP-UCB on rewards with Laplace noise, local, plainly and with medians of "
        "means. Both are in our words, as far as their abstracts go, with constants of our own "
        "that were the best of a few on other seeds; their theorems are not those of what is "
        "played here. *Ours, local* has no trusted party either (hollow marks). What is protected "
        "differs on the synthetic problem: private rewards publishes candidates and actions. "
        f"{_runs(rows)}"
    )


def _draw_successors(rows: Sequence[Any], path: Path) -> None:
    _draw("successor_figure")(successors.grown(rows), path)


def _no_gap_table(rows: Sequence[Played]) -> list[str]:
    found = no_gap.grown(rows)
    return tables.promise_table(found, no_gap.promised(found[0].rounds))


def _draw_no_gap(rows: Sequence[Any], path: Path) -> None:
    found = no_gap.grown(rows)
    _draw("promise_figure")(found, no_gap.promised(found[0].rounds), path)


def _features_setting(rows: Sequence[Measured]) -> str:
    return (
        "Largest error of the kernel over the domain against the number of features: SE kernel of "
        "lengthscale 1 on the ball of radius 2, d = 2 (the synthetic problem). Solid: the largest "
        "error found over 20,000 pairs of points and by ascent from the worst 16; dashed: the "
        "proven bound, which must lie above. Each point is the smallest map whose bound is "
        f"below a wanted error (seed {rows[0].seed}); random maps for errors below 1/16 take "
        "thousands of features and are left out."
    )


def _trust_setting(rows: Sequence[Played]) -> str:
    return (
        "Regret of our default for four ways to trust: a custodian who sees answers "
        f"(joint, ε = {trust.EPSILON:g}, δ = {trust.DELTA:g}), a shuffler who mixes reports that "
        f"it cannot read (ε = {trust.EPSILON:g}, δ = {trust.DELTA:g}), nobody "
        f"(local, ε = {trust.EPSILON:g}, δ = 0), and no privacy at all; decision sets, contexts "
        f"and rewards are protected. {_runs(rows)}"
    )


# -- what there is


def _ablation_jobs(scale: Scale) -> list[Any]:
    rounds = (
        scale.rounds(paper.FIGURE_ROUNDS, 256),
        scale.rounds(paper.TABLE_ROUNDS, 1000),
    )
    levels = (1.0,) if scale.quick else paper.LEVELS[1:]
    return list(paper.ablation_trials(scale.number(6, 3), rounds, levels=levels))


def _octaves(rows: Sequence[Played]) -> tuple[int, ...]:
    return OCTAVES if rows[0].rounds == 1 << OCTAVES[-1] else QUICK_OCTAVES


def _growth_table(rows: Sequence[Played]) -> list[str]:
    found = [growth_of(rows, model, octaves=_octaves(rows)) for model in THEORY]
    return tables.growth_table(found)


def _draw(name: str, *before: object) -> Callable[..., None]:
    """A figure of `paper_figures`, which loads matplotlib when something is drawn."""

    def draw(rows: Sequence[Any], *more: object) -> None:
        figures = import_module("discreet.experiments.paper_figures")
        getattr(figures, name)(rows, *before, *more)

    return draw


def _draw_growth(rows: Sequence[Any], path: Path) -> None:
    found = [growth_of(rows, model, octaves=_octaves(rows)) for model in THEORY]
    _draw("growth_figure")(found, path)


REPRODUCTIONS: dict[Name, Reproduction] = {
    "figure-alpha": Reproduction(
        "Regret at four levels of α",
        lambda s: list(paper.alpha_trials(s.number(20, 4), s.rounds(paper.FIGURE_ROUNDS, 256))),
        _draw("curves_figure", "epsilon"),
        lambda rows: tables.level_table(rows, "epsilon"),
        _figure_setting("epsilon"),
    ),
    "figure-beta": Reproduction(
        "Regret at four levels of β",
        lambda s: list(paper.beta_trials(s.number(20, 4), s.rounds(paper.FIGURE_ROUNDS, 256))),
        _draw("curves_figure", "delta"),
        lambda rows: tables.level_table(rows, "delta"),
        _figure_setting("delta"),
    ),
    "table": Reproduction(
        "Regret on three functions",
        lambda s: list(paper.table_trials(s.number(10, 2), s.rounds(paper.TABLE_ROUNDS, 1000))),
        _draw("table_figure"),
        tables.regret_table,
        _table_setting,
    ),
    "features": Reproduction(
        "Kernel error against features",
        lambda s: list(wanted(quick=s.quick)),
        _draw("features_figure"),
        tables.feature_table,
        _features_setting,
        Measured,
        measure,
    ),
    "growth": Reproduction(
        "Growth of regret",
        lambda s: list(growth_trials(s.number(8, 4), QUICK_OCTAVES if s.quick else OCTAVES)),
        _draw_growth,
        _growth_table,
        _growth_setting,
    ),
    "no-gap": Reproduction(
        "Growth of regret without a gap",
        lambda s: list(
            no_gap.no_gap_trials(
                s.number(6, 2), no_gap.QUICK_OCTAVES if s.quick else no_gap.OCTAVES
            )
        ),
        _draw_no_gap,
        _no_gap_table,
        _no_gap_setting,
    ),
    "successors": Reproduction(
        "The paper's successors",
        lambda s: list(successors.successor_trials(s.number(6, 2), quick=s.quick)),
        _draw_successors,
        successors.successor_table,
        _successors_setting,
    ),
    "ablation": Reproduction(
        "From the paper's algorithm to ours",
        _ablation_jobs,
        _draw("ablation_figure"),
        tables.ablation_table,
        _ablation_setting,
    ),
    "trust": Reproduction(
        "What trust is worth",
        lambda s: list(trust.trust_trials(s.number(4, 2), s.rounds(4096, 1024))),
        _draw("trust_figure"),
        trust.trust_table,
        _trust_setting,
        play=trust.play_trust,
    ),
}
