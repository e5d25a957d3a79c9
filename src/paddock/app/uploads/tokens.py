"""Tokens for one upload each: for a claim, five minutes, and for nothing else.

They are signed with a key that lives as long as this process: a client whose token is not believed any more asks for another.
"""

import base64
import binascii
import hmac
import secrets

import msgspec

SECONDS = 300
_ISSUER = "paddock-uploads"
_HEADER = b'{"alg":"HS256","typ":"JWT"}'


class TokenClaims(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of a token."""

    iss: str = _ISSUER
    operation: str = "Upload"
    namespace: str
    name: str
    uid: str
    exp: int
    # no two tokens are the same
    jti: str = ""


class UploadTokens:
    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(32)

    def issue(self, namespace: str, name: str, uid: str, now: float) -> str:
        """A token for the claim of this UID."""
        said = msgspec.json.encode(TokenClaims(namespace=namespace, name=name, uid=uid, exp=int(now) + SECONDS, jti=secrets.token_hex(8)))
        text = f"{_encoded(_HEADER)}.{_encoded(said)}"
        return f"{text}.{_encoded(self._sign(text))}"

    def read(self, token: str, now: float) -> TokenClaims | None:
        """Return the claims of a token; None when it is not ours, or no longer valid."""
        text, _, signature = token.rpartition(".")
        header, _, said = text.partition(".")
        try:
            if not hmac.compare_digest(_decoded(signature), self._sign(text)) or _decoded(header) != _HEADER:
                return None
            claims = msgspec.json.decode(_decoded(said), type=TokenClaims)
        except (binascii.Error, ValueError, msgspec.MsgspecError):
            return None
        return claims if claims.iss == _ISSUER and claims.operation == "Upload" and now < claims.exp else None

    def _sign(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode(), "sha256")


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
