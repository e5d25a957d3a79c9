"""QEMUs that are started from command lines as the engine makes them, without the engine around."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from paddock.engine.host import disks, efi, programs
from paddock.engine.machine.argv import names
from paddock.engine.machine.argv.command import command
from paddock.engine.machine.argv.line import Command
from paddock.engine.machine.argv.view import HostView
from paddock.engine.machine.config import MachineConfig

_FIRMWARE = efi.find("amd64")
_SECONDS = 30


def view(config: MachineConfig) -> HostView:
    """This host, which emulates."""
    return HostView(
        qemu=Path(shutil.which("qemu-system-x86_64") or "qemu-system-x86_64"),
        accelerator="tcg",
        efi=_FIRMWARE.plain,
        secure_efi=_FIRMWARE.secure,
        swtpm=programs.find("swtpm"),
        virtiofs=programs.virtiofsd(),
        io_uring=True,
        files=disks.look_at_all(config.disks),
    )


class Refused(Exception):
    """QEMU ended before it could be asked anything; the text is its own."""


@dataclass
class Qemu:
    """A QEMU that waits before the guest's first instruction."""

    directory: Path
    command: Command
    process: "subprocess.Popen[bytes]"
    helpers: list["subprocess.Popen[bytes]"] = field(default_factory=list)
    _stream: Any = None

    def connect(self) -> None:
        """Waits for QMP. Raises `Refused`."""
        deadline = time.monotonic() + _SECONDS
        connection = socket.socket(socket.AF_UNIX)
        while True:
            try:
                connection.connect(str(self.directory / names.QMP))
                break
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    connection.close()
                    raise self._refused() from None
                time.sleep(0.01)
        connection.settimeout(_SECONDS)
        self._stream = connection.makefile("rw")
        connection.close()
        try:
            self._stream.readline()
            self.ask("qmp_capabilities")
        except (OSError, ValueError):
            # The socket is there before the devices are.
            self.process.wait(_SECONDS)
            raise self._refused() from None

    def _refused(self) -> Refused:
        return Refused((self.directory / "qemu.log").read_text(errors="replace"))

    def ask(self, execute: str, **arguments: Any) -> Any:
        """A QMP command; events are passed over."""
        self._stream.write(json.dumps({"execute": execute, "arguments": arguments}) + "\n")
        self._stream.flush()
        while True:
            answer = json.loads(self._stream.readline())
            if "return" in answer:
                return answer["return"]
            assert "error" not in answer, f"{execute} {arguments}: {answer['error']}"

    def get(self, device: str, member: str) -> Any:
        """A property of a device."""
        return self.ask("qom-get", path=f"/machine/peripheral/{device}", property=member)

    def run(self) -> None:
        """Lets the guest begin."""
        for request in self.command.before_start:
            self.ask(request.execute, **request.arguments)
        self.ask("cont")

    def console(self) -> str:
        """Return the guest's output on its serial console."""
        log = self.directory / names.SERIAL_LOG
        return log.read_text(errors="replace") if log.exists() else ""

    def end(self) -> None:
        """Ends it and what was started for it."""
        if self._stream is not None:
            # A QEMU that ended meanwhile takes no more of what was to be sent.
            with suppress(BrokenPipeError):
                self._stream.close()
        for process in (self.process, *self.helpers):
            if process.poll() is None:
                process.kill()
            process.wait()


Start = Callable[[MachineConfig], Qemu]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts machines, each in a directory of its own; afterwards all end."""
    running: list[Qemu] = []

    def begin(config: MachineConfig) -> Qemu:
        directory = Path(tempfile.mkdtemp(prefix="pdka-", dir="/tmp"))
        found = _begin(config, directory)
        running.append(found)
        found.connect()
        return found

    yield begin
    for each in running:
        each.end()
        shutil.rmtree(each.directory, ignore_errors=True)


def _begin(config: MachineConfig, directory: Path) -> Qemu:
    found = command(config, view(config))
    for copy in found.copies:
        if copy.fresh or not copy.to.exists():
            shutil.copyfile(copy.source, directory / copy.to)
    environment: Mapping[str, str] = {**os.environ, **found.environment}
    helpers = []
    for helper in found.helpers:
        for name in helper.directories:
            (directory / name).mkdir(exist_ok=True)
        helpers.append(subprocess.Popen(helper.argv, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        deadline = time.monotonic() + _SECONDS
        while not (directory / helper.socket).exists():
            assert time.monotonic() < deadline, helper.name
            time.sleep(0.01)
    with (directory / "qemu.log").open("wb") as log:
        process = subprocess.Popen(found.arguments({}), cwd=directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
    return Qemu(directory, found, process, helpers)
