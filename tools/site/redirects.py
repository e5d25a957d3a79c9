"""Redirects from the old address of each page that moved (`moved.toml`) to its new one."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

_TABLE = Path(__file__).with_name("moved.toml")
# The script keeps the anchor, which a refresh drops.
_STUB = """<!doctype html>
<meta charset="utf-8">
<title>Moved</title>
<link rel="canonical" href="{goal}">
<meta http-equiv="refresh" content="0; url={goal}">
<script>location.replace("{page}" + (location.hash || "{anchor}"))</script>
<p>This page is <a href="{goal}">here</a> now.</p>
"""


def moved() -> Mapping[str, str]:
    """Return the old place of each page that moved, and the new one."""
    table: Mapping[str, str] = tomllib.loads(_TABLE.read_text(encoding="utf-8"))["pages"]
    return table


def stubs(pages: Mapping[str, str]) -> Mapping[str, str]:
    """Return the files of the site that lead from old addresses to new ones; a new place may have an anchor."""
    return {_address(old): _stub(old, new) for old, new in pages.items()}


def _stub(old: str, new: str) -> str:
    place, hash_mark, name = new.partition("#")
    page, anchor = os.path.relpath(_address(place), PurePosixPath(old).parent), f"{hash_mark}{name}"
    return _STUB.format(goal=f"{page}{anchor}", page=page, anchor=anchor)


def write(site: Path, pages: Mapping[str, str]) -> None:
    """Write the redirects into a site that is built."""
    for address, text in stubs(pages).items():
        place = site / address
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


def _address(page: str) -> str:
    path = PurePosixPath(page)
    return str(path.with_name("index.html") if path.name == "README.md" else path.with_suffix(".html"))
