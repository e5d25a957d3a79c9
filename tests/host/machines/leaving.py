"""A Paddock at one or both ends of a live migration, and what goes wrong at a step.

    python -m tests.host.machines.leaving FAULT STEP FOLDER

    source, target   this process is the Paddock of one side, and is killed; the other side is in the process of the test
    both             this process is both, and is killed
    source-qemu      this process is both, and the QEMU that has the guest is killed; target-qemu: the one that waits for it
    link             this process is both, in a network namespace whose loopback goes down

FOLDER is the source's; the target's is beside it (`migrating.beside`). What the sides have to know of each other is in files there.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from paddock.base.errors import PaddockError
from paddock.engine.machine.directory import Directory, decode_path, encode_path
from paddock.engine.machine.livelinks import ReceiverAddress
from paddock.engine.machine.livesource import GuestReceiver, SendRequest
from paddock.engine.machine.livetarget import ReceiveRequest
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from tests.host.machines.conftest import qemus, surroundings
from tests.host.machines.renewing import Steps

ID = "a"
STEPS = ((Directory, "keep"), (Directory, "drop_kept"))


class RemoteTarget:
    """The target, in another process, over a UNIX socket."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    async def _ask(self, *words: str) -> object:
        reader, writer = await asyncio.open_unix_connection(self._socket)
        writer.write(json.dumps(words).encode() + b"\n")
        line = await reader.readline()
        writer.close()
        if not line:
            raise ConnectionResetError("the other Paddock ended")
        answer = json.loads(line)
        if "error" in answer:
            raise ConnectionRefusedError(answer["error"])
        return answer["is"]

    async def receiver_address(self) -> ReceiverAddress:
        return msgspec.convert(await self._ask("receiver_address"), ReceiverAddress)

    async def arrived(self, migration: str) -> None:
        await self._ask("arrived", migration)

    async def take(self, migration: str) -> bool:
        return await self._ask("take", migration) is True


async def serve(target: QemuMachine, socket: Path, receiver_address: ReceiverAddress | None = None) -> asyncio.Server:
    """Answer a source in another process."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        verb, *words = json.loads(await reader.readline())
        try:
            said = msgspec.to_builtins(receiver_address) if verb == "receiver_address" else await getattr(target, verb)(*words)
            writer.write(json.dumps({"is": said}).encode() + b"\n")
        except PaddockError as error:
            writer.write(json.dumps({"error": str(error)}).encode() + b"\n")
        await writer.drain()
        writer.close()

    socket.unlink(missing_ok=True)
    return await asyncio.start_unix_server(answer, socket)


def note(path: Path, value: msgspec.Struct) -> None:
    path.write_bytes(msgspec.json.encode(value, enc_hook=encode_path))


def noted(path: Path, kind: type[msgspec.Struct]) -> msgspec.Struct:
    return msgspec.json.decode(path.read_bytes(), type=kind, dec_hook=decode_path)


async def adopted(root: Path) -> QemuMachine:
    machines = Machines(root / "machines", surroundings())
    await machines.adopt()
    machine = machines.get(ID)
    assert machine is not None
    return machine


def _kill(root: Path) -> Callable[[], None]:
    def kill() -> None:
        for pid in qemus(root / "machines").get(ID, ()):
            os.kill(pid, signal.SIGKILL)

    return kill


async def main(fault: str, step: int, folder: Path) -> None:
    socket, there = folder / "target.sock", folder / "there"
    acts: dict[str, Callable[[], object]] = {
        "source-qemu": _kill(folder),
        "target-qemu": _kill(there),
        "link": lambda: subprocess.run(["ip", "link", "set", "lo", "down"], check=True),
    }
    steps = Steps(step, acts[fault]) if fault in acts else Steps(step)
    if fault == "target":
        target = await adopted(there)
        receive_request = noted(there / "receive_request", ReceiveRequest)
        assert isinstance(receive_request, ReceiveRequest)
        steps.begin(STEPS)
        await serve(target, socket, await target.receive(receive_request))
        await asyncio.Event().wait()
    source = await adopted(folder)
    target_of: GuestReceiver = RemoteTarget(socket)
    if fault != "source":
        target = target_of = await adopted(there)
        receive_request = noted(there / "receive_request", ReceiveRequest)
        assert isinstance(receive_request, ReceiveRequest)
        send_request = noted(folder / "send_request", SendRequest)
        assert isinstance(send_request, SendRequest)
        steps.begin(STEPS)
        try:
            send_request = msgspec.structs.replace(send_request, receiver_address=await target.receive(receive_request))
            await source.send(send_request, target_of)
        except PaddockError as error:
            print(error)
        # What was begun comes to its end.
        await asyncio.sleep(0.3)
    else:
        send_request = noted(folder / "send_request", SendRequest)
        assert isinstance(send_request, SendRequest)
        steps.begin(STEPS)
        await source.send(send_request, target_of)
    print(f"steps {steps.taken}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
