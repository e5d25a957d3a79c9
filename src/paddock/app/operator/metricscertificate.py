"""The certificate that the metrics are served with: files that may change at any time, or one of the operator's own.

One of its own encrypts and proves nothing: it is signed by no authority, lives in memory, and is another one after each start.
"""

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from paddock.app.operator.settings import MetricsSecurity
from paddock.base import certificates
from paddock.base.clock import Clock
from paddock.base.errors import PaddockError, Terminal
from paddock.server.security import signing, tls

_LOG = logging.getLogger(__name__)
# How soon a certificate that was renewed is in use.
_AGAIN_SECONDS = 60.0


class OwnCertificate:
    """A certificate of the operator's own, made anew before it expires."""

    def __init__(self, names: Sequence[str], clock: Clock) -> None:
        self.context = tls.server_context()
        self._names = names
        self._clock = clock
        self._certificate = b""
        self.refresh()

    def refresh(self) -> bool:
        """Make a certificate if there is none that stays valid; says whether it did."""
        now = datetime.fromtimestamp(self._clock.seconds(), UTC)
        if self._certificate and not signing.is_old(self._certificate, now):
            return False
        self._certificate, key = signing.self_signed(self._names[0], self._names, now)
        certificates.show(self.context, self._certificate, key)
        return True


MetricsCertificate = OwnCertificate | tls.ServingContext


def find(security: MetricsSecurity, hostname: str, clock: Clock) -> MetricsCertificate:
    """Return the certificate that the settings name. Raises `Terminal` for files that cannot be served."""
    folder = security.folder
    if folder is None:
        return OwnCertificate((hostname, "localhost"), clock)
    try:
        return tls.ServingContext(lambda: (folder / security.certificate, folder / security.key), None)
    except PaddockError as problem:
        fix = f"put {security.certificate} and {security.key} into {folder}, or leave --metrics-cert-path out"
        raise Terminal("cannot serve the metrics over TLS", why=str(problem), fix=fix) from problem


async def keep_fresh(certificate: MetricsCertificate) -> None:
    """Until cancelled: what changed is served from the next connection on, and what is broken changes nothing."""
    reported = ""
    while True:
        await asyncio.sleep(_AGAIN_SECONDS)
        try:
            if certificate.refresh():
                _LOG.info("metrics certificate renewed")
            reported = ""
        except PaddockError as problem:
            if str(problem) != reported:
                _LOG.warning("metrics certificate unusable; the previous one stays in use", extra={"error": str(problem)})
            reported = str(problem)
