"""A host and its guests out of network namespaces: real packets, real rules, no root network touched.

        guest namespace: eth0 (tap)  <--- a process that copies frames --->  tap of the card in the host's namespace

A guest is the kernel's own network behind a card, which is all that networks see of a machine.
"""

import asyncio
import ctypes
import io
import os
import pickle
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from paddock.engine.machine.config import Tap
from paddock.engine.networks import taps
from paddock.engine.networks.nics import AttachedNic
from tests.host.networks import dhcp6client

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEWNET = 0x40000000
_SECONDS = 1200.0
HOST6, OUTSIDE6 = "2001:db8:51::2", "2001:db8:51::1"


def run(*command: str, check: bool = True) -> str:
    """Run a program to its end; returns what it said."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, f"{' '.join(command)}: {done.stderr or done.stdout}"
    return done.stdout


def enter(namespace: str) -> None:
    """Move this process there."""
    enter_at(f"/run/netns/{namespace}")


def enter_at(path: str) -> None:
    """The same, for a namespace without a name."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    if _LIBC.setns(descriptor, _NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(descriptor)


def _close_all_but(kept: int) -> None:
    """A process that was forked would hold listening sockets of the one it came from."""
    os.closerange(3, kept)
    os.closerange(max(kept, 2) + 1, 4096)


def _print_to(descriptor: int) -> None:
    """The files that pytest captures output with are closed in a process that was forked."""
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout = sys.stderr = io.TextIOWrapper(os.fdopen(1, "wb", buffering=0), write_through=True)


class Child:
    """A function that runs in a process of its own, in a namespace. A test that it fails shows what it printed."""

    def __init__(self, namespace: str, work: Callable[[], Any]) -> None:
        self._reader, writer = os.pipe()
        self._output = os.memfd_create("output")
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                _print_to(self._output)
                _close_all_but(writer)
                enter(namespace)
                said = pickle.dumps((True, work()))
                code = 0
            except BaseException:
                said = pickle.dumps((False, traceback.format_exc()))
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(said)
            os._exit(code)
        os.close(writer)

    def result(self) -> Any:
        """Return the function's result; fail the test when it raised, or takes too long."""
        said, until = b"", time.monotonic() + _SECONDS
        while True:
            if not select.select([self._reader], (), (), max(0.0, until - time.monotonic()))[0]:
                raise AssertionError(f"the process did not end\n{self.end()}")
            data = os.read(self._reader, 1 << 16)
            if not data:
                break
            said += data
        os.waitpid(self.pid, 0)
        printed = self._printed()
        assert said, f"the process was ended\n{printed}"
        good, value = pickle.loads(said)
        assert good, f"{value}{printed}"
        return value

    def _printed(self) -> str:
        """Return what the process printed, and close what led here from it."""
        text = os.pread(self._output, os.fstat(self._output).st_size, 0).decode(errors="replace")
        os.close(self._output)
        os.close(self._reader)
        return text

    async def done(self) -> Any:
        """The same, while the loop goes on."""
        return await asyncio.to_thread(self.result)

    def end(self) -> str:
        """End it; return what it printed."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return self._printed()


def there(namespace: str, script: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a script in a namespace; returns what it returns."""
    return Child(namespace, lambda: asyncio.run(script())).result()


