"""Runs a real etcd and kube-apiserver on loopback for the length of a `with` block.

Everything they need is made in one directory that the caller gives: certificates and the service account key (kube-apiserver
makes both itself), the token of the one user, the kubeconfig, the logs and the data. Rules: every program started here is
ended here, by its own process id, and dies with this process if that is killed; the data goes when the block ends, the
logs stay for whoever reads a failure.
"""

import json
import secrets
import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from paddock.base.errors import Transient
from tests.reference.build import Binaries

Started = TypeVar("Started")

START_SECONDS = 600.0
STOP_SECONDS = 15.0
POLL_SECONDS = 0.05
# A port is chosen by asking for a free one and letting it go, so somebody else can take it before the program does.
ATTEMPTS = 3

# Admission that would look at other objects, or add to ours, is of no interest here: the schema and the rules are.
DISABLED_ADMISSION = ("NamespaceLifecycle", "ServiceAccount", "LimitRanger", "Priority", "DefaultStorageClass", "ResourceQuota")


class StartFailed(Transient):
    """A program ended or did not get ready; the end of its log is part of the message."""

    def __init__(self, program: str, why: str, log: Path) -> None:
        tail = log.read_text(errors="replace").splitlines()[-20:] if log.exists() else []
        super().__init__(f"cannot start {program}", why="\n".join([why, *tail]), fix=f"the whole log is in {log}")
        self.program = program
        self.log = log


@dataclass(frozen=True)
class Access:
    """The administrator's access to a running server."""

    url: str
    token: str
    authority: Path
    kubeconfig: Path

    def tls(self) -> ssl.SSLContext:
        """A context that trusts this server and nothing else."""
        return ssl.create_default_context(cafile=str(self.authority))


@dataclass(frozen=True)
class Rules:
    """The rights on a server: everything for everybody, unless a test is about rights."""

    authorization: str = "AlwaysAllow"
    # lines of the token file, beside the administrator's
    users: tuple[str, ...] = ()
    admission: tuple[str, ...] = ()
    # more flags of kube-apiserver
    flags: tuple[str, ...] = ()


@contextmanager
def running(binaries: Binaries, directory: Path, rules: Rules = Rules()) -> Iterator[Access]:
    """etcd and kube-apiserver, ready; both are gone when the block ends."""
    with ExitStack() as programs:
        programs.callback(shutil.rmtree, directory / "etcd", ignore_errors=True)
        store = _attempt(lambda: _start_etcd(binaries, directory, programs))
        yield _attempt(lambda: _start_apiserver(binaries, directory, store, programs, rules))


def _attempt(start: Callable[[], Started]) -> Started:
    for _ in range(ATTEMPTS - 1):
        try:
            return start()
        except StartFailed as problem:
            if "address already in use" not in str(problem):
                raise
    return start()


def _start_etcd(binaries: Binaries, directory: Path, programs: ExitStack) -> str:
    client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
    command = [
        str(binaries.etcd),
        f"--data-dir={directory / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--log-level=warn",
        # The data is thrown away, so nothing is gained by waiting for the disk.
        "--unsafe-no-fsync",
    ]
    log = directory / "etcd.log"
    process = programs.enter_context(launched(command, log))
    wait_ready("etcd", process, log, lambda: b"true" in probe(f"{client}/health"))
    return client


def _start_apiserver(binaries: Binaries, directory: Path, store: str, programs: ExitStack, rules: Rules) -> Access:
    certificates = directory / "certificates"
    (port,) = free_ports(1)
    url = f"https://127.0.0.1:{port}"
    token = secrets.token_hex(16)
    tokens = directory / "tokens.csv"
    tokens.write_text("\n".join([f'{token},admin,admin,"system:masters"', *rules.users, ""]))
    tokens.chmod(0o600)
    command = [
        str(binaries.kube_apiserver),
        f"--etcd-servers={store}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        # Loopback is no address for the endpoints of the `kubernetes` Service, and nobody asks for them.
        "--endpoint-reconciler-type=none",
        f"--secure-port={port}",
        f"--cert-dir={certificates}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={certificates / 'apiserver.key'}",
        f"--service-account-key-file={certificates / 'apiserver.key'}",
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--token-auth-file={tokens}",
        f"--authorization-mode={rules.authorization}",
        f"--disable-admission-plugins={','.join(DISABLED_ADMISSION)}",
        f"--enable-admission-plugins={','.join(rules.admission)}",
        "--enable-priority-and-fairness=false",
        "--profiling=false",
        *rules.flags,
    ]
    log = directory / "kube-apiserver.log"
    process = programs.enter_context(launched(command, log))
    authority = certificates / "apiserver.crt"
    access = Access(url, token, authority, write_kubeconfig(directory / "kubeconfig", url, token, authority))
    wait_ready("kube-apiserver", process, log, lambda: authority.exists() and probe(f"{url}/readyz", access) == b"ok")
    return access


@contextmanager
def launched(command: Sequence[str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A running program that cannot outlive this process: the kernel kills it when its parent is gone."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *command],
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_ready(program: str, process: "subprocess.Popen[bytes]", log: Path, ready: Callable[[], bool]) -> None:
    """Returns when a program is ready, and fails with the end of its log when it ends or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise StartFailed(program, f"it ended with code {process.returncode}", log)
        try:
            if ready():
                return
        except (OSError, urllib.error.URLError):
            pass
        time.sleep(POLL_SECONDS)
    raise StartFailed(program, f"it was not ready after {START_SECONDS:.0f} seconds", log)


def probe(url: str, access: Access | None = None) -> bytes:
    """The body of an answer; every other outcome is an `OSError`."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {access.token}"} if access else {})
    # An empty proxy table: a proxy in the environment is for the world outside, not for loopback.
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if access:
        handlers.append(urllib.request.HTTPSHandler(context=access.tls()))
    with urllib.request.build_opener(*handlers).open(request, timeout=5) as answer:
        body: bytes = answer.read()
        return body


def free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def write_kubeconfig(path: Path, url: str, token: str, authority: Path) -> Path:
    """The kubeconfig of one who has a token."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "oracle", "cluster": {"server": url, "certificate-authority": str(authority)}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "oracle", "context": {"cluster": "oracle", "user": "admin"}}],
        "current-context": "oracle",
    }
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    return path
