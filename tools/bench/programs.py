"""The servers that are measured: Paddock, and kube-apiserver with etcd. Started, asked what they cost, stopped.

Both get the same: TLS, a user with a static token, and RBAC that gives this user everything by a binding. Every program is
ended by its own process id, and dies with this one.
"""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tests.reference import build
from tests.reference.build import Binaries, Recipe
from tools.bench.client import LoadFailed, Target, call
from tools.bench.offline import environment

# The store of k3s, which keeps what kube-apiserver writes in SQLite. Its driver is written in C.
KINE = Recipe(
    name="kine",
    module=Path(__file__).parent / "kine",
    programs=(build.Program("kine", "github.com/k3s-io/kine"),),
    release="github.com/k3s-io/kine",
    variables=(),
    command=("env", "CGO_ENABLED=1", *build.BUILD),
)
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_READY_SECONDS = 120.0
# One user drives all the load, and must not wait for others.
_INFLIGHT = ("--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000")


def cpu_seconds(pid: int, *, children: bool = False) -> float:
    """Return the CPU time of a process, user and system; with `children`, those that ended count, too."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11 : 15 if children else 13])) / _TICKS


def pss(pid: int) -> int:
    """Return the memory of a process; what it shares counts in parts."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def resident(pid: int) -> int:
    """Return the resident bytes of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE


class Program:
    """A running process."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *command],
                env=environment(log.parent / "bytecode"),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self._log = log

    def cpu(self) -> float:
        """Seconds of user and system time so far."""
        return cpu_seconds(self._process.pid)

    def resident(self) -> float:
        """Resident bytes."""
        return resident(self._process.pid)

    def check(self) -> None:
        """Raise when it has ended."""
        if self._process.poll() is not None:
            raise LoadFailed(f"a server ended with {self._process.returncode}: {self._log.read_text()[-2000:]}")

    def stop(self) -> None:
        """End it and wait."""
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Server(Protocol):
    """One of the two."""

    name: str
    target: Target

    def start(self) -> float:
        """Come up, with what was stored; seconds from the start of the program until it says that it is ready."""

    def stop(self) -> None:
        """Go down; what is stored stays."""

    def cpu(self) -> float:
        """Seconds of CPU so far, all processes together."""

    def resident(self) -> dict[str, float]:
        """Resident bytes by process."""

    def close(self) -> None:
        """Go down for good."""


def free_port() -> int:
    """A port that nobody has."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _tokens(directory: Path) -> tuple[Path, str, str]:
    """A token file with the administrator and with the user of the loads."""
    admin, user = secrets.token_hex(16), secrets.token_hex(16)
    path = directory / "tokens.csv"
    path.write_text(f'{admin},admin,admin,"system:masters"\n{user},bench,bench,"bench"\n')
    path.chmod(0o600)
    return path, admin, user


def _wait_ready(target: Target, program: Program) -> None:
    end = time.monotonic() + _READY_SECONDS
    while time.monotonic() < end:
        program.check()
        try:
            if call(target, "GET", "/readyz")[0] == 200:
                return
        except (OSError, LoadFailed):
            pass
        time.sleep(0.005)
    raise LoadFailed("a server did not get ready")


def permit(target: Target, namespace: str) -> None:
    """Give the user of the loads every right, and make the namespace they work in."""
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "bench"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "name": "bench", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    places = (("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding), ("/api/v1/namespaces", made))
    for path, document in places:
        status, answer = call(target, "POST", path, json.dumps(document).encode())
        if status != 201:
            raise LoadFailed(f"{path}: {answer!r}")


class Paddock:
    """`paddock apiserver`, as it is installed."""

    name = "paddock"

    def __init__(self, directory: Path, command: str = "apiserver", inflight: Sequence[str] = _INFLIGHT) -> None:
        self._directory = directory
        self._inflight = inflight
        self._tokens, self._admin, user = _tokens(directory)
        self._program: Program | None = None
        self._command = command
        self.target = Target("127.0.0.1", free_port(), user)

    @property
    def admin(self) -> Target:
        """The same server for its administrator."""
        return Target(self.target.host, self.target.port, self._admin)

    def start(self) -> float:
        program = str(Path(sys.executable).parent / "paddock")
        options = ["--dir", str(self._directory / "data"), "--listen", f"127.0.0.1:{self.target.port}", "--token-file", str(self._tokens)]
        began = time.perf_counter()
        self._program = Program([program, self._command, *options, *self._inflight], self._directory / "paddock.log")
        _wait_ready(self.target, self._program)
        return time.perf_counter() - began

    def stop(self) -> None:
        if self._program is not None:
            self._program.stop()
            self._program = None

    close = stop

    def cpu(self) -> float:
        assert self._program is not None
        return self._program.cpu()

    def resident(self) -> dict[str, float]:
        assert self._program is not None
        return {"paddock": self._program.resident()}


def _etcd(program: Path, directory: Path, port: int) -> list[str]:
    """The command of an etcd that makes its writes durable."""
    client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{free_port()}"
    return [
        str(program),
        f"--data-dir={directory / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--log-level=warn",
    ]


def _kine(program: Path, directory: Path, port: int) -> list[str]:
    """The command of a kine with the options that k3s gives to SQLite."""
    database = f"sqlite://{directory / 'state.db'}?_journal=WAL&cache=shared&_busy_timeout=30000&_txlock=immediate"
    return [str(program), f"--listen-address=127.0.0.1:{port}", f"--endpoint={database}", "--metrics-bind-address=0"]


class Reference:
    """kube-apiserver with a store: etcd, or `kine`, which is given the program of it."""

    def __init__(self, binaries: Binaries, directory: Path, kine: Path | None = None) -> None:
        self._binaries = binaries
        self._directory = directory
        self._tokens, self._admin, user = _tokens(directory)
        self._etcd_port = free_port()
        self._store = "etcd" if kine is None else "kine"
        command = _etcd(binaries.etcd, directory, self._etcd_port) if kine is None else _kine(kine, directory, self._etcd_port)
        self.name = f"kube-apiserver with {self._store}"
        self._etcd = Program(command, directory / f"{self._store}.log")
        self._apiserver: Program | None = None
        self.target = Target("127.0.0.1", free_port(), user)

    @property
    def admin(self) -> Target:
        """The same server for its administrator."""
        return Target(self.target.host, self.target.port, self._admin)

    def start(self) -> float:
        certificates = self._directory / "certificates"
        command = [
            str(self._binaries.kube_apiserver),
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--secure-port={self.target.port}",
            f"--cert-dir={certificates}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={certificates / 'apiserver.key'}",
            f"--service-account-key-file={certificates / 'apiserver.key'}",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--token-auth-file={self._tokens}",
            "--authorization-mode=RBAC",
            *_INFLIGHT,
            # Nobody runs the controller that makes these accounts.
            "--disable-admission-plugins=ServiceAccount",
        ]
        began = time.perf_counter()
        self._apiserver = Program(command, self._directory / "kube-apiserver.log")
        _wait_ready(self.target, self._apiserver)
        return time.perf_counter() - began

    def stop(self) -> None:
        if self._apiserver is not None:
            self._apiserver.stop()
            self._apiserver = None

    def close(self) -> None:
        self.stop()
        self._etcd.stop()

    def cpu(self) -> float:
        assert self._apiserver is not None
        return self._apiserver.cpu() + self._etcd.cpu()

    def resident(self) -> dict[str, float]:
        assert self._apiserver is not None
        return {"kube-apiserver": self._apiserver.resident(), self._store: self._etcd.resident()}
