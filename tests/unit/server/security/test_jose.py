"""Signed tokens: every algorithm, and everything that is no valid signature."""

from pathlib import Path

import orjson
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from paddock.server.security import jose
from paddock.server.security.jose import BadKey, PublicKey, SigningKey

RSA = rsa.generate_private_key(65537, 2048)
KEYS: dict[str, jose.Private] = {
    "RS256": RSA,
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "ES384": ec.generate_private_key(ec.SECP384R1()),
    "ES512": ec.generate_private_key(ec.SECP521R1()),
}
CLAIMS = {"iss": "here", "sub": "somebody"}


def pem(key: jose.Private, *, public: bool = False) -> bytes:
    if public:
        return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def forged(token: str, **header: object) -> str:
    """The token with another header, and the old signature."""
    head, body, signature = token.split(".")
    said = orjson.loads(jose.decode(head)) | header
    return f"{jose.encode(orjson.dumps({k: v for k, v in said.items() if v is not None}))}.{body}.{signature}"


@pytest.mark.parametrize("algorithm", KEYS)
def test_what_a_key_signs_it_believes_and_others_do_not(algorithm: str) -> None:
    signing = SigningKey(KEYS[algorithm])
    token = signing.sign(CLAIMS)
    assert orjson.loads(jose.decode(token.split(".")[0])) == {"alg": algorithm, "kid": signing.key.name}
    assert jose.claims_of(token, [signing.key]) == CLAIMS
    assert jose.claims_of(token, [signing.key], (algorithm,)) == CLAIMS
    assert jose.claims_of(token, [signing.key], ("PS512",)) is None
    others = [SigningKey(key).key for name, key in KEYS.items() if name != algorithm]
    assert jose.claims_of(token, others) is None


@pytest.mark.parametrize("algorithm", KEYS)
def test_a_published_key_is_the_same_key(algorithm: str) -> None:
    signing = SigningKey(KEYS[algorithm])
    found = jose.from_published(signing.key.published())
    assert found is not None
    assert found.name == signing.key.name
    assert jose.claims_of(signing.sign(CLAIMS), [found]) == CLAIMS


@pytest.mark.parametrize("algorithm", KEYS)
def test_a_changed_token_is_nobodys(algorithm: str) -> None:
    signing = SigningKey(KEYS[algorithm])
    token = signing.sign(CLAIMS)
    head, body, signature = token.split(".")
    raw = bytearray(jose.decode(signature))
    raw[-1] ^= 1
    wrong = [
        f"{head}.{jose.encode(orjson.dumps({**CLAIMS, 'sub': 'root'}))}.{signature}",
        f"{head}.{body}.{jose.encode(bytes(raw))}",
        f"{head}.{body}.{jose.encode(bytes(raw[:-1]))}",
        f"{head}.{body}.",
        f"{head}.{body}.{signature}=",
        f"{head}.{body}.{signature[:-2]}\u00e4",
        f"{head}.{body}",
        f"{token}.x",
        "",
        "..",
        "a.b.c",
        forged(token, alg="none"),
        forged(token, alg="HS256"),
        forged(token, alg=None),
        forged(token, alg=["ES256"]),
        forged(token, crit=["exp"]),
        f"{head}.{body}.{signature}" + "A" * jose.LONGEST_TOKEN,
    ]
    assert [each for each in wrong if jose.claims_of(each, [signing.key]) is not None] == []


def test_a_public_key_is_no_shared_secret() -> None:
    """The oldest trick: sign with the public key, which everybody has, as if it were a secret."""
    signing = SigningKey(RSA)
    for algorithm in ("HS256", "HS512", "none", "ES256"):
        assert jose.claims_of(forged(signing.sign(CLAIMS), alg=algorithm), [signing.key]) is None


def test_a_token_without_a_known_key_id_is_checked_by_all_keys() -> None:
    signing = SigningKey(RSA)
    private = SigningKey(KEYS["ES256"])
    named = PublicKey(RSA.public_key(), "another name")
    assert jose.claims_of(signing.sign(CLAIMS), [private.key, named]) == CLAIMS


@pytest.mark.parametrize(
    "said",
    [
        {"kty": "oct", "k": "AAAA"},
        {"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kty": "RSA", "n": "AQAB", "e": "AQAB"},
        {"kty": "RSA", "e": "AQAB"},
        {"kty": "RSA", "n": 5, "e": "AQAB"},
        {**SigningKey(RSA).key.published(), "use": "enc"},
        {},
    ],
)
def test_a_published_key_that_cannot_be_used_is_none(said: dict[str, object]) -> None:
    assert jose.from_published(said) is None


def test_keys_are_read_from_files_with_several(tmp_path: Path) -> None:
    first, second = KEYS["ES256"], KEYS["RS256"]
    (tmp_path / "keys.pem").write_bytes(b"a remark\n" + pem(first, public=True) + pem(second))
    found = jose.read_publics(tmp_path / "keys.pem")
    assert [key.name for key in found] == [SigningKey(first).key.name, SigningKey(second).key.name]


@pytest.mark.parametrize("content", [b"", b"nonsense", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_a_file_without_keys_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "keys.pem").write_bytes(content)
    with pytest.raises(BadKey):
        jose.read_publics(tmp_path / "keys.pem")
    with pytest.raises(BadKey):
        jose.read_private(tmp_path / "keys.pem")


def test_keys_that_are_too_weak_or_of_another_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadKey, match="1024 bits"):
        PublicKey(rsa.generate_private_key(65537, 1024).public_key())
    with pytest.raises(BadKey, match="secp256k1"):
        PublicKey(ec.generate_private_key(ec.SECP256K1()).public_key())
    other = ed25519.Ed25519PrivateKey.generate()
    (tmp_path / "key.pem").write_bytes(
        other.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    with pytest.raises(BadKey, match="signs no tokens"):
        jose.read_private(tmp_path / "key.pem")


def test_an_unreadable_key_is_never_quoted(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_bytes(pem(RSA).replace(b"\n", b"x\n", 3))
    with pytest.raises(BadKey) as said:
        jose.read_private(tmp_path / "key.pem")
    assert "MII" not in str(said.value)
    assert said.value.__cause__ is None
