"""What requests must show before the console does anything with them."""

from collections.abc import Callable

import pytest

from paddock.server.edge.http import ConnectionPeer, HttpRequest
from paddock.web import guard
from paddock.web.guard import ConsoleOrigin
from paddock.web.routes import WebRefusal

ORIGIN = ConsoleOrigin.of("http", ("127.0.0.1", "localhost", "::1"), 7444)
OWN = {"host": "127.0.0.1:7444", "origin": "http://127.0.0.1:7444", "x-paddock-console": "1"}


def request(headers: dict[str, str], method: str = "POST") -> HttpRequest:
    return HttpRequest(method, "/console/v1/plan", headers, b"", ConnectionPeer("127.0.0.1"))


def refused(check: Callable[[], None]) -> int:
    """The status of a refusal; 0 without one."""
    try:
        check()
    except WebRefusal as error:
        return error.status
    return 0


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:7444", 0),
        ("localhost:7444", 0),
        ("LOCALHOST:7444", 0),
        ("[::1]:7444", 0),
        # The name of a page that had this address bound to its name.
        ("evil.example:7444", 421),
        ("127.0.0.1.evil.example:7444", 421),
        ("127.0.0.1:80", 421),
        ("127.0.0.1", 421),
        ("", 421),
        ("localhost:7444@evil.example", 421),
    ],
)
def test_the_host_is_one_of_the_consoles(host: str, status: int) -> None:
    assert refused(lambda: guard.check_host(request({"host": host}), ORIGIN)) == status


def test_no_host_at_all_is_refused() -> None:
    assert refused(lambda: guard.check_host(request({}), ORIGIN)) == 421


def test_a_browser_leaves_out_the_port_of_its_scheme() -> None:
    origin = ConsoleOrigin.of("https", ("console.example.com",), 443)
    assert origin.hosts == {"console.example.com", "console.example.com:443"}
    assert ConsoleOrigin.of("https", ("console.example.com",), 80).hosts == {"console.example.com:80"}


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, 0),
        ({"host": "localhost:7444", "origin": "http://localhost:7444"}, 0),
        # Another page: of another site, of another port of this host, of another scheme, of no origin, of a sandbox.
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"origin": "https://127.0.0.1:7444"}, 403),
        ({"origin": "http://127.0.0.1:7444.evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        # A cookie belongs to one of the names.
        ({"origin": "http://localhost:7444"}, 403),
        ({"x-paddock-console": ""}, 403),
        ({"x-paddock-console": "true"}, 403),
    ],
)
def test_writes_come_from_the_page(change: dict[str, str], status: int) -> None:
    assert refused(lambda: guard.check_write(request({**OWN, **change}), ORIGIN)) == status


@pytest.mark.parametrize("header", ["origin", "x-paddock-console"])
def test_writes_need_both_headers(header: str) -> None:
    headers = {name: value for name, value in OWN.items() if name != header}
    assert refused(lambda: guard.check_write(request(headers), ORIGIN)) == 403


def test_a_websocket_needs_the_origin_and_no_more() -> None:
    headers = {"host": OWN["host"], "origin": OWN["origin"]}
    assert refused(lambda: guard.check_socket(request(headers), ORIGIN)) == 0
    assert refused(lambda: guard.check_socket(request({"host": OWN["host"]}), ORIGIN)) == 403


@pytest.mark.parametrize(
    ("site", "status"), [(None, 0), ("same-origin", 0), ("none", 0), ("same-site", 403), ("cross-site", 403), ("new-word", 403)]
)
def test_reads_of_other_pages_are_refused(site: str | None, status: int) -> None:
    headers = {} if site is None else {"sec-fetch-site": site}
    assert refused(lambda: guard.check_read(request(headers, "GET"))) == status


def test_the_policy_lets_nothing_in_from_elsewhere() -> None:
    policy = dict(guard.SAFETY_HEADERS)["content-security-policy"]
    assert policy.split("; ")[0] == "default-src 'none'"
    assert not any(word in policy for word in ("unsafe", "http", "*"))
    assert not any(name.startswith("access-control") for name, _ in guard.SAFETY_HEADERS)
