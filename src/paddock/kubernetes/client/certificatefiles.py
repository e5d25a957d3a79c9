"""A client certificate in files that somebody else renews."""

from pathlib import Path

from paddock.base.clock import Clock
from paddock.kubernetes.client.access import ClientCertificate, Credential
from paddock.kubernetes.client.errors import BadAccess
from paddock.kubernetes.client.transport import Headers

_FRESH_SECONDS = 60.0


class CertificateFiles:
    """Reads its files again every minute. A pair that is half written, or cannot be read now, is left for the next time."""

    def __init__(self, certificate: Path, key: Path, clock: Clock, extra: Headers = ()) -> None:
        self._certificate = certificate
        self._key = key
        self._clock = clock
        self._extra = extra
        self._credential = self._read()
        self._read_at = clock.seconds()

    async def current(self) -> Credential:
        """The certificate of the files."""
        now = self._clock.seconds()
        if abs(now - self._read_at) >= _FRESH_SECONDS:
            self._read_at = now
            before = self._changed
            try:
                found = self._read()
            except BadAccess:
                return self._credential
            if self._changed == before:
                self._credential = found
        return self._credential

    def refused(self, credential: Credential) -> bool:
        """Read again now; worth a second try when the files hold another certificate."""
        try:
            found = self._read()
        except BadAccess:
            return False
        self._credential = found
        return found != credential

    @property
    def _changed(self) -> tuple[int, ...]:
        return tuple(path.stat().st_mtime_ns if path.exists() else 0 for path in (self._certificate, self._key))

    def _read(self) -> Credential:
        try:
            pair = ClientCertificate(self._certificate.read_bytes(), self._key.read_bytes())
        except OSError as error:
            raise BadAccess("cannot read the client certificate of the kubeconfig", why=str(error)) from error
        return Credential(self._extra, pair)
