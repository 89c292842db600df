"""Documentation that cannot drift: examples run, commands parse, generated pages are current."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest
import typer.main
from tests.support.places import ROOT

import discreet
from discreet.cli.program import app

DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^]]*)\]\((?P<target>[^)\s]+)\)")


def load(name: str):
    """A module of docs/, which is no package."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


pages, docstrings = load("pages"), load("docstrings")


def prose(page: Path) -> str:
    """The text of a page outside its blocks."""
    return pages.FENCE.sub("", page.read_text(encoding="utf-8"))


def named(paths: list[Path]) -> list:
    return [pytest.param(path, id=str(path.relative_to(ROOT))) for path in paths]


def parse(words: list[str]) -> None:
    """Check a command line as the command itself would, short of running it."""
    group = typer.main.get_command(app)
    context = group.make_context("discreet", words[1:], resilient_parsing=False)
    name, command, rest = group.resolve_command(context, [*context._protected_args, *context.args])
    command.make_context(name, rest, parent=context)


# -- examples


def play(page: Path) -> list:
    """Run a page here, hold it to what it shows, and give what each Python block did."""
    said, done = "", []
    for block, printed, names in pages.run(page):
        if block.language == "text":
            assert block.shows(said), f"{page.name} shows\n{block.text}\nbut it prints\n{said}"
        if block.language == "python":
            done.append((printed, names))
        said = printed
    return done


@pytest.mark.parametrize(
    "page",
    named([p for p in PAGES if p.name != "README.md" and "```python" in p.read_text("utf-8")]),
)
def test_the_examples_of_a_page_run_and_print_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert play(page)
    for drawn in tmp_path.glob("*.png"):
        assert (DOCS / "images" / drawn.name).exists(), f"run docs/pages.py to keep {drawn.name}"


def test_the_examples_of_the_readme_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (printed, _), (_, names) = play(ROOT / "README.md")
    found = re.search(r"at 60: dose (\d+\.\d)", printed)
    assert 0.0 <= float(found[1]) <= 10.0  # real noise: where exactly is left to chance
    assert names["receipt"].outcome == "counted"


def test_the_problem_that_a_page_writes_can_be_played_by_its_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    page = DOCS / "own-problems.md"
    written = next(block for block in pages.blocks(page) if block.language == "python")
    Path("clinic.py").write_text(written.text)
    commands = [words for block in pages.blocks(page) for words in block.commands]
    for words in commands:
        few = ["--rounds", "30", "--runs", "1", "--json"]
        app([*words[1:], *few], prog_name="discreet", standalone_mode=False)
        found = json.loads(capsys.readouterr().out)
        assert (found["problem"], found["rounds"]) == ("clinic:clinic", 30)
    assert len(commands) == 3
    sys.modules.pop("clinic")


def test_what_a_page_shows_is_compared():
    exact = pages.Block("text", "one release of\n106 people\n", varies=False)
    assert exact.shows("one release of 106 people\n")
    assert not exact.shows("one release of 107 people")
    varying = pages.Block("text", "best: 24.5 (1e-06)", varies=True)
    assert varying.shows("best: -3 (0.5)\n")
    assert not varying.shows("worst: 24.5 (1e-06)")
    table = pages.Block("text", "regret\n──────\n17±4\n", varies=True)
    assert table.shows("regret\n─────────\n107±22\n")
    assert not varying.shows("best: 24.5 (1e-06), and more")


# -- commands


@pytest.mark.parametrize("page", named(PAGES))
def test_the_commands_of_a_page_exist_with_these_options(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    group = typer.main.get_command(app)
    options = {name for option in group.params for name in option.opts}
    commands = [words for block in pages.blocks(page) for words in block.commands]
    inline = re.findall(r"`discreet ([^`<]+)`", prose(page))
    commands += [["discreet", *text.split()] for text in inline]
    for words in commands:
        assert words[1] in {*group.commands, *options}, words
        if words[1] not in {*pages.CHEAP, *options}:  # the cheap are run, where their files are
            parse(words)


def test_a_command_with_a_wrong_option_does_not_parse():
    parse(["discreet", "simulate", "--problem", "synthetic", "--rounds", "10"])
    for wrong in (["--prblem", "synthetic"], ["--rounds", "many"]):
        with pytest.raises(Exception, match=r"No such option|a valid integer"):
            parse(["discreet", "simulate", *wrong])


def test_the_targets_that_pages_name_are_in_the_makefile():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"(?:^|`)make ([a-z]+)(?= *(?:#|ARGS|$|`))", text, re.M):
            assert target in targets, (page, target)


