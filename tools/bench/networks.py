"""Streams of guests, as root and as an ordinary user, in turns on one host made of network namespaces.

A stream is a number of zeros by one TCP connection. CPU is that of QEMU, the responder and pasta; that of the kernel for somebody else, as
for whoever is outside, is left out on both sides.
"""

import json
import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from paddock.base.images.build import places, tiny
from paddock.engine.machine.process import holders
from tests.host.networks.namespaces import Child, Lab
from tests.host.runs.unprivileged import Unprivileged, become
from tools.bench.offline import Figure
from tools.bench.programs import cpu_seconds

_MIB = 1 << 20
_TURNS, _SIZE, _QUICK = 5, 256, 64
_USER = 61_238
_OUTSIDE, _HOST = "198.51.100.1", "198.51.100.2"
_SINK, _SOURCE, _LISTENING = 5001, 5002, 7001
_BY_PORT = ", by a node port"


class _Side:
    """One way to run Paddock, with two guests: one sends and takes zeros, the other asks for it."""

    def __init__(self, user: Unprivileged, size: int, node: tuple[int, int]) -> None:
        """`node`: the ports of the host that lead to a sink and to a source."""
        self._user = user
        self.node = node
        self._size = size
        user.root = user.home / "state"
        user._environment |= {"PADDOCK_DIR": str(user.root), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
        self.address = ""

    def start(self, disk: Path) -> None:
        """Have both guests run, and a Service for the first."""
        self._user.paddock("up", "--detach", "--listen", "127.0.0.1:0")
        for name in ("web", "asker"):
            self._user.paddock("run", str(disk), "--name", name, "--memory", "256Mi")
        sink = f"nc -ll -p {_SINK} -e dd of=/dev/null bs=256k </dev/null >/dev/null 2>&1 &"
        source = f"nc -ll -p {_SOURCE} -e dd if=/dev/zero bs=256k count={4 * self._size} </dev/null >/dev/null 2>&1 &"
        self._user.paddock("exec", "web", "--", "sh", "-c", f"{sink} {source}")
        ports = [{"name": str(port), "port": port, "nodePort": node} for port, node in zip((_SINK, _SOURCE), self.node, strict=True)]
        spec = {"type": "NodePort", "selector": {"vm.kubevirt.io/name": "web"}, "ports": ports}
        made = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec}
        path = self._user.home / "service.json"
        path.write_text(json.dumps(made))
        self._user.kubectl("apply", "-f", str(path))
        self.address = json.loads(self._user.kubectl("get", "vmi", "web", "-o", "json"))["status"]["interfaces"][0]["ipAddress"]
        time.sleep(2)

    def stop(self) -> None:
        """End everything."""
        self._user.run([*self._user.program, "down", "--purge", "--yes"])

    def asked(self, name: str, command: str) -> float:
        """The seconds that a command takes in a guest."""
        clock = "cut -d' ' -f1 /proc/uptime"
        said = self._user.paddock("exec", name, "--", "sh", "-c", f"{clock}; {command} >/dev/null 2>&1; {clock}").stdout.split()
        return float(said[1]) - float(said[0])

    def cpu(self) -> float:
        """The processor time of the processes that carry packets."""
        pids = [*self._user.qemus_alive(), *holders(self._user.root / "engine" / "networks" / "responder.lock")]
        record = self._user.root / "engine" / "networks" / "namespace.json"
        if record.exists():
            pids.append(json.loads(record.read_text())["uplink"])
        return sum(map(cpu_seconds, pids))


def measure(folder: Path, *, quick: bool) -> list[Figure] | str:
    """Return the throughput of an ordinary user's guests and what it costs, beside root's; a text says why there is nothing."""
    if os.geteuid() != 0 or shutil.which("qemu-system-x86_64") is None or shutil.which("pasta") is None:
        return "networks as root and without are left out: they need root, QEMU and pasta"
    size = _QUICK if quick else _SIZE
    with _lab(folder) as (lab, disk):
        words = ["ip", "netns", "exec", lab.host]
        ordinary = [f"--groups={os.stat('/dev/kvm').st_gid}" if each == "--clear-groups" and _has_kvm() else each for each in become(_USER)]
        root = _Side(Unprivileged(folder / "root", (*words, "env"), 0), size, (30081, 30082))
        rootless = _Side(Unprivileged(folder / "rootless", (*words, *ordinary), _USER), size, (30181, 30182))
        sides = (root, rootless)
        try:
            for side in sides:
                side.start(disk)
            streams = [_streams(lab, side, size) for side in sides]
            found: list[Figure] = []
            for what in streams[0]:
                turns = [
                    [_turn(side, each[what], size) for side, each in zip(sides, streams, strict=True)]
                    for _ in range(1 if quick else _TURNS)
                ]
                found += _figures(what, *(_best([turn[number] for turn in turns]) for number in range(2)))
            return found
        finally:
            for side in sides:
                side.stop()


