"""One-time links and cookies."""

from typing import cast

import pytest

from paddock.server.edge.http import ConnectionPeer, HttpRequest
from paddock.web.session import WebSession
from paddock.web.sessions import LINK_SECONDS, SESSION_SECONDS, OneTimeLinks, SessionTable


class Clock:
    """Time that stands still until it is moved."""

    def __init__(self) -> None:
        self.time = 1000.0

    def seconds(self) -> float:
        return self.time


class Identity:
    """What a table needs of a session."""

    def __init__(self, identity: str) -> None:
        self.identity = identity


def session(identity: str = "ada") -> WebSession:
    return cast(WebSession, Identity(identity))


def request(cookie: str) -> HttpRequest:
    return HttpRequest("GET", "/", {"cookie": cookie} if cookie else {}, b"", ConnectionPeer("127.0.0.1"))


def value(header: str) -> str:
    """What a browser sends back after `Set-Cookie`."""
    return header.partition(";")[0]


def test_a_link_opens_once() -> None:
    links = OneTimeLinks(Clock())
    secret = links.issue()
    assert links.redeem(secret)
    assert not links.redeem(secret)


def test_a_link_lasts_ten_minutes() -> None:
    clock = Clock()
    links = OneTimeLinks(clock)
    early, late = links.issue(), links.issue()
    clock.time += LINK_SECONDS - 1
    assert links.redeem(early)
    clock.time += 1
    assert not links.redeem(late)


@pytest.mark.parametrize("wrong", ["", "x", "a" * 43, "a" * 10_000, "é\udcff"])
def test_another_secret_opens_nothing_and_uses_nothing_up(wrong: str) -> None:
    links = OneTimeLinks(Clock())
    secret = links.issue()
    assert not links.redeem(wrong)
    assert links.redeem(secret)


def test_secrets_have_256_bits_and_are_not_kept() -> None:
    links = OneTimeLinks(Clock())
    secret = links.issue()
    # 43 characters of 6 bits
    assert len(secret) == 43
    assert links.issue() != secret
    assert secret not in repr(vars(links._table))


def test_every_digest_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append(one)
        return one == other

    monkeypatch.setattr("paddock.web.sessions.hmac.compare_digest", compare)
    links = OneTimeLinks(Clock())
    first, _second = links.issue(), links.issue()
    assert links.redeem(first)
    assert len(compared) == 2


def test_links_are_few() -> None:
    links = OneTimeLinks(Clock())
    secrets = [links.issue() for _ in range(100)]
    assert sum(links.redeem(each) for each in secrets) == 16
    assert not links.redeem(secrets[0])


def test_the_cookie_is_for_this_console_alone() -> None:
    table = SessionTable(Clock(), 7444, secure=True)
    header = table.open(session())
    assert header.startswith("paddock-console-7444=")
    assert header.split("; ")[1:] == ["Path=/", "HttpOnly", "SameSite=Strict", "Secure", "Max-Age=43200"]
    assert "Secure" not in SessionTable(Clock(), 7444, secure=False).open(session())


def test_a_cookie_names_its_session_among_other_cookies() -> None:
    table = SessionTable(Clock(), 7444, secure=False)
    wanted, other = session("ada"), session("bob")
    one, two = value(table.open(wanted)), value(table.open(other))
    assert table.find(request(f"paddock-console-7445=x; {one}; theme=dark")) is wanted
    assert table.find(request(f"a=b, {two}")) is other
    assert table.find(request("")) is None
    assert table.find(request(one.replace("7444", "7445"))) is None
    assert table.find(request(one[:-1])) is None


def test_a_session_ends_after_twelve_hours_and_with_signing_out() -> None:
    clock = Clock()
    table = SessionTable(clock, 7444, secure=False)
    one, two = value(table.open(session("ada"))), value(table.open(session("bob")))
    assert table.end(request(one)).endswith("Max-Age=0")
    assert table.find(request(one)) is None
    assert table.identities() == {"bob"}
    clock.time += SESSION_SECONDS
    assert table.find(request(two)) is None
    assert table.identities() == set()


def test_sessions_are_bounded() -> None:
    table = SessionTable(Clock(), 7444, secure=False)
    cookies = [value(table.open(session(str(number)))) for number in range(300)]
    assert table.find(request(cookies[0])) is None
    assert table.find(request(cookies[-1])) is not None
    assert len(table.identities()) == 256
