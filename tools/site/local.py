"""Keeps the site on the disk: its pages load nothing from elsewhere."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

_SHIM = Path(__file__).with_name("fileworker.js")
# The theme loads this for the search of a site that is read from a disk.
_REMOTE_SHIM = "https://unpkg.com/iframe-worker/shim"
_LOADED = re.compile(r'<(?:script|img|iframe|link rel="stylesheet")[^>]*?(?:src|href)="(https?://[^"]+)"')


def keep(site: Path) -> list[str]:
    """Let the search of a site work from a disk; return what its pages still load from elsewhere."""
    shutil.copyfile(_SHIM, site / _SHIM.name)
    return [f"{page.relative_to(site)}: {url}" for page in sorted(site.rglob("*.html")) for url in _kept(site, page)]


def _kept(site: Path, page: Path) -> Iterator[str]:
    text = page.read_text(encoding="utf-8")
    local = text.replace(_REMOTE_SHIM, os.path.relpath(site / _SHIM.name, page.parent))
    if local != text:
        page.write_text(local, encoding="utf-8")
    yield from _LOADED.findall(local)
