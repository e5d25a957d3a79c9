"""Makes keys and certificates: the server's own authority, those that it signs, and self-signed ones.

Keys are ECDSA P-256. This module loads the library cryptography, which a start with good certificates does without.
"""

import ipaddress
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from paddock.base.certificates import RENEWAL
from paddock.base.errors import Terminal

_AUTHORITY_YEARS, _LEAF_DAYS = 10, 365
# A clock that is set back after the first start must not make everything invalid.
_BACKDATED = timedelta(days=1)
Key = ec.EllipticCurvePrivateKey
# The first and the last moment.
Validity = tuple[datetime, datetime]


class UnusableAuthority(Terminal):
    """A key or a certificate on disk cannot be used."""


class CertificateSigner:
    """The certificate and the key of an authority."""

    def __init__(self, certificate: Path, key: Path, now: Callable[[], datetime]) -> None:
        """Raises `UnusableAuthority`."""
        self._certificate = _read_certificate(certificate)
        self._key = _read_key(key)
        if self._certificate.public_key() != self._key.public_key():
            raise UnusableAuthority(f"the key {key} is not that of the certificate {certificate}", fix="restore both, or delete both")
        self._now = now

    @classmethod
    def of_once(cls, common: str, now: datetime) -> tuple["CertificateSigner", bytes]:
        """A new authority in memory, and its certificate as PEM. Its key goes with the signer."""
        certificate, key = new_authority(common, now)
        made = cls.__new__(cls)
        made._certificate = x509.load_pem_x509_certificate(certificate)
        made._key = _loaded_key(key)
        made._now = lambda: now
        return made, certificate

    @property
    def _identifier(self) -> x509.AuthorityKeyIdentifier:
        """The authority's key, as each certificate names it. Since Python 3.13, clients reject certificates without it."""
        try:
            own = self._certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        except x509.ExtensionNotFound:
            return x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)

    def server(self, name: str, names: Iterable[str]) -> tuple[bytes, bytes]:
        """A new serving certificate for these host names and addresses, and its key, as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        return self._sign(key, _name(name), names), _key_pem(key)

    def client(self, user: str, groups: Iterable[str]) -> tuple[bytes, bytes]:
        """A new client certificate and its key as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        return self._sign(key, _name(user, groups), names=()), _key_pem(key)

    def sign_client(self, request: x509.CertificateSigningRequest, duration: timedelta) -> bytes:
        """Sign a client certificate for a certificate signing request, of which only the subject and the public key count."""
        now = self._now()
        return _pem(
            x509.CertificateBuilder()
            .subject_name(request.subject)
            .issuer_name(self._certificate.subject)
            .public_key(request.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(min(now + duration, self._certificate.not_valid_after_utc))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .add_extension(self._identifier, critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def _sign(self, key: Key, subject: x509.Name, names: Iterable[str]) -> bytes:
        begin, end = _leaf_validity(self._now())
        validity = begin, min(end, self._certificate.not_valid_after_utc)
        return _pem(
            _leaf(key, subject, names, validity)
            .issuer_name(self._certificate.subject)
            .add_extension(self._identifier, critical=False)
            .sign(self._key, hashes.SHA256())
        )


def new_authority(common: str, now: datetime) -> tuple[bytes, bytes]:
    """A new certificate of an authority and its key as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(common)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + timedelta(days=365 * _AUTHORITY_YEARS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pem(made), _key_pem(key)


def self_signed(name: str, names: Iterable[str], now: datetime) -> tuple[bytes, bytes]:
    """A serving certificate that no authority signed, and its key, as PEM: it encrypts, and clients cannot verify it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name)
    made = _leaf(key, subject, names, _leaf_validity(now)).issuer_name(subject).sign(key, hashes.SHA256())
    return _pem(made), _key_pem(key)


def is_old(certificate: bytes, now: datetime) -> bool:
    """Return whether a certificate expires soon, so that a new one is due."""
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc <= now + RENEWAL


def new_key() -> bytes:
    """A new private key as PEM."""
    return _key_pem(ec.generate_private_key(ec.SECP256R1()))


def _leaf_validity(now: datetime) -> Validity:
    return now - _BACKDATED, now + timedelta(days=_LEAF_DAYS)


def _leaf(key: Key, subject: x509.Name, names: Iterable[str], validity: Validity) -> x509.CertificateBuilder:
    """Return a certificate that still lacks its issuer: for a server if there are names, else for a client."""
    alternatives = [_general_name(name) for name in names]
    usage = ExtendedKeyUsageOID.SERVER_AUTH if alternatives else ExtendedKeyUsageOID.CLIENT_AUTH
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(validity[0])
        .not_valid_after(validity[1])
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    )
    return builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False) if alternatives else builder


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: Key) -> bytes:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)


def _loaded_key(content: bytes) -> Key:
    found = serialization.load_pem_private_key(content, None)
    if not isinstance(found, ec.EllipticCurvePrivateKey):
        raise TypeError("it is no key of an elliptic curve")
    return found


def _read_key(path: Path) -> Key:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise UnusableAuthority(
            f"cannot read the key {path}", why=str(error), fix="restore it, or delete it with its certificate"
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise UnusableAuthority(f"the key {path} is of another kind than this server makes", fix="delete it with its certificate")
    return key


def _read_certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UnusableAuthority(
            f"cannot read the certificate {path}", why=str(error), fix="restore it, or delete it with its key"
        ) from error


def _name(common: str, groups: Iterable[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
