"""VirtRigaud's own programs, and Paddock's beside them, for the length of a `with` block."""

import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from tests.reference.server import free_ports

PATIENCE = 60.0


class Provider:
    """A provider that runs, its address, and how it is killed."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
        self._process = process
        self.port = port
        self.log = log

    @property
    def address(self) -> str:
        """The address it listens at."""
        return f"127.0.0.1:{self.port}"

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()
        self._process.wait()


def with_files(files: Mapping[str, Path]) -> list[str]:
    """Return the words before a command that lay files and folders over those of this machine, for the command alone; it takes root."""
    mounts = "".join(
        f"mkdir -p {shlex.quote(at)} 2>/dev/null; mount --bind {shlex.quote(str(path))} {shlex.quote(at)} && " for at, path in files.items()
    )
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", f'{mounts} exec "$@"', "sh"]


@contextmanager
def running(command: list[str], log: Path, environment: Mapping[str, str], port: int) -> Iterator[Provider]:
    """A provider that listens at a port of loopback; gone when the block ends."""
    with log.open("wb") as output:
        words = ["setpriv", "--pdeathsig", "KILL", "--", *command]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={**os.environ, **environment})
    try:
        end = time.monotonic() + PATIENCE
        while not _answers(port):
            assert process.poll() is None and time.monotonic() < end, log.read_text()[-3000:]
            time.sleep(0.1)
        yield Provider(process, port, log)
    finally:
        process.kill()
        process.wait()


@contextmanager
def theirs(
    program: Path, directory: Path, tls: Path | None = None, clients: str = "", environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Provider]:
    """A provider of upstream's: in plain text, or with the certificates of a folder for the clients of these names."""
    (port,) = free_ports(1)
    given = {"VIRTRIGAUD_PROVIDER_TLS": str(tls), "VIRTRIGAUD_PROVIDER_ALLOWED_SANS": clients} if tls is not None else {}
    plain = {} if tls is not None else {"VIRTRIGAUD_PROVIDER_INSECURE": "true"}
    words = [str(program)]
    if program.name != "provider-mock":
        words = [*with_files({"/etc/virtrigaud/credentials": directory / "credentials"}), *words, "--port", str(port)]
    everything = {"VIRTRIGAUD_PROVIDER_PORT": str(port), **given, **plain, **environment}
    with running(words, directory / f"{program.name}.log", everything, port) as provider:
        yield provider


@contextmanager
def ours(kind: str, directory: Path, tls: Path | None = None, *options: str, **environment: str) -> Iterator[Provider]:
    """A provider of Paddock's of some type, in plain text or with the certificates of a folder."""
    (port,) = free_ports(1)
    security = ["--tls-dir", str(tls)] if tls is not None else ["--insecure"]
    words = ["provider", "serve", f"--type={kind}", "--address=127.0.0.1", f"--port={port}", "--health-port=0", *security, *options]
    with running([sys.executable, "-m", "paddock.app", *words], directory / f"{kind}.log", environment, port) as provider:
        yield provider


def _answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
