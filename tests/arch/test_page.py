"""The page of the web console: what was built is what the sources say, and the sources make no HTML out of text."""

import gzip
import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
ASSETS = ROOT / "src" / "paddock" / "web" / "assets"
SOURCES = sorted(path for path in (WEB / "src").rglob("*") if path.suffix in (".ts", ".tsx", ".css", ".html"))
FIRST_PAGE_LIMIT = 60 * 1024

# Each makes markup, code or a style sheet out of text.
FORBIDDEN = re.compile(
    r"\b(?:dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|setHTMLUnsafe|parseFromString"
    r"|srcdoc|eval|document\.write(?:ln)?)\b|new Function\b|javascript:"
)
# Styles in markup; the policy of the page refuses them. `style={{…}}` sets properties, which it allows.
INLINE_STYLE = re.compile(r"\bstyle=[\"'`]|<style\b|setAttribute\(\s*[\"']style[\"']")
# What a browser would load from elsewhere.
ELSEWHERE = re.compile(r"(?:\b(?:src|href)=[\"']|\burl\(\s*[\"']?|@import\s+[\"'(]|\bimport\(?\s*[\"'])(?:https?:)?//")


COMMENT = re.compile(r"/\*.*?\*/|(?<![:\w\"'`(])//[^\n]*", re.DOTALL)


def findings(text: str) -> list[str]:
    return [match[0] for pattern in (FORBIDDEN, INLINE_STYLE, ELSEWHERE) for match in pattern.finditer(text)]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(WEB).as_posix())
def test_no_source_makes_html_out_of_text(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert findings(COMMENT.sub("", text) if path.suffix in (".ts", ".tsx") else text) == []


@pytest.mark.parametrize(
    "text",
    [
        "element.innerHTML = text",
        "<p dangerouslySetInnerHTML={{ __html: text }} />",
        "new Function(text)",
        "eval(text)",
        '<p style="color: red">',
        "<style>p {}</style>",
        'import "https://example.org/x.js"',
        'import("//example.org/x.js")',
        "background: url(https://example.org/x.png)",
        '<script src="//example.org/x.js">',
    ],
)
def test_what_is_forbidden_is_seen(text: str) -> None:
    assert findings(text)


def test_what_is_allowed_passes() -> None:
    assert findings('<p style={{ width: "1px" }}>medieval evaluation</p>; const url = "https://example.org"; <a href="licenses.txt">') == []


def sources_digest() -> str:
    """Return the digest that web/build/digest.mjs writes."""
    names = [path.relative_to(WEB).as_posix() for part in ("src", "build") for path in (WEB / part).rglob("*") if path.is_file()]
    lines = [
        f"{name}\0{hashlib.sha256((WEB / name).read_bytes()).hexdigest()}\n"
        for name in sorted([*names, "package.json", "package-lock.json"])
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def test_the_page_was_built_from_these_sources() -> None:
    built = (WEB / "sources.sha256").read_text(encoding="utf-8").strip()
    assert built == sources_digest(), "the sources of the page changed after the last build; run `make web`"


@pytest.mark.skipif(not shutil.which("node") or not (WEB / "node_modules" / "esbuild").exists(), reason="needs Node.js and `make web`")
def test_the_assets_are_what_the_sources_build() -> None:
    done = subprocess.run(["node", "build/check.mjs"], cwd=WEB, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def first_page() -> Iterator[Path]:
    """Yield what a browser loads at once."""
    index = ASSETS / "index.html"
    yield index
    for name in re.findall(r"(?:src|href)=\"([^\"]+)\"", index.read_text(encoding="utf-8")):
        if not name.startswith("data:"):
            yield ASSETS / name


def test_the_first_page_is_whole_and_small() -> None:
    files = list(first_page())
    assert [path.name for path in files if not path.is_file()] == []
    assert {path.suffix for path in files} == {".html", ".js", ".css"}
    assert sum(len(gzip.compress(path.read_bytes(), mtime=0)) for path in files) <= FIRST_PAGE_LIMIT


def test_the_index_has_no_script_or_style_of_its_own() -> None:
    text = (ASSETS / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]*\bsrc=)|\bon\w+=", text) == []
    assert findings(text) == []


def test_names_of_assets_carry_the_hash_of_their_content() -> None:
    names = {path.name for path in ASSETS.iterdir()}
    assert {name for name in names if not re.fullmatch(r"[\w.]+-[0-9A-Z]{8}\.(?:js|css|svg|woff2)", name)} == {"index.html", "licenses.txt"}


def test_each_package_in_the_page_has_its_notice() -> None:
    text = (ASSETS / "licenses.txt").read_text(encoding="utf-8")
    noticed = set(re.findall(r"^(@?[\w./-]+) \d+\.\d+\.\d+ \(", text, re.MULTILINE))
    assert {"preact", "@preact/signals", "@preact/signals-core"} <= noticed