# -- generated pages


def test_the_command_line_page_is_current():
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert page == load("generate").reference(), "run make docs"


def test_the_theory_page_says_what_the_command_says():
    page = (DOCS / "theory-example.md").read_text(encoding="utf-8")
    assert page == load("generate").theory(), "run make docs"


def test_the_tables_of_a_round_and_of_an_epoch_are_current():
    page = (DOCS / "protocol.md").read_text(encoding="utf-8")
    generate = load("generate")
    assert page == generate.protocol(page), "run make docs"
    assert page.count("written by make docs") == page.count(generate.END) == 2
    assert "|  | offer | offered |" in page
    assert "| full | draw | drawn |" in page


def test_the_picture_of_the_rooms_is_current_and_shows_every_file():
    drawing = (DOCS / "images" / "rooms.svg").read_text(encoding="utf-8")
    assert drawing == load("rooms").drawn(), "run make docs"
    for file in (ROOT / "src" / "discreet").rglob("[!_]*.py"):
        assert file.stem in drawing


def test_the_architecture_page_names_files_that_exist_and_every_room():
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    source = ROOT / "src" / "discreet"
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]*(?:\.py)?)`", page))
    assert len(named) > 40
    for name in named:
        assert (source / name).exists() or (ROOT / name).exists(), name
    for room in source.glob("*/__init__.py"):
        assert f"{room.parent.name}" in page


def test_the_threat_model_names_tests_that_exist():
    rows = [
        line.split("|")[1:-1]
        for line in (DOCS / "threat-model.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| **")
    ]
    assert len(rows) > 12
    for who, _, stops, tested, undefended in rows:
        assert stops.strip(), who
        assert undefended.strip(), who
        named = re.findall(r"`(tests/[\w/]+\.py)`", tested)
        assert named or "no test" in tested, who
        for name in named:
            assert (ROOT / name).is_file(), name
    everywhere = re.findall(r"`((?:tests|src|docs)/[\w/.]+)`", "".join(map("".join, rows)))
    assert all((ROOT / name).exists() for name in everywhere)


def test_the_drawing_of_a_round_is_current_and_holds_every_step():
    drawing = (DOCS / "images" / "round.svg").read_text(encoding="utf-8")
    assert drawing == load("drawing").drawn(), "run make docs"
    assert drawing.count("marker-end") == len(load("drawing").TABLE)


# -- links and names


@pytest.mark.parametrize("page", named(PAGES))
def test_links_lead_somewhere_and_images_say_what_they_show(page):
    for link in LINK.finditer(prose(page)):
        target = link["target"].partition("#")[0]
        outside = target.startswith("http") or not target
        assert outside or (page.parent / target).exists(), (page, target)
        assert not link["image"] or len(link["text"]) > 10, (page, target)


def test_the_reference_has_every_public_name_once():
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\.\. auto(?:class|exception|function):: (\w+)$", text, re.M)
    assert sorted(listed) == sorted(discreet.__all__)


def test_the_names_beside_the_symbols_exist():
    page = (DOCS / "symbols.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`(discreet(?:\.\w+)+)`", page))
    assert len(names) > 30
    for name in names:
        assert exists(name), name
    arguments = re.findall(r"`(\w+)`(?: and `(\w+)`)? of `(discreet(?:\.\w+)+)`", page)
    assert len(arguments) > 8
    for *words, owner in arguments:
        assert set(words) - {""} <= attributes(resolve(owner)), (words, owner)


def exists(name: str) -> bool:
    try:
        return resolve(name) is not None
    except (AttributeError, ImportError, KeyError):
        return False


def resolve(name: str) -> object:
    """What a dotted name stands for: a module, what is in it, or a field of that."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            fields = getattr(found, "__annotations__", {})
            found = fields[part] if part in fields else getattr(found, part)
        return found
    raise ImportError(name)


def attributes(owner: object) -> set[str]:
    return {*dir(owner), *getattr(owner, "__annotations__", {})}


# -- docstrings


def test_a_formula_keeps_its_lines_and_symbols_are_no_markup():
    lines = ["So |x| is x_ * 2:", "", "    a *= |b|", "    c", "", "- `one`", "", "      d_", ""]
    assert docstrings.converted(lines) == [
        *[r"So \|x\| is x\_ \* 2:", "", "::", "", "    a *= |b|", "    c", ""],
        *["- `one`", "", "  ::", "", "      d_", ""],
    ]


def test_an_example_in_a_docstring_stays_as_it_is():
    lines = ["Text.", "", ">>> f(*x_)", "'|'", ""]
    assert docstrings.converted(lines) == lines
