"""Who calls and what they may do: users, API tokens, tickets, roles and the tree of permissions."""

import base64
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.kit.proxmox.errors import ApiError, forbidden
from tests.kit.proxmox.privileges import ROLES

ROOT = "root@pam"
TICKET_SECONDS = 7200
UNGUARDED = {("GET", "/access/ticket"), ("POST", "/access/ticket")}


@dataclass
class Token:
    """An API token of a user. `separated` tokens have only what both they and the user may."""

    secret: str
    separated: bool = True
    expire: int = 0
    comment: str = ""


@dataclass
class User:
    """A user with a password; tokens by their name."""

    password: str
    enabled: bool = True
    expire: int = 0
    tokens: dict[str, Token] = field(default_factory=dict)


@dataclass(frozen=True)
class Grant:
    """A role of a user or token on a path."""

    path: str
    who: str
    role: str
    propagate: bool = True


@dataclass(frozen=True)
class Caller:
    """Somebody who has proved who they are; `name` is a user or USER!TOKEN."""

    name: str

    @property
    def is_token(self) -> bool:
        return "!" in self.name

    @property
    def user(self) -> str:
        return self.name.partition("!")[0]


class Access:
    """The user database. `date` gives the seconds since 1970."""

    def __init__(self, date: Callable[[], float] = time.time) -> None:
        self.users: dict[str, User] = {ROOT: User("root-password")}
        self.roles: dict[str, frozenset[str]] = dict(ROLES)
        self.grants: list[Grant] = []
        self.pool_of: Callable[[str], str] = lambda path: ""
        # Privileges by the beginning of their names that an older release calls otherwise.
        self.renamed: dict[str, str] = {}
        self._date = date
        self._secret = secrets.token_bytes(16)

    def add_token(self, user: str, name: str, *, separated: bool = True, expire: int = 0) -> str:
        """Add a token, and its user if there is none; return what a client sends in `Authorization`."""
        owner = self.users.setdefault(user, User(secrets.token_hex(8)))
        owner.tokens[name] = Token(secrets.token_hex(16), separated, expire)
        return f"PVEAPIToken={user}!{name}={owner.tokens[name].secret}"

    def grant(self, path: str, who: str, *privileges_or_roles: str, propagate: bool = True) -> None:
        """Give roles; privileges become a role of their own."""
        privileges = frozenset(each for each in privileges_or_roles if "." in each)
        roles = [each for each in privileges_or_roles if "." not in each]
        if privileges:
            name = f"Role-{hashlib.sha1(' '.join(sorted(privileges)).encode()).hexdigest()[:8]}"
            self.roles[name] = privileges
            roles.append(name)
        self.grants += [Grant(path, who, role, propagate) for role in roles]

    def revoke(self, who: str, path: str = "") -> None:
        """Take all roles of somebody, everywhere or on a path."""
        self.grants = [each for each in self.grants if each.who != who or (path and each.path != path)]

    def identify(self, method: str, path: str, headers: Mapping[str, str]) -> Caller | None:
        """Return who calls; None where nobody needs to say it."""
        if (method, path) in UNGUARDED:
            return None
        ticket = _credential(headers.get("cookie", ""), "PVEAuthCookie") or _credential(headers.get("authorization", ""), "PVEAuthCookie")
        if ticket:
            return self._ticket_holder(method, path, ticket, headers)
        if token := _credential(headers.get("authorization", ""), "PVEAPIToken"):
            return self._token_holder(token)
        raise ApiError(401, "No ticket")

    def _ticket_holder(self, method: str, path: str, ticket: str, headers: Mapping[str, str]) -> Caller:
        name = self.ticket_user(ticket)
        if name is None or not self._is_enabled(name):
            raise ApiError(401, "Authentication failed!")
        upload = method == "POST" and re.fullmatch(r"/nodes/[^/]+/storage/[^/]+/upload", path)
        if method != "GET" and not upload and not self._is_csrf_token(name, headers.get("csrfpreventiontoken", "")):
            raise ApiError(401, "Permission denied - invalid csrf token")
        return Caller(name)

    def _token_holder(self, credential: str) -> Caller:
        name, _, secret = credential.rpartition("=")
        user, _, token_name = name.partition("!")
        token = self.users[user].tokens.get(token_name) if self._is_enabled(user) else None
        expired = token is not None and 0 < token.expire < self._date()
        if token is None or expired or not hmac.compare_digest(token.secret, secret):
            raise ApiError(401, "Authentication failed!")
        return Caller(name)

    def _is_enabled(self, name: str) -> bool:
        user = self.users.get(name)
        return user is not None and user.enabled and not 0 < user.expire < self._date()

    def log_in(self, name: str, password: str) -> dict[str, Any]:
        """Return a ticket for a password or for another valid ticket of the same user."""
        user = self.users.get(name)
        by_ticket = password.startswith("PVE:") and self.ticket_user(password) == name
        if user is None or not self._is_enabled(name) or not (by_ticket or hmac.compare_digest(user.password, password)):
            raise ApiError(401, "authentication failure")
        stamp = f"{int(self._date()):08X}"
        ticket = f"PVE:{name}:{stamp}::{self._signature(f'ticket:{name}:{stamp}')}"
        csrf = f"{stamp}:{self._signature(f'csrf:{stamp}:{name}')}"
        return {"username": name, "ticket": ticket, "CSRFPreventionToken": csrf, "cap": {}}

    def forget_tickets(self) -> None:
        """Make all tickets invalid, as when the cluster's key is changed."""
        self._secret = secrets.token_bytes(16)

    def ticket_user(self, ticket: str) -> str | None:
        """Return whose ticket it is, None if it is forged or too old."""
        match = re.fullmatch(r"PVE:([^:]+):([0-9A-F]{8})::(\S+)", ticket)
        if match is None or not hmac.compare_digest(match[3], self._signature(f"ticket:{match[1]}:{match[2]}")):
            return None
        return match[1] if -300 < self._date() - int(match[2], 16) < TICKET_SECONDS else None

    def _is_csrf_token(self, name: str, token: str) -> bool:
        stamp, _, signature = token.partition(":")
        return hmac.compare_digest(signature, self._signature(f"csrf:{stamp}:{name}"))

    def _signature(self, text: str) -> str:
        return base64.b64encode(hmac.digest(self._secret, text.encode(), "sha256")).decode().rstrip("=")

    def privileges(self, name: str, path: str) -> frozenset[str]:
        """Return the privileges of a user or token on a path."""
        if name == ROOT:
            return self.roles["Administrator"]
        caller = Caller(name)
        own = self._granted(name, path)
        if not caller.is_token:
            return own
        token = self.users[caller.user].tokens.get(name.partition("!")[2]) if caller.user in self.users else None
        if token is None:
            return frozenset()
        of_user = self.privileges(caller.user, path)
        return own & of_user if token.separated else of_user

    def _granted(self, name: str, path: str) -> frozenset[str]:
        roles = self._roles(name, path)
        if "NoAccess" not in roles and (pool := self.pool_of(path)):
            roles |= self._roles(name, f"/pool/{pool}")
        return frozenset().union(*(self.roles.get(role, frozenset()) for role in roles))

    def _roles(self, name: str, path: str) -> set[str]:
        """Roles of a deeper path replace those of a higher one."""
        roles: set[str] = set()
        parts = [each for each in path.split("/") if each]
        for depth in range(len(parts) + 1):
            place = "/" + "/".join(parts[:depth])
            found = {g.role for g in self.grants if g.path == place and g.who == name and (g.propagate or depth == len(parts))}
            roles = found or roles
        return roles

    def has(self, caller: Caller, path: str, *wanted: str, any_of: bool = False) -> bool:
        """Return True if the caller has all privileges, or one of them."""
        held = self.privileges(caller.name, path)
        return any(each in held for each in wanted) if any_of else all(each in held for each in wanted)

    def demand(self, caller: Caller, path: str, *wanted: str, any_of: bool = False) -> None:
        """Refuse a caller who lacks the privileges."""
        held = self.privileges(caller.name, path)
        if any_of and not any(each in held for each in wanted):
            raise forbidden(f"{path}, {'|'.join(wanted)}")
        for each in () if any_of else wanted:
            if each not in held:
                raise forbidden(f"{path}, {each}")

    def check_call(self, permission: Any, caller: Caller | None, values: Mapping[str, Any]) -> None:
        """Refuse a caller whom the call's published permission does not let through."""
        if caller is None:
            if permission == "world":
                return
            raise forbidden("user != null")
        if caller.name == ROOT or permission in ("all", "world"):
            return
        if permission is None:
            raise forbidden("user != root@pam")
        self._check(permission, caller, values)

    def _check(self, test: Sequence[Any], caller: Caller, values: Mapping[str, Any]) -> None:
        kind, *rest = test
        if kind == "and":
            for each in rest:
                self._check(each, caller, values)
        elif kind == "or":
            self._check_one(rest, caller, values)
        elif kind == "perm":
            template, privileges, *options = rest
            chosen = dict(zip(options[::2], options[1::2], strict=True))
            if (needed := chosen.get("require_param")) and needed not in values:
                raise forbidden()
            path = re.sub(r"\{(\w+)\}", lambda match: str(values.get(match[1], "")), template)
            needs = dict.fromkeys(self._called(each) for each in privileges)
            self.demand(caller, path.rstrip("/") or "/", *needs, any_of=bool(chosen.get("any")))
        elif kind == "perm-modify":
            path = str(values.get("path", ""))
            own = {"storage": "Datastore.Allocate", "vms": "VM.Allocate", "pool": "Pool.Allocate"}.get(path.strip("/").partition("/")[0])
            self.demand(caller, path, "Permissions.Modify", *([own] if own else []), any_of=True)
        elif kind == "userid-param" and rest == ["self"]:
            if caller.name != values.get("userid"):
                raise forbidden()
        else:
            self.demand(caller, "/access", "User.Modify")

    def _called(self, privilege: str) -> str:
        return next((name for beginning, name in self.renamed.items() if privilege.startswith(beginning)), privilege)

    def _check_one(self, tests: Iterable[Sequence[Any]], caller: Caller, values: Mapping[str, Any]) -> None:
        for each in tests:
            try:
                return self._check(each, caller, values)
            except ApiError:
                continue
        raise forbidden()


def _credential(header: str, name: str) -> str:
    """Return the value of NAME=VALUE in a header."""
    match = re.search(rf"(?:^|\s|;){name}[= ]([^;]*)", header)
    return _unquoted(match[1].strip()) if match else ""


def _unquoted(text: str) -> str:
    return re.sub("%([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), text)
