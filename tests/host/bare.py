"""A guest that is started by hand: QEMU without the engine, its console in a file, its agent asked directly.

For tests of what the engine is compared with, and of what is inside a guest. Tests of machines use the engine.
"""

import base64
import json
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.host.conftest import Spawn, wait_until

_BASE = (
    *("qemu-system-x86_64", "-accel", "tcg,tb-size=64", "-cpu", "max", "-nodefaults", "-no-user-config", "-display", "none"),
    *("-device", "virtio-serial-pci", "-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0"),
)
OVMF = Path("/usr/share/OVMF")


@dataclass
class Bare:
    """A running guest."""

    log: Path
    _agent: Path
    _patience: float

    def console(self) -> str:
        """Return its output on the serial console."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def shell(self, command: str, seconds: float = 60) -> str:
        """Return a command's output in the guest; it must succeed."""
        arguments = {"path": "/bin/sh", "arg": ["-c", command], "capture-output": True}
        pid = self.ask("guest-exec", arguments)["pid"]
        deadline = time.monotonic() + seconds
        while True:
            done = self.ask("guest-exec-status", {"pid": pid})
            if done["exited"]:
                said, complained = (base64.b64decode(done.get(part, "")).decode() for part in ("out-data", "err-data"))
                assert done.get("exitcode") == 0, f"{command}: {complained}"
                return said
            assert time.monotonic() < deadline, f"{command} does not end"
            time.sleep(0.05)

    def ask(self, command: str, arguments: dict[str, Any] | None = None) -> Any:
        """An answer of the agent."""
        with socket.socket(socket.AF_UNIX) as agent:
            agent.settimeout(self._patience)
            agent.connect(str(self._agent))
            agent.sendall(json.dumps({"execute": command, "arguments": arguments or {}}).encode() + b"\n")
            whole = b""
            while not whole.endswith(b"\n"):
                part = agent.recv(1 << 16)
                assert part, "the agent's socket was closed"
                whole += part
        answer = json.loads(whole)
        assert "error" not in answer, answer
        return answer["return"]


def boot(spawn: Spawn, work: Path, options: Sequence[str | Path], ready: str = "READY", seconds: float = 120) -> Bare:
    """A guest that has said the word; its agent answers soon after."""
    log, agent = work / "serial.log", work / "agent.sock"
    described = ["-chardev", f"socket,path={agent},server=on,wait=off,id=agent", "-serial", f"file:{log}"]
    process = spawn([*_BASE, *described, *map(str, options)])
    guest = Bare(log, agent, seconds)

    def is_ready() -> bool:
        if process.poll() is not None:
            pytest.fail(f"QEMU ended with {process.returncode}")
        return ready in guest.console()

    wait_until(f"the guest says {ready}; it says {guest.console()[-500:]}", is_ready, seconds)
    guest.ask("guest-ping")
    return guest


def disk(path: Path, name: str = "d0", order: int = 0) -> list[str]:
    """A disk; what is written to it is thrown away."""
    form = "qcow2" if path.suffix == ".qcow2" else "raw"
    boot_index = f",bootindex={order}" if order else ""
    return ["-drive", f"if=none,id={name},format={form},file={path},snapshot=on", "-device", f"virtio-blk-pci,drive={name}{boot_index}"]


def card(*forwards: tuple[str, int, int]) -> list[str]:
    """A card of QEMU's user network, with (protocol, port of the host, port of the guest)."""
    forwarded = "".join(f",hostfwd={protocol}:127.0.0.1:{host}-:{guest}" for protocol, host, guest in forwards)
    return ["-netdev", f"user,id=n0{forwarded}", "-device", "virtio-net-pci,netdev=n0,romfile="]


def uefi(work: Path, *, secure: bool = False) -> list[str]:
    """UEFI firmware with variables of its own."""
    kind = ".ms" if secure else ""
    variables = work / "variables.fd"
    variables.write_bytes((OVMF / f"OVMF_VARS_4M{kind}.fd").read_bytes())
    guarded = ["-global", "driver=cfi.pflash01,property=secure,value=on", "-global", "ICH9-LPC.disable_s3=1"] if secure else []
    code = ["-drive", f"if=pflash,format=raw,unit=0,readonly=on,file={OVMF}/OVMF_CODE_4M{kind}.fd"]
    return [*guarded, *code, "-drive", f"if=pflash,format=raw,unit=1,file={variables}"]
