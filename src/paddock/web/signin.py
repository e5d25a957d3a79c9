"""Signing in and out: the pages of one-time links, and the answers about sessions."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from paddock.server.edge.http import HttpResponse
from paddock.web.answers.rows import WebDone, WebSignIn
from paddock.web.routes import WebRefusal

SignInMethod = Literal["link", "token"]
LINKS, LOGIN, LOGOUT = "/login/", "login", "logout"
FIXES: Mapping[SignInMethod, str] = {
    "link": "open the link that Paddock printed; `paddock ui` prints a new one",
    "token": "sign in with a token, such as `kubectl create token NAME` prints",
}
_PAGE = (("content-type", "text/html; charset=utf-8"), ("cache-control", "no-store"))
_HTML = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
{head}<title>Paddock</title>
<link rel="icon" href="data:,">
</head>
<body>
<p>{text}</p>
</body>
</html>
"""


class _Token(msgspec.Struct, frozen=True):
    token: str


def method(chosen: SignInMethod) -> WebSignIn:
    """Return how to sign in."""
    return WebSignIn(method=chosen)


def token_of(body: bytes) -> str:
    """Return the token of a form. Raises `WebRefusal` (400)."""
    try:
        return msgspec.json.decode(body, type=_Token).token.strip()
    except msgspec.MsgspecError as error:
        # The reason of the decoder may have a part of the token.
        raise WebRefusal(400, "cannot read the token", fix="reload the page and paste it again") from error


def welcome(cookie: str) -> HttpResponse:
    """Return the page that sets a cookie and goes on to the console.

    A redirect would not do: a browser that follows one from another site's page, such as a mail, withholds a cookie that is strict.
    """
    head = '<meta http-equiv="refresh" content="0;url=../">\n'
    text = '<a href="../">Open the console</a>'
    return HttpResponse(200, _HTML.format(head=head, text=text).encode(), (*_PAGE, ("set-cookie", cookie)))


def expired() -> HttpResponse:
    """Return the page for a link that opens nothing."""
    text = "This link was used already, or is older than ten minutes. Run <code>paddock ui</code> for a new one."
    return HttpResponse(403, _HTML.format(head="", text=text).encode(), _PAGE)


def done(text: str, cookie: str) -> HttpResponse:
    """Return an answer that changes the cookie."""
    headers = (("content-type", "application/json"), ("cache-control", "no-store"), ("set-cookie", cookie))
    return HttpResponse(200, msgspec.json.encode(WebDone(text=text)), headers)
