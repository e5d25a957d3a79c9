"""Agents of real guests: file systems that a dead Paddock left frozen, and what an agent says that is none."""

import asyncio
import json
import secrets
import socket
from pathlib import Path

import pytest

from paddock.engine.machine.argv import names
from tests.coroutines import played
from tests.host.runs.conftest import PROMPT, VMIS, VMS, Console, Data, Host, Talk, condition, machine, perform

pytestmark = pytest.mark.needs("qemu")
PORT = "/dev/virtio-ports/org.qemu.guest_agent.0"
# What somebody writes into the channel who is root in the guest: no JSON, no UTF-8, more than anybody keeps, depth, and no end.
BABBLE = (
    r"printf '\377\376\033[2J{\n'",
    "yes '{\"return\":[' | head -c 3000000 | tr -d '\\n'; echo",
    "head -c 3000000 /dev/urandom",
    'printf \'{"return": {"host-name": "\\\\u001b[31mred"}}\\n\'',
)


async def _shell(talk: Talk, console: Console) -> None:
    """Wait for the shell, and for the agent."""
    await console.write(b"\r")
    await console.until(PROMPT, 120)
    await _agent(talk, "True")


async def _agent(talk: Talk, status: str) -> Data:
    return await talk.until(
        f"{VMIS}/web", lambda found: condition(found, "AgentConnected").get("status") == status, f"its agent's connection is {status}", 120
    )


def _ask(path: Path, command: str) -> object:
    """Ask the agent past Paddock. Answers to a Paddock that is dead may still be in the channel: they come before that to our mark."""
    mark = secrets.randbits(31)
    with socket.socket(socket.AF_UNIX) as line, line.makefile("rb") as said:
        line.settimeout(60)
        line.connect(str(path))
        line.sendall(json.dumps({"execute": "guest-sync-delimited", "arguments": {"id": mark}}).encode() + b"\n")
        while not (earlier := said.readline()).endswith(f'{{"return": {mark}}}\n'.encode()):
            assert earlier, "the agent's channel was closed"
        line.sendall(json.dumps({"execute": command}).encode() + b"\n")
        answer: Data = json.loads(said.readline())
    return answer["return"]


@pytest.mark.spec("kubevirt", 79)
def test_what_a_dead_paddock_left_frozen_is_thawed(host: Host, tiny_disk_image: str) -> None:
    async def before(talk: Talk) -> None:
        body = machine("web", tiny_disk_image, domain={"memory": {"guest": "192Mi"}}, terminationGracePeriodSeconds=0)
        await talk.make(VMS, body)
        await _agent(talk, "True")

    async def after(talk: Talk) -> None:
        async with talk.console("web") as console:
            # Whoever writes to a file system that is frozen waits.
            assert (await console.shell("echo x >/data/written && sync && cat /data/written", 60)).strip() == "x"
        found = await talk.until(f"{VMIS}/web", lambda seen: "fsFreezeStatus" not in seen["status"], "the freeze is over")
        assert found["status"]["phase"] == "Running"

    perform(host, before)
    ((uid, _),) = host.qemus().items()
    host.kill()
    agent = host.root / "engine" / "machines" / uid / "run" / names.AGENT
    assert _ask(agent, "guest-fsfreeze-freeze") == 1
    assert _ask(agent, "guest-fsfreeze-status") == "frozen"
    perform(host, after)


@pytest.mark.spec("kubevirt", 105)
@played
async def test_a_guest_that_babbles_harms_nobody(talk: Talk, /, tiny_disk_image: str) -> None:
    body = machine("web", tiny_disk_image, domain={"memory": {"guest": "192Mi"}}, terminationGracePeriodSeconds=0)
    await talk.make(VMS, body)
    first = await talk.running("web")
    async with talk.console("web") as console:
        await _shell(talk, console)
        await console.shell("cp /sbin/agent /agent; printf '#!/bin/sh\\nexec sleep 100000\\n' >/sbin/agent; kill $(pidof qemu-ga)")
        for each in BABBLE:
            await console.write(f"({each}) >{PORT} &\r".encode())
        # Paddock goes on, with other machines and with this one.
        await talk.make(VMS, machine("other"))
        await talk.running("other")
        await asyncio.sleep(5)
        found = await talk.get(f"{VMIS}/web")
        assert (found["metadata"]["uid"], found["status"]["phase"]) == (first["metadata"]["uid"], "Running")
        assert all(text.isprintable() for text in _texts(found["status"]))
        # With a real agent again, it answers as ever.
        await console.shell("kill $(jobs -p) 2>/dev/null; cp /agent /sbin/agent; kill $(pidof sleep)")
        await talk.until(f"{VMIS}/web", _is_told, "the agent answers", 120)


def _is_told(found: Data) -> bool:
    """Return True if the agent of the guest has said what system it is."""
    return condition(found, "AgentConnected").get("status") == "True" and found["status"].get("guestOSInfo", {}).get("id") == "paddock-tiny"


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in _texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return [value] if isinstance(value, str) else []
