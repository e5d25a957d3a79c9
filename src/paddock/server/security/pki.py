"""The server's own certificate authority, its serving certificate, and client certificates.

They lie in files that only their owner can read. What exists is kept; what is missing, wrong or about to expire is made anew, so that a
start repairs a deleted or an old certificate and never changes the authority that clients trust.
"""

import ipaddress
import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from paddock.base import certificates
from paddock.base.certificates import Pair, PeerCertificate

if TYPE_CHECKING:
    from cryptography import x509

    from paddock.server.security.signing import CertificateSigner

_SERVICE_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")


class Authority:
    """A certificate authority in a directory."""

    def __init__(self, folder: Path, now: Callable[[], datetime] = lambda: datetime.now(UTC), *, name: str = "paddock-ca") -> None:
        """`name`: that of a new authority."""
        self._folder = folder
        self._now = now
        self._name = name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        self.certificate_file, self._key_file = self._files = folder / "ca.crt", folder / "ca.key"
        if not self._key_file.exists() or not self.certificate_file.exists():
            self._create()
        if not certificates.is_pair(self._files):
            # Raises `UnusableAuthority`, which says what is wrong.
            _ = self._signer

    @cached_property
    def _signer(self) -> "CertificateSigner":
        from paddock.server.security import signing  # noqa: PLC0415 - loads 11 MB, and most starts sign nothing

        return signing.CertificateSigner(*self._files, self._now)

    @property
    def certificate(self) -> bytes:
        """The authority's certificate as PEM."""
        return self.certificate_file.read_bytes()

    def _create(self) -> None:
        from paddock.server.security import signing  # noqa: PLC0415 - as `_signer` says

        self._write(self._files, signing.new_authority(self._name, self._now()))
        # A new authority signs at once. The library is loaded, so read the files now.
        _ = self._signer

    def server(self, names: Iterable[str]) -> Pair:
        """The serving certificate and its key, for these host names and addresses."""
        wanted = sorted({_canonical(name) for name in (*names, *_SERVICE_NAMES, "localhost", "127.0.0.1", "::1")})
        files = self._folder / "server.crt", self._folder / "server.key"
        found = self._examine(files, of_client=False)
        if found is None or sorted(_canonical(name) for _, name in found.get("subjectAltName", ())) != wanted:
            self._write(files, self._signer.server("paddock-apiserver", wanted))
        return files

    def administrator(self, user: str, group: str) -> tuple[bytes, bytes]:
        """The client certificate that the server keeps for its administrator, and its key, as PEM."""
        files = self.kept_client("admin", user, group)
        return files[0].read_bytes(), files[1].read_bytes()

    def kept_client(self, stem: str, user: str, group: str) -> Pair:
        """A client certificate that the server keeps in files of this name, and its key."""
        files = self._folder / f"{stem}.crt", self._folder / f"{stem}.key"
        found = self._examine(files, of_client=True)
        subject = ((("organizationName", group),), (("commonName", user),))
        if found is None or found["subject"] != subject:
            self._write(files, self._signer.client(user, (group,)))
        return files

    def client(self, user: str, groups: Iterable[str] = ()) -> tuple[bytes, bytes]:
        """A new client certificate and its key as PEM."""
        return self._signer.client(user, groups)

    def of_once(self, name: str) -> "tuple[CertificateSigner, bytes]":
        """Return another authority in memory, and its certificate as PEM. Nothing of it is kept."""
        return self._signer.of_once(name, self._now())

    def sign_client(self, request: "x509.CertificateSigningRequest", duration: timedelta) -> bytes:
        """Sign a client certificate for a certificate signing request, of which only the subject and the public key count."""
        return self._signer.sign_client(request, duration)

    def _examine(self, files: Pair, *, of_client: bool) -> PeerCertificate | None:
        """Return a certificate if it may be kept; None if it is invalid or expires soon."""
        found = certificates.examine(files, self._files, of_client=of_client)
        return None if found is None or certificates.is_old(found, self._now()) else found

    def _write(self, files: Pair, made: tuple[bytes, bytes]) -> None:
        certificate, key = made
        write_private(files[1], key)
        files[0].write_bytes(certificate)


def _canonical(name: str) -> str:
    """Return a host name as it is, and an IP address in its canonical form."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name


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
