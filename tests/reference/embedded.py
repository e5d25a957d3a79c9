"""Runs the embedded server as a user does: `paddock apiserver` as a program of its own, on a free port of loopback.

It serves whoever tests it with real clients: `serving` is the server for the length of a `with` block, and an `Embedded` says
where it is, is an `Access` for the tools of these tests, and can be ended and started again on the same address with what it
stored. Two users exist: the administrator of the kubeconfig (a client certificate), and one of the same rights with a token.
Further users come with their lines for the token file.
"""

import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests.reference.server import Access, launched, probe, wait_ready

FREE_PORT = "127.0.0.1:0"


@dataclass
class Embedded:
    """One directory and the server that works in it."""

    root: Path
    command: str = "apiserver"
    arguments: Sequence[str] = ()
    users: Sequence[str] = ()
    _token: str = field(default_factory=lambda: secrets.token_hex(16))
    _listen: str = FREE_PORT
    _program: ExitStack | None = None
    _process: "subprocess.Popen[bytes] | None" = None
    _starts: int = 0

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig, as `paddock` wrote it."""
        return self.root / "kubeconfig"

    @property
    def log(self) -> Path:
        """The server's output since its last start."""
        return self.root.parent / f"{self.root.name}-{self._starts}.log"

    @property
    def access(self) -> Access:
        """The access of the administrator, with a token as the second credential."""
        return Access(f"https://{self._listen}", self._token, self.root / "pki" / "ca.crt", self.kubeconfig)

    def start(self) -> None:
        """Come up, and be ready when this returns; the address of an earlier start is kept."""
        self._starts += 1
        tokens = self.root.parent / f"{self.root.name}-tokens.csv"
        tokens.write_text("\n".join([f'{self._token},token-admin,token-admin,"system:masters"', *self.users, ""]))
        tokens.chmod(0o600)
        command = [sys.executable, "-m", "paddock.app", self.command, "--dir", str(self.root), "--listen", self._listen]
        with ExitStack() as program:
            process = program.enter_context(launched([*command, "--token-file", str(tokens), *self.arguments], self.log))
            wait_ready("paddock", process, self.log, self._is_ready)
            self._process = process
            self._program = program.pop_all()

    def stop(self) -> None:
        """End it as SIGTERM does; what it stored stays."""
        if self._program is not None:
            self._program.close()
            self._program = None

    def kill(self) -> None:
        """End it as a crash does, with nothing finished."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self.stop()

    def restart(self) -> None:
        """End it and start it again on the same address."""
        self.stop()
        self.start()

    def _is_ready(self) -> bool:
        if self._listen == FREE_PORT:
            said = self.log.read_text().partition("paddock: ready at ")[2].split(";")[0]
            if not said:
                return False
            self._listen = urlsplit(said).netloc
        return probe(f"{self.access.url}/readyz", self.access) == b"ok"


@contextmanager
def serving(root: Path, *arguments: str, command: str = "apiserver", users: Sequence[str] = ()) -> Iterator[Embedded]:
    """A server in a directory that it makes, ready; gone when the block ends."""
    server = Embedded(root, command, arguments, users)
    try:
        server.start()
        yield server
    finally:
        server.stop()
