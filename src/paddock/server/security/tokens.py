"""Tokens of ServiceAccounts: signed, bound, short-lived (docs/spec/kube-api.md section 8)."""

import asyncio
import base64
import hmac
from collections.abc import Iterable
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from paddock.base import certificates
from paddock.base.clock import IdentityClock
from paddock.kubernetes.meta import ages, failure
from paddock.server.context import User
from paddock.server.resources.strategy import ObjectView
from paddock.server.security.identity import PendingIdentity
from paddock.server.security.pki import write_private

if TYPE_CHECKING:
    from paddock.server.security.jose import Claims, PublicKey, SigningKey

ISSUER = "https://kubernetes.default.svc"
_ACCOUNT = "system:serviceaccount:"
_BOUND_KINDS = {"Secret": "secrets", "Node": "nodes", "Pod": "pods"}
_MOST_CHECKED = 2048
_GRACE_SECONDS = 60.0
# Tokens in Secrets have an issuer and claims of their own.
_KEPT_ISSUER, _KEPT = "kubernetes/serviceaccount", "kubernetes.io/serviceaccount"


class Keyring:
    """The key that signs tokens, and all keys that verify them, earlier signing keys among them.

    The first token reads their files, because reading loads the library cryptography (11 MB).
    """

    def __init__(self, signing: Path, believed: Iterable[Path] = ()) -> None:
        self._files = (signing, tuple(believed))
        # Digests of tokens whose signature was good, with their claims: a signature does not become bad.
        self._checked: dict[bytes, Claims] = {}

    @cached_property
    def _signing(self) -> "SigningKey":
        from paddock.server.security import jose  # noqa: PLC0415 - loads cryptography

        return jose.SigningKey(jose.read_private(self._files[0]))

    @cached_property
    def _believed(self) -> "dict[str, PublicKey]":
        from paddock.server.security import jose  # noqa: PLC0415 - loads cryptography

        earlier = (key for path in self._files[1] for key in jose.read_publics(path))
        return {key.name: key for key in (self._signing.key, *earlier)}

    @property
    def is_loaded(self) -> bool:
        """Return whether the library is loaded and the signing key read."""
        return "_signing" in self.__dict__

    def read(self) -> "Keyring":
        """Read the files now; raises `BadKey`."""
        _ = self._believed
        return self

    async def load(self) -> None:
        """Read the files in a thread: the library takes the event loop a fifth of a second, and more when its files are not in memory."""
        await asyncio.to_thread(self.read)

    def sign(self, claims: "Claims") -> str:
        """A token with these claims."""
        return self._signing.sign(claims)

    def claims(self, token: str) -> "Claims | None":
        """The claims of a token that one of the keys has signed, or None."""
        from paddock.server.security import jose  # noqa: PLC0415 - loads cryptography

        digest = sha256(token.encode("utf-8", "replace")).digest()
        found = self._checked.get(digest)
        if found is None:
            found = jose.claims_of(token, self._believed.values())
            if found is not None:
                if len(self._checked) >= _MOST_CHECKED:
                    self._checked.clear()
                self._checked[digest] = found
        return found

    def published(self) -> dict[str, Any]:
        """The public keys, as OIDC clients fetch them."""
        return {"keys": [key.published() for key in self._believed.values()]}


def own_keyring(folder: Path, believed: Iterable[Path] = ()) -> Keyring:
    """The keys of an installation: `service-accounts.key` signs; what lies beside it as `service-accounts-*` is still believed."""
    path = folder / "service-accounts.key"
    if not path.exists():
        from paddock.server.security import signing  # noqa: PLC0415 - loads cryptography

        write_private(path, signing.new_key())
    earlier = (*sorted(folder.glob("service-accounts-*")), *believed)
    keys = Keyring(path, earlier)
    # Read keys that OpenSSL cannot vouch for, so that the start fails if one is unusable.
    return keys if not earlier and certificates.is_key(path, folder / "ca.crt") else keys.read()


def keyring_of(signing: Path, believed: Iterable[Path]) -> Keyring:
    """The keys of named files."""
    return Keyring(signing, believed).read()


class IssuerTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The issuers and audiences of tokens. The first issuer is the one that signs; tokens of the others are still accepted."""

    issuers: tuple[str, ...] = (ISSUER,)
    # empty: the issuers
    audiences: tuple[str, ...] = ()
    # 0: no limit
    longest_seconds: int = 0

    @property
    def own_audiences(self) -> tuple[str, ...]:
        """The audiences of which a token must have one to be accepted here."""
        return self.audiences or self.issuers


class AccountTokens:
    """Issues tokens for ServiceAccounts, and knows the users behind them."""

    def __init__(self, keys: Keyring, view: ObjectView, clock: IdentityClock, terms: IssuerTerms = IssuerTerms()) -> None:  # noqa: B008 - frozen
        self.terms = terms
        self._keys = keys
        self._view = view
        self._clock = clock

    def issue(self, account: dict[str, Any], audiences: list[str], seconds: int, bound: dict[str, Any] | None) -> tuple[str, float]:
        """A token and when it ends; raises a `Failure` when what it is bound to does not exist."""
        meta = account["metadata"]
        now = self._clock.seconds()
        private: dict[str, Any] = {"namespace": meta["namespace"], "serviceaccount": {"name": meta["name"], "uid": meta["uid"]}}
        if bound:
            private[bound.get("kind", "").lower()] = self._bind(bound, meta["namespace"])
        claims = {
            "iss": self.terms.issuers[0],
            "sub": f"{_ACCOUNT}{meta['namespace']}:{meta['name']}",
            "aud": audiences or list(self.terms.own_audiences),
            "iat": int(now),
            "nbf": int(now),
            "exp": int(now) + seconds,
            "jti": self._clock.uid(),
            "kubernetes.io": private,
        }
        return self._keys.sign(claims), int(now) + seconds

    def issue_for_secret(self, account: dict[str, Any], secret: str) -> str:
        """A token that is kept in a Secret, and holds as long as it is there."""
        meta = account["metadata"]
        claims = {
            "iss": _KEPT_ISSUER,
            f"{_KEPT}/namespace": meta["namespace"],
            f"{_KEPT}/secret.name": secret,
            f"{_KEPT}/service-account.name": meta["name"],
            f"{_KEPT}/service-account.uid": meta["uid"],
            "sub": f"{_ACCOUNT}{meta['namespace']}:{meta['name']}",
        }
        return self._keys.sign(claims)

    def published(self) -> dict[str, Any]:
        """The public keys, as OIDC clients fetch them."""
        return self._keys.published()

    def _bind(self, bound: dict[str, Any], namespace: str) -> dict[str, str]:
        plural = _BOUND_KINDS.get(bound.get("kind", ""))
        name = bound.get("name", "")
        found = None if plural is None else self._view.get(plural, "" if plural == "nodes" else namespace, name)
        if found is None:
            raise failure.not_found(failure.FailureTarget(name=name, kind=plural or str(bound.get("kind", ""))))
        uid = found["metadata"]["uid"]
        if bound.get("uid") not in (None, "", uid):
            why = f"the UID in the bound object reference ({bound['uid']}) does not match the UID in record"
            raise failure.conflict(failure.FailureTarget(name=name, kind=plural or ""), why)
        return {"name": name, "uid": uid}

    def user(self, token: str) -> User | None:
        """The account of a token that is meant for this server. The first token waits for the keys: raises `PendingIdentity`."""
        if _is_signed(token) and not self._keys.is_loaded:
            raise PendingIdentity(self._keys.load)
        return self.user_for(token, self.terms.own_audiences)[0]

    def user_for(self, token: str, audiences: tuple[str, ...]) -> tuple[User | None, tuple[str, ...]]:
        """The account of a token and the audiences of it that were asked for."""
        claims = self._keys.claims(token) if _is_signed(token) else None
        if claims is None:
            return None, ()
        if claims.get("iss") == _KEPT_ISSUER:
            own = tuple(each for each in audiences if each in self.terms.own_audiences)
            return (self._kept(token, claims), own) if own else (None, ())
        try:
            registered = msgspec.convert(claims, _Registered)
        except msgspec.ValidationError:
            # Signed with our key, by somebody else: an end that is no time, say.
            return None, ()
        meant = tuple(each for each in audiences if each in registered.aud)
        now = self._clock.seconds()
        if not meant or registered.iss not in self.terms.issuers or not registered.nbf <= now + 60 or now >= registered.exp:
            return None, ()
        private = registered.private
        namespace, account = str(private.get("namespace", "")), private.get("serviceaccount") or {}
        if not self._lives("serviceaccounts", namespace, account) or not all(
            self._lives(plural, "" if plural == "nodes" else namespace, private[kind.lower()])
            for kind, plural in _BOUND_KINDS.items()
            if kind.lower() in private
        ):
            return None, ()
        extra: dict[str, tuple[str, ...]] = {"authentication.kubernetes.io/credential-id": (f"JTI={claims.get('jti', '')}",)}
        return _user(namespace, account["name"], account["uid"], extra), meant

    def _kept(self, token: str, claims: "Claims") -> User | None:
        """The account of a token that is kept in a Secret, while it is the one that is kept there."""
        namespace, secret = claims.get(f"{_KEPT}/namespace", ""), claims.get(f"{_KEPT}/secret.name", "")
        account = {"name": claims.get(f"{_KEPT}/service-account.name", ""), "uid": claims.get(f"{_KEPT}/service-account.uid", "")}
        found = self._view.get("secrets", namespace, secret)
        if found is None or found["metadata"].get("deletionTimestamp") or not self._lives("serviceaccounts", namespace, account):
            return None
        try:
            kept = base64.b64decode((found.get("data") or {}).get("token") or "")
        except ValueError:
            return None
        return _user(namespace, account["name"], account["uid"], {}) if hmac.compare_digest(kept, token.encode()) else None

    def _lives(self, plural: str, namespace: str, reference: Any) -> bool:
        if not isinstance(reference, dict):
            return False
        found = self._view.get(plural, namespace, reference.get("name", ""))
        return found is not None and found["metadata"].get("uid") == reference.get("uid") and not _is_leaving(found, self._clock.seconds())


class _Registered(msgspec.Struct, frozen=True):
    """The claims that decide whether a token is good."""

    iss: str = ""
    aud: tuple[str, ...] = ()
    exp: float = 0
    nbf: float = 0
    private: dict[str, Any] = msgspec.field(name="kubernetes.io", default_factory=dict)


def _is_signed(token: str) -> bool:
    """Return whether a token has the parts of a signed one."""
    return token.count(".") == 2


def _user(namespace: str, name: str, uid: str, extra: dict[str, tuple[str, ...]]) -> User:
    return User(f"{_ACCOUNT}{namespace}:{name}", ("system:serviceaccounts", f"system:serviceaccounts:{namespace}"), uid, extra)


def _is_leaving(found: dict[str, Any], now: float) -> bool:
    """Return whether an object's deletion is so old that its tokens no longer hold: the end of a Pod may need its token for a while."""
    since = found["metadata"].get("deletionTimestamp")
    return bool(since) and now - (ages.seconds_of(since) or now) > _GRACE_SECONDS
