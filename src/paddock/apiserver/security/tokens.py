"""Tokens of ServiceAccounts: signed, bound, short-lived (docs/spec/kube-api.md section 8)."""

import base64
import binascii
from pathlib import Path
from typing import Any, Protocol

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from paddock.apiserver.parts import User
from paddock.apiserver.resources.strategy import View
from paddock.apiserver.security.pki import new_key, read_key, write_private
from paddock.meta import failure

ISSUER = "https://kubernetes.default.svc"
_ACCOUNT = "system:serviceaccount:"
# P-256: both halves of a signature have this many bytes.
_HALF = 32
_BOUND_KINDS = {"Secret": "secrets", "Node": "nodes", "Pod": "pods"}


class Clock(Protocol):
    """Time and identity."""

    def seconds(self) -> float: ...
    def uid(self) -> str: ...


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Signer:
    """Signs and checks tokens with the key of this installation."""

    def __init__(self, folder: Path) -> None:
        path = folder / "service-accounts.key"
        if not path.exists():
            write_private(path, new_key())
        self._key = read_key(path)
        numbers = self._key.public_key().public_numbers()
        self._point = (numbers.x.to_bytes(_HALF, "big"), numbers.y.to_bytes(_HALF, "big"))
        digest = hashes.Hash(hashes.SHA256())
        digest.update(b"".join(self._point))
        self._id = _encode(digest.finalize())
        self._header = _encode(orjson.dumps({"alg": "ES256", "kid": self._id}))

    def sign(self, claims: dict[str, Any]) -> str:
        """A token with these claims."""
        said = f"{self._header}.{_encode(orjson.dumps(claims))}"
        first, second = decode_dss_signature(self._key.sign(said.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{said}.{_encode(first.to_bytes(_HALF, 'big') + second.to_bytes(_HALF, 'big'))}"

    def claims(self, token: str) -> dict[str, Any] | None:
        """The claims of a token that this key has signed, or None."""
        header, _, rest = token.partition(".")
        body, _, signature = rest.partition(".")
        if header != self._header:
            return None
        try:
            raw = _decode(signature)
            made = encode_dss_signature(int.from_bytes(raw[:_HALF], "big"), int.from_bytes(raw[_HALF:], "big"))
            self._key.public_key().verify(made, f"{header}.{body}".encode(), ec.ECDSA(hashes.SHA256()))
            claims = orjson.loads(_decode(body))
        except (binascii.Error, ValueError, InvalidSignature):
            return None
        return claims if isinstance(claims, dict) else None

    def keys(self) -> dict[str, Any]:
        """The public key, as OIDC clients fetch it."""
        x, y = (_encode(half) for half in self._point)
        key = {"use": "sig", "kty": "EC", "kid": self._id, "crv": "P-256", "alg": "ES256", "x": x, "y": y}
        return {"keys": [key]}


class AccountTokens:
    """Issues tokens for ServiceAccounts, and knows the users behind them."""

    def __init__(self, signer: Signer, view: View, clock: Clock) -> None:
        self._signer = signer
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
            "iss": ISSUER,
            "sub": f"{_ACCOUNT}{meta['namespace']}:{meta['name']}",
            "aud": audiences or [ISSUER],
            "iat": int(now),
            "nbf": int(now),
            "exp": int(now) + seconds,
            "jti": self._clock.uid(),
            "kubernetes.io": private,
        }
        return self._signer.sign(claims), int(now) + seconds

    def _bind(self, bound: dict[str, Any], namespace: str) -> dict[str, str]:
        plural = _BOUND_KINDS.get(bound.get("kind", ""))
        name = bound.get("name", "")
        found = None if plural is None else self._view.get(plural, "" if plural == "nodes" else namespace, name)
        if found is None:
            raise failure.not_found(failure.About(name=name, kind=plural or str(bound.get("kind", ""))))
        uid = found["metadata"]["uid"]
        if bound.get("uid") not in (None, "", uid):
            why = f"the UID in the bound object reference ({bound['uid']}) does not match the UID in record"
            raise failure.conflict(failure.About(name=name, kind=plural or ""), why)
        return {"name": name, "uid": uid}

    def user(self, token: str) -> User | None:
        """The account of a token that is meant for this server."""
        return self.user_for(token, (ISSUER,))[0]

    def user_for(self, token: str, audiences: tuple[str, ...]) -> tuple[User | None, tuple[str, ...]]:
        """The account of a token and the audiences of it that were asked for."""
        claims = self._signer.claims(token) if token.count(".") == 2 else None
        if claims is None:
            return None, ()
        meant = tuple(each for each in audiences if each in claims.get("aud", ()))
        now = self._clock.seconds()
        if not meant or claims.get("iss") != ISSUER or not claims.get("nbf", 0) <= now + 60 or now >= claims.get("exp", 0):
            return None, ()
        private = claims.get("kubernetes.io") or {}
        namespace, account = private.get("namespace", ""), private.get("serviceaccount") or {}
        if not self._lives("serviceaccounts", namespace, account) or not all(
            self._lives(plural, "" if plural == "nodes" else namespace, private[kind.lower()])
            for kind, plural in _BOUND_KINDS.items()
            if kind.lower() in private
        ):
            return None, ()
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        extra: dict[str, tuple[str, ...]] = {"authentication.kubernetes.io/credential-id": (f"JTI={claims.get('jti', '')}",)}
        return User(f"{_ACCOUNT}{namespace}:{account['name']}", groups, account["uid"], extra), meant

    def _lives(self, plural: str, namespace: str, reference: dict[str, Any]) -> bool:
        found = self._view.get(plural, namespace, reference.get("name", ""))
        return found is not None and found["metadata"].get("uid") == reference.get("uid")
