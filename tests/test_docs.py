"""Documentation that cannot drift: the CLI page is current, and README examples run."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def load(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def test_the_command_line_page_is_current():
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    assert page == load(ROOT / "docs/generate.py").reference(), "run make docs"


def test_the_table_of_a_round_is_current():
    page = (ROOT / "docs/protocol.md").read_text(encoding="utf-8")
    generate = load(ROOT / "docs/generate.py")
    assert page == generate.protocol(page), "run make docs"
    assert page.count(generate.BEGIN) == page.count(generate.END) == 1
    assert "    [*] --> offered: offer\n" in page


def test_the_readme_has_an_example():
    assert python_blocks(ROOT / "README.md")


@pytest.mark.parametrize("block", python_blocks(ROOT / "README.md"))
def test_readme_examples_run(block, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(block, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    if "print(" in block:
        found = re.search(r"at 61: dose (\d+\.\d)", printed)
        assert 0.0 <= float(found[1]) <= 10.0  # real noise: where exactly is left to chance
    else:
        assert names["receipt"].outcome == "counted"


def test_the_forecast_of_the_page_on_epsilon_runs(capsys):
    (block,) = python_blocks(ROOT / "docs/choosing-epsilon.md")
    exec(compile(block, "choosing-epsilon.md", "exec"), {})
    assert "Without privacy, learning cuts the regret" in capsys.readouterr().out


def test_links_of_the_pages_lead_somewhere():
    names = (
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "docs/choosing-epsilon.md",
        "docs/protocol.md",
    )
    for page in [ROOT / name for name in names]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert target.startswith("http") or (page.parent / target).exists(), (page, target)
