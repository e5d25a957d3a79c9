"""TLS of the server: what it speaks, with which certificate, and whose client certificates it takes.

TLS 1.2 and 1.3, and of the ciphers of 1.2 only those with forward secrecy and authenticated encryption. The certificate is read
again when its file has changed, so that a renewed one is used by the next connection without a restart.
"""

import ssl
from collections.abc import Callable
from pathlib import Path

from paddock.base.certificates import Pair
from paddock.base.errors import Terminal

_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
VERSIONS = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}


class UnusableCertificate(Terminal):
    """A certificate cannot be served."""


def server_context(least: str = "VersionTLS12") -> ssl.SSLContext:
    """Return a context that shows no certificate yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSIONS[least]
    context.set_ciphers(_CIPHERS)
    # Without compression no secret can be guessed from lengths; without renegotiation nobody can make the server work for free.
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.set_alpn_protocols(["http/1.1"])
    return context


class ServingContext:
    """The context that connections are made with. `pair` names the certificate to use now."""

    def __init__(self, pair: Callable[[], Pair], clients: Path | None, least: str = "VersionTLS12") -> None:
        self._pair = pair
        self.context = server_context(least)
        if clients is not None:
            self._welcome(clients)
        self._seen: tuple[object, ...] = ()
        self.refresh()

    def _welcome(self, clients: Path) -> None:
        try:
            self.context.load_verify_locations(clients)
        except (OSError, ssl.SSLError) as error:
            raise UnusableCertificate(f"cannot read the authority of clients in {clients}", why=str(error)) from None
        # Welcome, and not demanded: others come with tokens.
        self.context.verify_mode = ssl.CERT_OPTIONAL

    def refresh(self) -> bool:
        """Take the certificate of now, if it is another one; says whether it was. A bad one changes nothing and is an error."""
        certificate, key = self._pair()
        seen = (certificate, _changed(certificate), key, _changed(key))
        if seen == self._seen:
            return False
        try:
            # A pair that does not fit must not reach the context that is at work.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
            self.context.load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as error:
            raise UnusableCertificate(f"cannot serve the certificate {certificate} with the key {key}", why=str(error)) from None
        self._seen = seen
        return True


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
