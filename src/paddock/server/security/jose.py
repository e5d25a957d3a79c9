"""Signed tokens (JWT): keys of the usual kinds, signing, checking, and the form in which keys are published (JWK).

A token is checked by the key that its header names, or by every key of its algorithm when it names none that is known; the
algorithm is decided by the key, never by the token alone, and `none` is no algorithm.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from paddock.base.errors import Terminal

Claims = dict[str, Any]
Private = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
Public = ec.EllipticCurvePublicKey | rsa.RSAPublicKey
_HASHES: Mapping[str, hashes.HashAlgorithm] = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}
_CURVES = {"secp256r1": ("P-256", "ES256", 32), "secp384r1": ("P-384", "ES384", 48), "secp521r1": ("P-521", "ES512", 66)}
_CURVE_OF: Mapping[str, ec.EllipticCurve] = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1(), "P-521": ec.SECP521R1()}
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
# Smaller RSA keys can be broken.
_LEAST_RSA_BITS = 2048
# A token is short; what is longer is no token. Checking costs as much as it is long.
LONGEST_TOKEN = 16 * 1024


class BadKey(Terminal):
    """A key cannot be used."""


def encode(data: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode(text: str) -> bytes:
    """The bytes of base64url without padding; raises `ValueError`."""
    if not text.isascii() or set("+/=") & set(text):
        raise ValueError("not base64url")
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


class PublicKey:
    """A public key with its name."""

    def __init__(self, public: Public, name: str = "") -> None:
        self.public = public
        self.name = name or _name_of(public)
        if isinstance(public, rsa.RSAPublicKey):
            if public.key_size < _LEAST_RSA_BITS:
                raise BadKey(f"an RSA key of {public.key_size} bits signs tokens", why=f"at least {_LEAST_RSA_BITS} are needed")
            self.algorithms: tuple[str, ...] = _RSA
        elif public.curve.name in _CURVES:
            self.algorithms = (_CURVES[public.curve.name][1],)
        else:
            raise BadKey(f"a key on the curve {public.curve.name} signs tokens", why="only P-256, P-384 and P-521 are known")

    def is_valid(self, algorithm: str, said: bytes, signature: bytes) -> bool:
        """Return whether the signature is this key's."""
        if algorithm not in self.algorithms:
            return False
        digest = _HASHES[algorithm[2:]]
        try:
            if isinstance(self.public, rsa.RSAPublicKey):
                self.public.verify(signature, said, _padding(algorithm, digest), digest)
            else:
                half = _CURVES[self.public.curve.name][2]
                if len(signature) != 2 * half:
                    return False
                made = encode_dss_signature(int.from_bytes(signature[:half], "big"), int.from_bytes(signature[half:], "big"))
                self.public.verify(made, said, ec.ECDSA(digest))
        except InvalidSignature:
            return False
        return True

    def published(self) -> dict[str, str]:
        """The key as a JWK."""
        if isinstance(self.public, rsa.RSAPublicKey):
            numbers = self.public.public_numbers()
            parts = {"n": encode(_big(numbers.n)), "e": encode(_big(numbers.e))}
            return {"use": "sig", "kty": "RSA", "kid": self.name, "alg": "RS256", **parts}
        curve, algorithm, half = _CURVES[self.public.curve.name]
        point = self.public.public_numbers()
        parts = {"crv": curve, "x": encode(point.x.to_bytes(half, "big")), "y": encode(point.y.to_bytes(half, "big"))}
        return {"use": "sig", "kty": "EC", "kid": self.name, "alg": algorithm, **parts}


class SigningKey:
    """A private key that signs tokens."""

    def __init__(self, private: Private) -> None:
        self._private = private
        self.key = PublicKey(private.public_key())
        self._algorithm = self.key.algorithms[0]
        self._header = encode(orjson.dumps({"alg": self._algorithm, "kid": self.key.name}))

    def sign(self, claims: Claims) -> str:
        """A token with these claims."""
        said = f"{self._header}.{encode(orjson.dumps(claims))}"
        digest = _HASHES[self._algorithm[2:]]
        if isinstance(self._private, rsa.RSAPrivateKey):
            signature = self._private.sign(said.encode(), padding.PKCS1v15(), digest)
        else:
            half = _CURVES[self._private.curve.name][2]
            first, second = decode_dss_signature(self._private.sign(said.encode(), ec.ECDSA(digest)))
            signature = first.to_bytes(half, "big") + second.to_bytes(half, "big")
        return f"{said}.{encode(signature)}"


