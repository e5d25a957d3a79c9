"""TLS between a manager and its providers (docs/spec/virtrigaud.md section 3.7): 1.3 alone, certificates on both sides.

One Secret serves both: `tls.crt`, `tls.key` and `ca.crt`. The provider demands a certificate of that authority, of an allowed name if
it has a list. The manager demands the pinned name of the provider, whatever address it dials.
"""

import hashlib
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from paddock.base import certificates
from paddock.base.errors import Terminal

FOLDER = Path("/etc/virtrigaud/tls")
INSECURE = "VIRTRIGAUD_PROVIDER_INSECURE"
ALLOWED = "VIRTRIGAUD_PROVIDER_ALLOWED_SANS"
_LONGEST_NAME = 63


class UnusableTls(Terminal):
    """TLS material that is missing or broken."""


class TlsMaterial(msgspec.Struct, frozen=True):
    """A certificate with its key, and the authority of the other side (all PEM)."""

    certificate: bytes
    key: bytes
    authority: bytes

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<hidden>)"


def service_name(namespace: str, name: str) -> str:
    """The name of a provider's Deployment and Service. One that is too long for a Service ends with a digest of the whole."""
    full = f"virtrigaud-provider-{namespace}-{name}"
    if len(full) <= _LONGEST_NAME:
        return full
    digest = hashlib.sha256(full.encode()).hexdigest()[:8]
    return f"{full[: _LONGEST_NAME - 9].rstrip('-.')}-{digest}"


def server_name(namespace: str, name: str) -> str:
    """The name in a provider's certificate, which its managers demand."""
    return f"{service_name(namespace, name)}.{namespace}.svc.cluster.local"


def client_context(material: TlsMaterial, *, verify: bool = True) -> ssl.SSLContext:
    """A manager's context. Without `verify` it takes any certificate, for development."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _harden(context)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        _trust(context, material.authority)
    _show(context, material)
    return context


class ServerTls:
    """A provider's context, over the files of a folder. A renewed certificate counts for the next connection."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._material = _read(folder)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        _harden(self.context)
        self.context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
        _trust(self.context, self._material.authority)
        self.context.verify_mode = ssl.CERT_REQUIRED
        _show(self.context, self._material)

    def refresh(self) -> bool:
        """Use the certificate of now, and return true if it is another one. A bad one changes nothing and raises `UnusableTls`.

        Another authority needs a restart: OpenSSL would trust the old one, too.
        """
        found = _read(self._folder)
        if (found.certificate, found.key) == (self._material.certificate, self._material.key):
            return False
        # A pair that does not fit must not reach the context that is at work.
        _show(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), found)
        _show(self.context, found)
        self._material = found
        return True


def server_tls(folder: Path, environment: Mapping[str, str]) -> ServerTls | None:
    """Return the TLS of a provider, None if its environment asks for plain text; raise `UnusableTls` in all doubt."""
    missing = [name for name in _FILES if not (folder / name).is_file()]
    if not missing:
        return ServerTls(folder)
    if len(missing) < len(_FILES):
        raise UnusableTls(f"cannot serve with the TLS files in {folder}", why=f"missing: {', '.join(missing)}")
    if environment.get(INSECURE, "").strip().lower() == "true":
        return None
    raise UnusableTls(
        f"cannot serve without TLS files in {folder}",
        fix=f"provide {', '.join(_FILES)}, or set {INSECURE}=true to serve in plain text",
    )


def allowed_names(environment: Mapping[str, str]) -> frozenset[str]:
    """The names of which a client's certificate must have one; none means any certificate of the authority."""
    return frozenset(name for each in environment.get(ALLOWED, "").split(",") if (name := each.strip()))


def names_of(peer: Mapping[str, Any]) -> frozenset[str]:
    """The names in a certificate, as Python's ssl gives it: DNS names, URIs and the common name."""
    found = {value for kind, value in peer.get("subjectAltName", ()) if kind in ("DNS", "URI")}
    found |= {value for part in peer.get("subject", ()) for key, value in part if key == "commonName"}
    return frozenset(found)


_FILES = ("tls.crt", "tls.key", "ca.crt")


def _read(folder: Path) -> TlsMaterial:
    try:
        return TlsMaterial(*((folder / name).read_bytes() for name in _FILES))
    except OSError as error:
        raise UnusableTls(f"cannot read the TLS files in {folder}", why=str(error)) from None


def _harden(context: ssl.SSLContext) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.options |= ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols(["h2"])


def _trust(context: ssl.SSLContext, authority: bytes) -> None:
    try:
        context.load_verify_locations(cadata=authority.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, ValueError):
        raise UnusableTls("cannot use the TLS authority", why="ca.crt holds no certificate") from None


def _show(context: ssl.SSLContext, material: TlsMaterial) -> None:
    try:
        certificates.show(context, material.certificate, material.key)
    except (ssl.SSLError, OSError):
        raise UnusableTls("cannot use the TLS certificate", why="tls.crt and tls.key are not a certificate and its key") from None