def in_host(lab: "Lab", script: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a script in the namespace of the host of a lab."""
    return there(lab.host, script)


class Guest:
    """The other side of a card."""

    def __init__(self, lab: "Lab", name: str, plug: AttachedNic) -> None:
        self.namespace = lab.namespace(name)
        self.plug = plug
        self.folder = lab.folder / name
        self.folder.mkdir(exist_ok=True)
        assert isinstance(plug.backend, Tap)
        self._pump = _pump(plug.backend, self.namespace)
        self.call("ip", "link", "set", "eth0", "address", plug.mac)
        # A virtio interface begins with the MTU that QEMU says.
        self.call("ip", "link", "set", "eth0", "mtu", str(max(plug.mtu, 1500)), "up")
        lab.ending(self.unplug)

    def call(self, *command: str, check: bool = True) -> str:
        """Run a program in the guest."""
        return run("ip", "netns", "exec", self.namespace, *command, check=check)

    async def calls(self, *command: str) -> tuple[int, str]:
        """The same, while the loop goes on; returns its status and what it said."""
        process = await asyncio.create_subprocess_exec(
            "ip", "netns", "exec", self.namespace, *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        said, _ = await process.communicate()
        return process.returncode or 0, said.decode()

    def child(self, work: Callable[[], Any]) -> Child:
        """Run a function in the guest."""
        return Child(self.namespace, work)

    async def dhcp(self) -> dict[str, str]:
        """Ask for an address with a real client, and use it; returns what the client was told."""
        script = self.folder / "dhcp.sh"
        script.write_text(_SCRIPT.format(folder=self.folder))
        script.chmod(0o755)
        asked = [
            word
            for option in ("search", "mtu", "ntpsrv", "tftp", "bootfile", "staticroutes", "0xe0", "hostname")
            for word in ("-O", option)
        ]
        command = ["busybox", "udhcpc", "-i", "eth0", "-n", "-q", "-f", "-t", "5", "-T", "1", "-s", str(script), *asked]
        code, said = await self.calls(*command)
        assert code == 0, said
        lines = (self.folder / "told").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    async def dhcp6(self, route: str = "default") -> dhcp6client.Told:
        """Wait for a route of the router's, ask for an IPv6 address, and use it. Returns the configuration that the guest got."""
        # Forwarding is off and router advertisements are accepted: the kernel is the judge of those.
        for _ in range(200):
            if route in self.call("ip", "-6", "route"):
                break
            await asyncio.sleep(0.05)
        told: dhcp6client.Told = await self.child(dhcp6client.ask("eth0", self.plug.mac)).done()
        for address in told.addresses:
            self.call("ip", "address", "replace", f"{address}/128", "dev", "eth0", "nodad")
        return told

    def set_address(self, address: str, gateway: str = "") -> None:
        """Take an address without asking."""
        self.call("ip", "address", "replace", address, "dev", "eth0")
        if gateway:
            self.call("ip", "route", "replace", "default", "via", gateway)

    async def can_ping(self, address: str, *options: str) -> bool:
        """Return whether an address answers."""
        code, _ = await self.calls("busybox", "ping", "-c", "1", "-W", "1", *options, address)
        return code == 0

    def unplug(self) -> None:
        """Pull the cable."""
        if self._pump:
            os.kill(self._pump, signal.SIGKILL)
            os.waitpid(self._pump, 0)
            self._pump = 0


_SCRIPT = """#!/bin/sh
[ "$1" = bound ] || exit 0
env | grep -v PATH > {folder}/told
ip -4 address flush dev eth0
ip address add "$ip/$mask" dev eth0
[ -z "$router" ] || ip route replace default via "$router" dev eth0
"""


def _pump(tap: Tap, namespace: str) -> int:
    """A process that copies frames between a card's tap, opened in this namespace, and eth0 in the guest's."""
    pid = os.fork()
    if pid:
        for _ in range(200):
            if "eth0" in run("ip", "netns", "exec", namespace, "ls", "/sys/class/net"):
                return pid
        raise AssertionError("the guest's card did not appear")
    try:
        _close_all_but(2)
        card = taps.open_queue(tap.device, queues=tap.queues)
        enter(namespace)
        inside = taps.open_queue("eth0")
        other = {card: inside, inside: card}
        poll = select.poll()
        for descriptor in other:
            poll.register(descriptor, select.POLLIN)
        while True:
            for descriptor, _ in poll.poll():
                _copy(descriptor, other[descriptor])
    finally:
        os._exit(0)


def _copy(source: int, target: int) -> None:
    for _ in range(64):
        try:
            frame = os.read(source, 70000)
        except BlockingIOError:
            return
        except OSError:
            os._exit(0)
        try:
            os.write(target, frame)
        except OSError:
            # Not up yet, or full: a frame is lost, as on any cable.
            continue


class Lab:
    """Namespaces with a common beginning of their names, all gone at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self._prefix = f"pdk{os.getpid()}"
        self._endings: list[Callable[[], None]] = []
        self.host = self.namespace("host")
        self.outside = self.namespace("outside")
        # The host's own network, with somebody to talk to.
        run("ip", "-n", self.host, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", self.outside)
        for name, address, ours in ((self.host, "198.51.100.2/24", HOST6), (self.outside, "198.51.100.1/24", OUTSIDE6)):
            run("ip", "-n", name, "address", "add", address, "dev", "eth0")
            run("ip", "-n", name, "address", "add", f"{ours}/64", "dev", "eth0", "nodad")
            run("ip", "-n", name, "link", "set", "eth0", "up")
        run("ip", "-n", self.host, "route", "add", "default", "via", "198.51.100.1")
        run("ip", "-n", self.host, "route", "add", "default", "via", OUTSIDE6)
        # As systemd does: everybody may send echo requests.
        run("ip", "netns", "exec", self.host, "sysctl", "-qw", "net.ipv4.ping_group_range=0 2147483647")

    def namespace(self, name: str) -> str:
        """One more; the same when it is there."""
        full = f"{self._prefix}-{name}"
        if not Path("/run/netns", full).exists():
            run("ip", "netns", "add", full)
            run("ip", "-n", full, "link", "set", "lo", "up")
        return full

    def name(self, pid: int, name: str) -> str:
        """Give the namespace of a process a name."""
        full = f"{self._prefix}-{name}"
        run("ip", "netns", "attach", full, str(pid))
        return full

    def ending(self, work: Callable[[], None]) -> None:
        """To be done in the end."""
        self._endings.append(work)

    def finish(self) -> None:
        """Do what was to be done in the end."""
        while self._endings:
            self._endings.pop()()

    def close(self) -> None:
        """Remove everything."""
        self.finish()
        # Scripts in processes of their own made some.
        for name in sorted(each.name for each in Path("/run/netns").glob(f"{self._prefix}-*")):
            for pid in run("ip", "netns", "pids", name, check=False).split():
                os.kill(int(pid), signal.SIGKILL)
            run("ip", "netns", "del", name, check=False)
