"""The files of the page."""

import gzip
from pathlib import Path

import pytest

from paddock.server.edge.http import ConnectionPeer, HttpRequest, HttpResponse
from paddock.web import assets
from paddock.web.assets import PageAssets

SCRIPT = b"export const answer = 42;\n" * 100
FILES = {"index.html": b"<!doctype html>", "main-3K2PXQ5A.js": SCRIPT, "licenses.txt": b"MIT"}


def ask(path: str, **headers: str) -> HttpResponse | None:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return PageAssets(FILES).answer(HttpRequest("GET", path, named, b"", ConnectionPeer("127.0.0.1")))


def headers(answer: HttpResponse | None) -> dict[str, str]:
    assert answer is not None
    return dict(answer.headers)


def test_the_index_is_asked_for_again_and_hashed_files_never() -> None:
    assert headers(ask("/"))["cache-control"] == "no-cache"
    assert headers(ask("/licenses.txt"))["cache-control"] == "no-cache"
    assert "immutable" in headers(ask("/main-3K2PXQ5A.js"))["cache-control"]


def test_types_are_those_of_the_endings() -> None:
    assert headers(ask("/"))["content-type"] == "text/html; charset=utf-8"
    assert headers(ask("/main-3K2PXQ5A.js"))["content-type"] == "text/javascript; charset=utf-8"


@pytest.mark.parametrize(
    ("accepted", "packed"), [("gzip, br", True), ("br", False), ("", False), ("gzip;q=0", False), ("gzip;q=0.5", True)]
)
def test_a_file_is_compressed_for_browsers_that_take_it(accepted: str, packed: bool) -> None:
    answer = ask("/main-3K2PXQ5A.js", accept_encoding=accepted)
    assert answer is not None
    assert (headers(answer).get("content-encoding") == "gzip") is packed
    assert (gzip.decompress(answer.body) if packed else answer.body) == SCRIPT
    assert len(answer.body) < len(SCRIPT) or not packed


def test_a_file_that_the_browser_has_is_not_sent_again() -> None:
    tag = headers(ask("/"))["etag"]
    answer = ask("/", if_none_match=tag)
    assert answer is not None
    assert (answer.status, answer.body) == (304, b"")
    assert ask("/", if_none_match='"other"').status == 200  # type: ignore[union-attr]  # it is there


@pytest.mark.parametrize(
    "path",
    [
        "/../server.py",
        "/%2e%2e/server.py",
        "/assets/..%2fserver.py",
        "/assets//etc/passwd",
        "//etc/passwd",
        "/assets/",
        "/index.html",
        "/assets/main-3K2PXQ5A.js",
        "/index.html/..",
        "/main-3K2PXQ5A.js\x00.html",
    ],
)
def test_nothing_but_the_files_is_served(path: str) -> None:
    assert ask(path) is None


def test_files_are_read_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "index.html").write_bytes(b"a")
    (tmp_path / "inner" / "b.js").write_bytes(b"b")
    (tmp_path / ".hidden").write_bytes(b"c")
    assert assets.read(tmp_path) == {"index.html": b"a", "inner/b.js": b"b"}
    assert assets.read(tmp_path / "missing") == {}
    assert not PageAssets({}).built
