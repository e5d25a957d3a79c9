"""The server's own certificate authority, its serving certificate, and client certificates.

Keys are ECDSA P-256 and lie in files that only their owner can read. What exists is kept; what is missing or about to expire is
made anew, so that a start repairs a deleted or an old serving certificate and never changes the authority that clients trust.
"""

import ipaddress
import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from paddock.base.errors import Terminal

_AUTHORITY_YEARS, _LEAF_DAYS = 10, 365
# A clock that is set back after the first start must not make everything invalid.
_BACKDATED = timedelta(days=1)
# A leaf that is valid for less than this is made anew at a start.
_RENEW_DAYS = 30
_SERVICE_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
Key = ec.EllipticCurvePrivateKey
# From when until when.
Validity = tuple[datetime, datetime]


class UnusableAuthority(Terminal):
    """A key or a certificate on disk cannot be used."""


class Authority:
    """A certificate authority in a directory."""

    def __init__(self, folder: Path, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._folder = folder
        self._now = now
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        self.certificate_file = folder / "ca.crt"
        self._key_file = folder / "ca.key"
        if not self._key_file.exists() or not self.certificate_file.exists():
            self._create()
        self._certificate = _read_certificate(self.certificate_file)
        self._key = read_key(self._key_file)

    @property
    def certificate(self) -> bytes:
        """The authority's certificate as PEM."""
        return self.certificate_file.read_bytes()

    @property
    def _identifier(self) -> x509.AuthorityKeyIdentifier:
        """The authority's key, as each certificate names it. Since Python 3.13, clients reject certificates without it."""
        try:
            own = self._certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        except x509.ExtensionNotFound:
            return x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)

    def _create(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("paddock-ca")
        now = self._now()
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
        write_private(self._key_file, _key_pem(key))
        self.certificate_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def server(self, names: Iterable[str]) -> tuple[Path, Path]:
        """The serving certificate and its key, for these host names and addresses."""
        wanted = sorted({*names, *_SERVICE_NAMES, "localhost", "127.0.0.1", "::1"})
        certificate, key = self._folder / "server.crt", self._folder / "server.key"
        if not self._is_good(certificate, key, wanted):
            self._issue(certificate, key, _name("paddock-apiserver"), names=wanted)
        return certificate, key

    def client(self, user: str, groups: Iterable[str] = ()) -> tuple[bytes, bytes]:
        """A new client certificate and its key as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        return self._sign(key, _name(user, groups), names=()), _key_pem(key)

    def sign_client(self, request: x509.CertificateSigningRequest, duration: timedelta) -> bytes:
        """The client certificate of somebody who has made their own key. Of their request the name and the key are taken, nothing else."""
        now = self._now()
        return (
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
            .public_bytes(serialization.Encoding.PEM)
        )

    def is_old(self, certificate: x509.Certificate | bytes) -> bool:
        """Return whether a certificate expires soon, so that a new one is due."""
        return is_old(certificate, self._now())

    def _is_good(self, certificate: Path, key: Path, wanted: list[str]) -> bool:
        try:
            found = _read_certificate(certificate)
            read_key(key)
            alternatives = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            found.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier)
        except (UnusableAuthority, x509.ExtensionNotFound):
            return False
        said = sorted(str(each.value) for each in alternatives)
        fresh = not self.is_old(found)
        return fresh and said == wanted and self._has_signed(found)

    def _has_signed(self, certificate: x509.Certificate) -> bool:
        try:
            certificate.verify_directly_issued_by(self._certificate)
        except (ValueError, TypeError, InvalidSignature):
            return False
        return True

    def _issue(self, certificate: Path, key_file: Path, subject: x509.Name, *, names: Iterable[str]) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        write_private(key_file, _key_pem(key))
        certificate.write_bytes(self._sign(key, subject, names=names))

    def _sign(self, key: Key, subject: x509.Name, *, names: Iterable[str]) -> bytes:
        validity = self._validity()
        return _pem(
            _leaf(key, subject, names, validity)
            .issuer_name(self._certificate.subject)
            .add_extension(self._identifier, critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def _validity(self) -> Validity:
        begin, end = _leaf_validity(self._now())
        return begin, min(end, self._certificate.not_valid_after_utc)


def self_signed(name: str, names: Iterable[str], now: datetime) -> tuple[bytes, bytes]:
    """A serving certificate that no authority signed, and its key, as PEM: it encrypts, and clients cannot verify it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name)
    made = _leaf(key, subject, names, _leaf_validity(now)).issuer_name(subject).sign(key, hashes.SHA256())
    return _pem(made), _key_pem(key)


def is_old(certificate: x509.Certificate | bytes, now: datetime) -> bool:
    """Return whether a certificate expires soon, so that a new one is due."""
    found = certificate if isinstance(certificate, x509.Certificate) else x509.load_pem_x509_certificate(certificate)
    return found.not_valid_after_utc <= now + timedelta(days=_RENEW_DAYS)


def _leaf_validity(now: datetime) -> Validity:
    return now - _BACKDATED, now + timedelta(days=_LEAF_DAYS)


def _leaf(key: Key, subject: x509.Name, names: Iterable[str], validity: Validity) -> x509.CertificateBuilder:
    """A certificate without an issuer: of a server if it has names, else of a client."""
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


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def read_key(path: Path) -> Key:
    """A private key; raises `UnusableAuthority`."""
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


def new_key() -> bytes:
    """A new private key as PEM."""
    return _key_pem(ec.generate_private_key(ec.SECP256R1()))


def _key_pem(key: Key) -> bytes:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)


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