def _has_kvm() -> bool:
    return Path("/dev/kvm").exists()


@contextmanager
def _lab(folder: Path) -> Iterator[tuple[Lab, Path]]:
    folder.chmod(0o755)
    disk = folder / "tiny.qcow2"
    shutil.copy(tiny.build(places.cache(), "fastest").disk, disk)
    disk.chmod(0o644)
    lab = Lab(folder / "lab")
    try:
        yield lab, disk
    finally:
        lab.close()


def _figures(what: str, root: tuple[float, float], rootless: tuple[float, float]) -> Iterator[Figure]:
    yield Figure(what, rootless[0], peer=root[0])
    yield Figure(f"{what.removesuffix(_BY_PORT)}, CPU", rootless[1], peer=root[1])


def _turn(side: _Side, work: Callable[[], float], size: int) -> tuple[float, float]:
    """The throughput in Gbit/s, and the CPU time in seconds for a GiB."""
    before = side.cpu()
    rate = size * _MIB * 8e-9 / work()
    return rate, (side.cpu() - before) / size * 1024


def _best(turns: list[tuple[float, float]]) -> tuple[float, float]:
    return max(rate for rate, _ in turns), max(min(cost for _, cost in turns), 0.01)


def _streams(lab: Lab, side: _Side, size: int) -> dict[str, Callable[[], float]]:
    sink, source = f"nc {{}} {{}} -e dd if=/dev/zero bs=256k count={4 * size}", "nc {} {} -e dd of=/dev/null bs=256k"

    def outside(serve: Callable[[], None], command: str) -> float:
        server = Child(lab.outside, serve)
        time.sleep(0.3)
        seconds = side.asked("web", command.format(_OUTSIDE, _LISTENING))
        server.result()
        return seconds

    return {
        "guest to guest": lambda: side.asked("asker", sink.format(side.address, _SINK)),
        "host to guest, by a node port": lambda: float(Child(lab.host, _sent("127.0.0.1", side.node[0], size)).result()),
        "guest to its host, by a node port": lambda: float(Child(lab.host, _received("127.0.0.1", side.node[1])).result()),
        "outside to guest, by a node port": lambda: float(Child(lab.outside, _sent(_HOST, side.node[0], size)).result()),
        "guest to outside, by a node port": lambda: float(Child(lab.outside, _received(_HOST, side.node[1])).result()),
        "a guest downloads": lambda: outside(lambda: _give(_LISTENING, size), source),
        "a guest uploads": lambda: outside(lambda: _take(_LISTENING), sink),
    }


def _sent(address: str, port: int, size: int) -> Callable[[], float]:
    def work() -> float:
        with socket.create_connection((address, port), 10) as client:
            client.settimeout(120)
            began = time.monotonic()
            for _ in range(size):
                client.sendall(bytes(_MIB))
            client.shutdown(socket.SHUT_WR)
            _drain(client)
            return time.monotonic() - began

    return work


def _received(address: str, port: int) -> Callable[[], float]:
    def work() -> float:
        with socket.create_connection((address, port), 10) as client:
            client.settimeout(120)
            began = time.monotonic()
            _drain(client)
            return time.monotonic() - began

    return work


def _drain(client: socket.socket) -> None:
    room = bytearray(_MIB)
    while client.recv_into(room):
        pass


def _take(port: int) -> None:
    with socket.create_server(("0.0.0.0", port)) as server, server.accept()[0] as client:
        _drain(client)


def _give(port: int, size: int) -> None:
    with socket.create_server(("0.0.0.0", port)) as server, server.accept()[0] as client:
        for _ in range(size):
            client.sendall(bytes(_MIB))
