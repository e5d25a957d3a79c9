"""Changes that reach a running guest: processors, memory, keys and passwords."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.coroutines import played
from tests.host.runs.conftest import PROMPT, SECRETS, VMIS, VMS, Console, Data, Talk, condition, machine

pytestmark = pytest.mark.needs("qemu")
KEYS = [f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{letter * 43} {letter.lower()}@somewhere" for letter in "ABCDEF"]


async def _shell_is_there(console: Console) -> None:
    await console.write(b"\r")
    await console.until(PROMPT, 120)


async def _until(look: Callable[[], Awaitable[Any]], wanted: Any, seconds: float = 60) -> None:
    found: Any = None
    try:
        async with asyncio.timeout(seconds):
            while (found := await look()) != wanted:
                await asyncio.sleep(0.5)
    except TimeoutError:
        pytest.fail(f"not within {seconds:g} s: {wanted!r}; it is {found!r}")


@pytest.mark.spec("kubevirt", 84)
@played
async def test_a_guest_sees_sockets_and_memory_that_are_added(talk: Talk, /, tiny_disk_image: str) -> None:
    domain = {"cpu": {"sockets": 1}, "memory": {"guest": "2Gi"}}
    await talk.make(VMS, machine("web", tiny_disk_image, domain=domain, terminationGracePeriodSeconds=0))
    first = await talk.running("web")
    async with talk.console("web") as console:
        await _shell_is_there(console)
        assert (await console.shell("nproc")).strip() == "1"
        before = await _memory(console)
        assert before < 2 << 20
        await talk.change(f"{VMS}/web", _template({"cpu": {"sockets": 4}, "memory": {"guest": "4Gi"}}))
        seen = await talk.until(f"{VMIS}/web", _has_grown, "it was given them", 120)
        await _until(lambda: console.shell("nproc"), "4\n", 60)
        assert (2 << 20) - 65536 < await _memory(console) - before < (2 << 20) + 65536
    assert seen["metadata"]["uid"] == first["metadata"]["uid"] and seen["status"]["memory"]["guestAtBoot"] == "2Gi"
    assert condition(await talk.get(f"{VMS}/web"), "RestartRequired") == {}
    # None is taken away while it runs.
    await talk.change(f"{VMS}/web", _template({"cpu": {"sockets": 2}}))
    await talk.until(f"{VMS}/web", lambda found: condition(found, "RestartRequired").get("status") == "True", "it says so")


def _template(domain: Data) -> Data:
    return {"spec": {"template": {"spec": {"domain": domain}}}}


def _has_grown(found: Data) -> bool:
    status = found["status"]
    return bool(status["currentCPUTopology"]["sockets"] == 4 and status["memory"]["guestCurrent"] == "4Gi")


async def _memory(console: Console) -> int:
    """KiB that the guest's kernel has."""
    return int((await console.shell("grep MemTotal /proc/meminfo")).split()[1])


@pytest.mark.spec("kubevirt", 90)
@pytest.mark.parametrize("seed", ["noCloud", "configDrive"])
@played
async def test_keys_and_passwords_of_secrets_are_in_the_guest(talk: Talk, /, tiny_disk_image: str, seed: str) -> None:
    volume = "cloudInitNoCloud" if seed == "noCloud" else "cloudInitConfigDrive"
    for name, data in (("seeded", {"key": KEYS[0]}), ("kept", {"a": KEYS[1], "b": KEYS[2]}), ("passwords", {"tiny": "first"})):
        await talk.make(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data})
    kept = {"qemuGuestAgent": {"users": ["tiny"]}}
    credentials = [
        {"sshPublicKey": {"source": {"secret": {"secretName": "seeded"}}, "propagationMethod": {seed: {}}}},
        {"sshPublicKey": {"source": {"secret": {"secretName": "kept"}}, "propagationMethod": kept}},
        {"userPassword": {"source": {"secret": {"secretName": "passwords"}}, "propagationMethod": {"qemuGuestAgent": {}}}},
    ]
    volumes = [{"name": "seed", volume: {"userData": "#cloud-config\n"}}]
    domain = {"memory": {"guest": "192Mi"}}
    document = machine("web", tiny_disk_image, domain=domain, volumes=volumes, accessCredentials=credentials)
    await talk.make(VMS, document)
    await talk.until(f"{VMIS}/web", _synchronized, "they are there", 120)
    async with talk.console("web") as console:
        await _shell_is_there(console)

        async def keys(home: str = "/home/tiny") -> list[str]:
            said = await console.shell(f"cat {home}/.ssh/authorized_keys")
            return sorted(line for line in said.splitlines() if line.startswith("ssh-"))

        async def password() -> str:
            # The file has no such line while the agent in the guest writes it anew.
            return (await console.shell("grep ^tiny: /etc/shadow")).partition(":")[2].partition(":")[0]

        assert KEYS[0] in await keys("/root")
        await _until(keys, KEYS[1:3])
        first = await password()
        assert first.startswith("$")
        # Secrets change, and what the guest has changes with them.
        await talk.change(f"{SECRETS}/kept", {"data": {"a": base64.b64encode(KEYS[3].encode()).decode(), "b": None}})
        await _until(keys, [KEYS[3]])
        await talk.change(f"{SECRETS}/passwords", {"stringData": {"tiny": "second"}})

        async def changed() -> bool:
            return await password() not in ("", first)

        await _until(changed, True)
        assert condition(await talk.get(f"{VMIS}/web"), "AccessCredentialsSynchronized")["status"] == "True"
        # One who is not there cannot have a key, and that is said.
        await talk.change(f"{SECRETS}/passwords", {"stringData": {"nobody-there": "third"}})
        await talk.until(f"{VMIS}/web", lambda found: not _synchronized(found), "it says so")


def _synchronized(found: Data) -> bool:
    return condition(found, "AccessCredentialsSynchronized").get("status") == "True"
