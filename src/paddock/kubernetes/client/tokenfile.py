"""Tokens that live in a file which somebody else renews."""

from pathlib import Path

from paddock.base.clock import Clock
from paddock.kubernetes.client.access import ClientCertificate, Credential, bearer
from paddock.kubernetes.client.errors import BadAccess
from paddock.kubernetes.client.transport import Headers

# How old what was read may be. Kubelets renew a token when four fifths of its life are over, so a minute is early enough.
_FRESH_SECONDS = 60.0


class TokenFile:
    """Reads its file again every minute, and after a refusal."""

    def __init__(self, path: Path, clock: Clock, extra: Headers = (), certificate: ClientCertificate | None = None) -> None:
        self._path = path
        self._clock = clock
        self._extra = extra
        self._certificate = certificate
        self._read_at = float("-inf")
        self._credential = Credential()

    async def current(self) -> Credential:
        """The token of the file. A file that cannot be read now does not spoil the token that was read before."""
        now = self._clock.seconds()
        if abs(now - self._read_at) >= _FRESH_SECONDS:
            try:
                token = self._path.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                if not self._credential.headers:
                    raise BadAccess(f"cannot read the token file {self._path}", why=str(error)) from error
            else:
                if not token:
                    raise BadAccess(f"the token file {self._path} is empty")
                self._credential = self._of(token)
            self._read_at = now
        return self._credential

    def refused(self, credential: Credential) -> bool:
        """Read again now; worth a second try when the file holds another token."""
        self._read_at = float("-inf")
        try:
            token = self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return False
        return self._of(token) != credential

    def _of(self, token: str) -> Credential:
        return Credential((*bearer(token).headers, *self._extra), self._certificate)