def claims_unchecked(token: str) -> Claims | None:
    """Return the claims of a token with an unchecked signature: good for choosing the authenticator, and nothing else."""
    parts = token.split(".")
    return _object(parts[1]) if len(parts) == 3 and len(token) <= LONGEST_TOKEN else None


def claims_of(token: str, keys: Iterable[PublicKey], algorithms: tuple[str, ...] = ()) -> Claims | None:
    """The claims of a token that one of the keys has signed, or None. `algorithms` narrows what is taken."""
    parts = token.split(".")
    header = _object(parts[0]) if len(parts) == 3 and len(token) <= LONGEST_TOKEN else None
    if header is None or "crit" in header:
        return None
    algorithm, name = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or (algorithms and algorithm not in algorithms):
        return None
    try:
        signature = decode(parts[2])
    except (ValueError, binascii.Error):
        return None
    known = tuple(keys)
    said = f"{parts[0]}.{parts[1]}".encode()
    for key in [each for each in known if each.name == name] or known:
        if key.is_valid(algorithm, said, signature):
            return _object(parts[1])
    return None


def _object(part: str) -> Claims | None:
    try:
        found = orjson.loads(decode(part))
    except (ValueError, binascii.Error):
        return None
    return found if isinstance(found, dict) else None


def from_published(said: Mapping[str, Any]) -> PublicKey | None:
    """The key of a JWK; None when it is none that signs, or of an unknown kind."""
    if said.get("use", "sig") != "sig":
        return None
    name = str(said.get("kid", ""))
    try:
        if said.get("kty") == "RSA":
            return PublicKey(rsa.RSAPublicNumbers(_number(said["e"]), _number(said["n"])).public_key(), name)
        if said.get("kty") == "EC":
            curve = _CURVE_OF[said["crv"]]
            return PublicKey(ec.EllipticCurvePublicNumbers(_number(said["x"]), _number(said["y"]), curve).public_key(), name)
    except (KeyError, ValueError, TypeError, AttributeError, BadKey):
        return None
    return None


def read_private(path: Path) -> Private:
    """A private key that can sign tokens; raises `BadKey`."""
    try:
        found = serialization.load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        # The parser's own words may quote the file; a key is never shown.
        raise BadKey(f"cannot read the private key {path}", why=_why(error), fix="name a PEM file with an RSA or EC key") from None
    if not isinstance(found, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise BadKey(f"the private key {path} is of a kind that signs no tokens", fix="name a PEM file with an RSA or EC key")
    return found


def read_publics(path: Path) -> tuple[PublicKey, ...]:
    """The keys of a PEM file, which may hold public keys, certificates and private keys; raises `BadKey`."""
    try:
        blocks = _blocks(path.read_bytes())
    except OSError as error:
        raise BadKey(f"cannot read the keys in {path}", why=_why(error)) from None
    found = []
    for label, block in blocks:
        try:
            found.append(_public(label, block))
        except (ValueError, TypeError):
            raise BadKey(f"cannot read the {label.lower()} in {path}", fix="name a PEM file with RSA or EC keys") from None
    keys = tuple(PublicKey(each) for each in found if isinstance(each, ec.EllipticCurvePublicKey | rsa.RSAPublicKey))
    if not keys:
        raise BadKey(f"there is no key in {path}", fix="name a PEM file with RSA or EC keys")
    return keys


def _blocks(text: bytes) -> list[tuple[str, bytes]]:
    found, lines = [], []
    for line in text.splitlines():
        lines.append(line)
        if line.startswith(b"-----BEGIN "):
            lines = [line]
        elif line.startswith(b"-----END "):
            found.append((line.decode("ascii", "replace").removeprefix("-----END ").rstrip("- "), b"\n".join(lines) + b"\n"))
    return found


def _public(label: str, block: bytes) -> object:
    if label == "CERTIFICATE":
        return x509.load_pem_x509_certificate(block).public_key()
    if label.endswith("PRIVATE KEY"):
        return serialization.load_pem_private_key(block, None).public_key()
    return None if label == "EC PARAMETERS" else serialization.load_pem_public_key(block)


def _padding(algorithm: str, digest: hashes.HashAlgorithm) -> padding.AsymmetricPadding:
    if algorithm.startswith("PS"):
        return padding.PSS(padding.MGF1(digest), padding.PSS.DIGEST_LENGTH)
    return padding.PKCS1v15()


def _name_of(public: Public) -> str:
    digest = hashes.Hash(hashes.SHA256())
    digest.update(public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo))
    return encode(digest.finalize())


def _big(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def _number(text: str) -> int:
    return int.from_bytes(decode(text), "big")


def _why(error: Exception) -> str:
    return (error.strerror or "unreadable") if isinstance(error, OSError) else "it is no key in PEM form, or needs a password"
