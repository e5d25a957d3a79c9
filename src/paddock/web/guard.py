"""Checks of a request before the console does anything with it. Pure: values in, a refusal or nothing out."""

from collections.abc import Collection

import msgspec

from paddock.server.edge.http import HttpRequest
from paddock.web.routes import WebRefusal

Headers = tuple[tuple[str, str], ...]

WRITE_HEADER = "x-paddock-console"
_FORBIDDEN, _MISDIRECTED = 403, 421
READS = frozenset(("GET", "HEAD"))
# Browsers say which site a request comes from. A page of another port of this host is of the same site, and gets the cookie.
_OWN_SITES = frozenset(("same-origin", "none", ""))
_DEFAULT_PORTS = {"http": 80, "https": 443}
CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "font-src 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
# On every answer; no header of CORS is among them.
SAFETY_HEADERS: Headers = (
    ("content-security-policy", CONTENT_POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
)


class ConsoleOrigin(msgspec.Struct, frozen=True):
    """The addresses of the console: its scheme, and each `host:port` that a browser may write."""

    scheme: str
    hosts: frozenset[str]

    @classmethod
    def of(cls, scheme: str, names: Collection[str], port: int) -> "ConsoleOrigin":
        """Return the origin of a console that listens on a port and is called by these names and addresses."""
        written = {f"[{each}]" if ":" in each else each.lower() for each in names}
        hosts = {f"{each}:{port}" for each in written}
        # A browser leaves out the port of its scheme.
        return cls(scheme, frozenset(hosts | (written if _DEFAULT_PORTS[scheme] == port else set())))


def check_host(request: HttpRequest, origin: ConsoleOrigin) -> None:
    """Refuse a request for another host: a page whose name was bound to this address after it was loaded sends its own name."""
    host = request.headers.get("host", "").lower()
    if host not in origin.hosts:
        raise WebRefusal(_MISDIRECTED, "this console is not served under that name", fix="use the address that `paddock ui` prints")


def check_write(request: HttpRequest, origin: ConsoleOrigin) -> None:
    """Refuse a write that no script of the console's own page sends."""
    _check_origin(request, origin)
    if request.headers.get(WRITE_HEADER) != "1":
        raise WebRefusal(_FORBIDDEN, "the console takes writes from its own page only", why="the header X-Paddock-Console is missing")


def check_socket(request: HttpRequest, origin: ConsoleOrigin) -> None:
    """Refuse a WebSocket of another page. Browsers ask nobody before they open one, so this header is all there is."""
    _check_origin(request, origin)


def check_read(request: HttpRequest) -> None:
    """Refuse a read that a page of another origin began, even though it could not see the answer."""
    if request.headers.get("sec-fetch-site", "") not in _OWN_SITES:
        raise WebRefusal(_FORBIDDEN, "the console answers its own page only", why="another page sent this request")


def _check_origin(request: HttpRequest, origin: ConsoleOrigin) -> None:
    # The name that the request was sent to, and no other of the console's: a cookie belongs to one of them.
    own = f"{origin.scheme}://{request.headers.get('host', '').lower()}"
    if request.headers.get("origin", "") != own:
        raise WebRefusal(_FORBIDDEN, "the console takes writes from its own page only", why="another page sent this request, or none")
