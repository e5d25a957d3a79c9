"""The credentials of the API: a token, or a ticket that a user and a password are exchanged for.

Both are files of the Provider's Secret. They are read again when the cluster refuses what they gave, so a rotated secret needs no restart.
"""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from paddock.kubernetes.client.access import Access, Credential, StaticCredential
from paddock.kubernetes.client.errors import BadAccess, Unreachable
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.transport import Transport, TransportRequest

_TOKEN_ID = re.compile(r"[^\s:/!]+@[A-Za-z][\w.-]*![A-Za-z][\w.-]*\Z", re.ASCII)
_USER = re.compile(r"[^\s:/!]+@[A-Za-z][\w.-]*\Z", re.ASCII)
# A ticket is good for two hours.
_TICKET_SECONDS = 3600.0
_LOGIN_SECONDS = 15.0


class ProxmoxAccount(msgspec.Struct, frozen=True):
    """A token, or a user with a password: one of the two has its secret."""

    user: str = ""
    password: str = ""
    token: str = ""
    secret: str = ""

    def __repr__(self) -> str:
        return f"ProxmoxAccount({(self.token or self.user)!r})"


def read(folder: Path) -> ProxmoxAccount:
    """Return the account that the files of a Secret hold; raises `BadAccess`."""
    found = {name: _file(folder / name) for name in ("token_id", "token_secret", "username", "password")}
    if found["token_id"] or found["token_secret"]:
        if not _TOKEN_ID.match(found["token_id"]) or not found["token_secret"]:
            raise BadAccess(
                "the credentials hold no whole API token", fix="write USER@REALM!NAME to token_id and the token's secret to token_secret"
            )
        return ProxmoxAccount(token=found["token_id"], secret=found["token_secret"])
    if not _USER.match(found["username"]) or not found["password"]:
        raise BadAccess(
            "the credentials hold neither an API token nor a user",
            fix="write token_id and token_secret, or username (USER@REALM) and password, to the Provider's Secret",
        )
    return ProxmoxAccount(user=found["username"], password=found["password"])


def _file(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise BadAccess(f"the credential {path.name} cannot be read", why=type(error).__name__) from error


class ProxmoxAccountCredentials:
    """The credential that a request shows, from the files as they are now."""

    def __init__(self, load: Callable[[], ProxmoxAccount], access: Access, transport: Callable[[Access], Transport] = Https) -> None:
        self._load = load
        self._access = msgspec.structs.replace(access, credentials=StaticCredential())
        self._transport = transport
        self._account: ProxmoxAccount | None = None
        self._credential: Credential | None = None
        self._ends = 0.0
        self._lock = asyncio.Lock()

    async def current(self) -> Credential:
        """Return the credential to show; raises `BadAccess` and `Unreachable`."""
        async with self._lock:
            if self._credential is None or asyncio.get_running_loop().time() >= self._ends:
                self._account = self._load()
                self._credential = await self._made(self._account)
                self._ends = asyncio.get_running_loop().time() + _TICKET_SECONDS if self._account.user else float("inf")
            return self._credential

    def refused(self, credential: Credential) -> bool:
        """Forget a credential that was refused. A token's secret is worth another try only if the file has another one now."""
        if credential is not self._credential:
            return True
        account, self._credential = self._account, None
        if account is not None and account.user:
            return True
        try:
            return self._load() != account
        except BadAccess:
            return False

    async def _made(self, account: ProxmoxAccount) -> Credential:
        if account.token:
            return Credential((("authorization", f"PVEAPIToken={account.token}={account.secret}"),))
        transport = self._transport(self._access)
        try:
            form = urlencode({"username": account.user, "password": account.password}).encode()
            answer = await transport.send(
                TransportRequest(
                    method="POST",
                    target="/api2/json/access/ticket",
                    body=form,
                    content_type="application/x-www-form-urlencoded",
                    seconds=_LOGIN_SECONDS,
                )
            )
        finally:
            await transport.close()
        return _ticket(answer.status, answer.body)


class _Ticket(msgspec.Struct, frozen=True):
    ticket: str = ""
    CSRFPreventionToken: str = ""
    # set when a second factor is wanted
    NeedTFA: Any = None


def _ticket(status: int, body: bytes) -> Credential:
    if status == 401:
        raise BadAccess("Proxmox VE refuses the user name or the password", fix="correct username and password in the Provider's Secret")
    if status >= 500:
        raise Unreachable("Proxmox VE gives no ticket", why=f"it answered {status}", sent=True)
    try:
        found = msgspec.convert(msgspec.json.decode(body)["data"], _Ticket)
    except (msgspec.MsgspecError, KeyError, TypeError):
        raise BadAccess(f"Proxmox VE gives no ticket: it answered {status}", fix="use an API token") from None
    if found.NeedTFA or not found.ticket:
        raise BadAccess("the user needs a second factor, which a program does not have", fix="use an API token")
    cookie = quote(found.ticket, safe="!*'()~:=@+/")
    return Credential((("cookie", f"PVEAuthCookie={cookie}"), ("csrfpreventiontoken", found.CSRFPreventionToken)))
