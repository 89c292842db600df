"""The site: it builds without a warning, needs no network, and no link in it is dead."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tests.support.places import ROOT

import discreet


class Page(HTMLParser):
    """What a page points to, what it loads by itself, and the anchors it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links, self.loads, self.anchors = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if given.get("id"):
            self.anchors.add(given["id"])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("script", "img", "iframe", "source") and given.get("src"):
            self.loads.append(given["src"])
        if tag == "link" and given.get("href"):
            self.loads.append(given["href"])


def build(source: Path, target: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    return subprocess.run(
        [*command, str(source), str(target)], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> dict[Path, Page]:
    target = tmp_path_factory.mktemp("site").resolve()
    built = build(ROOT / "docs", target)
    assert built.returncode == 0, built.stderr
    return {path: Page(path) for path in target.rglob("*.html")}


@pytest.mark.slow
def test_every_page_is_in_the_site(site):
    (index,) = (path for path in site if path.name == "index.html")
    for page in (ROOT / "docs").rglob("*.md"):
        assert (index.parent / page.relative_to(ROOT / "docs")).with_suffix(".html") in site


@pytest.mark.slow
def test_no_link_within_the_site_is_dead(site):
    for path, page in site.items():
        for target in [*page.links, *page.loads]:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert there.exists(), (path.name, target)
            if parts.fragment and there in site:
                assert unquote(parts.fragment) in site[there].anchors, (path.name, target)


@pytest.mark.slow
def test_a_page_loads_nothing_from_elsewhere(site):
    for path, page in site.items():
        for target in page.loads:
            assert not urlsplit(target).netloc, (path.name, target)
        assert "<math" not in path.read_text(encoding="utf-8")
    styles = [sheet for path in site for sheet in path.parent.rglob("*.css")]
    for sheet in set(styles):
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"@import|url\(['\"]?(https?:)?//", text), sheet


@pytest.mark.slow
def test_the_reference_shows_every_public_name(site):
    (reference,) = (page for path, page in site.items() if path.name == "api.html")
    for name in discreet.__all__:
        assert f"discreet.{name}" in reference.anchors
