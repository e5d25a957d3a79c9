"""The built page. All files are read at the start, so a request chooses among known names and never among paths."""

import gzip
import hashlib
from collections.abc import Mapping
from importlib.resources.abc import Traversable

import msgspec

from paddock.server.edge.http import HttpRequest, HttpResponse
from paddock.web.guard import Headers

INDEX = "index.html"
_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "json": "application/json",
    "map": "application/json",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
    "woff2": "font/woff2",
    "webmanifest": "application/manifest+json",
    "txt": "text/plain; charset=utf-8",
}
_PLAIN = "application/octet-stream"
_PACKED = frozenset(("png", "ico", "woff2"))
_LEAST_BYTES = 512
# Names of content never change what they name; the index does.
_FOREVER, _ASK = "public, max-age=31536000, immutable", "no-cache"
_HASH_LENGTH = 8


class PageAsset(msgspec.Struct, frozen=True, kw_only=True):
    """One file of the page."""

    body: bytes
    # empty: compression gains nothing
    compressed: bytes
    content_type: str
    tag: str
    caching: str


class PageAssets:
    """The files of the page by the paths under which they are served."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = {f"/{name}": _asset(name, body) for name, body in files.items() if name != INDEX}
        if INDEX in files:
            self._files["/"] = _asset(INDEX, files[INDEX])

    @property
    def built(self) -> bool:
        """True if there is a page at all."""
        return "/" in self._files

    def answer(self, request: HttpRequest) -> HttpResponse | None:
        """Return the file of a request; None for a path that is none."""
        asset = self._files.get(request.path)
        if asset is None:
            return None
        headers: Headers = (("etag", asset.tag), ("cache-control", asset.caching), ("vary", "accept-encoding"))
        if asset.tag in request.headers.get("if-none-match", ""):
            return HttpResponse(304, b"", headers)
        body = asset.body
        if asset.compressed and _takes_gzip(request.headers.get("accept-encoding", "")):
            body, headers = asset.compressed, (("content-encoding", "gzip"), *headers)
        return HttpResponse(200, body, (("content-type", asset.content_type), *headers))


def read(folder: Traversable) -> dict[str, bytes]:
    """Return all files below a folder by their relative names."""
    found: dict[str, bytes] = {}
    if not folder.is_dir():
        return found
    for each in folder.iterdir():
        if each.is_dir():
            found |= {f"{each.name}/{name}": body for name, body in read(each).items()}
        elif not each.name.startswith(".") and not each.name.endswith(".py"):
            found[each.name] = each.read_bytes()
    return found


def _asset(name: str, body: bytes) -> PageAsset:
    ending = name.rpartition(".")[2]
    digest = hashlib.sha256(body).hexdigest()
    packed = b"" if ending in _PACKED or len(body) < _LEAST_BYTES else gzip.compress(body, mtime=0)
    return PageAsset(
        body=body,
        compressed=packed if len(packed) < len(body) else b"",
        content_type=_TYPES.get(ending, _PLAIN),
        tag=f'"{digest[:32]}"',
        caching=_FOREVER if _has_hash(name) else _ASK,
    )


def _has_hash(name: str) -> bool:
    """Return whether a name has the hash of its content: `list-3K2PXQ5A.js`."""
    stem = name.rpartition("/")[2].rpartition(".")[0]
    word = stem.rpartition("-")[2]
    return word != stem and len(word) == _HASH_LENGTH and word.isalnum() and word.isupper()


def _takes_gzip(accepted: str) -> bool:
    return any(
        each.strip().partition(";")[0] == "gzip" and "q=0" not in each.replace(" ", "").split(";")[1:] for each in accepted.split(",")
    )
