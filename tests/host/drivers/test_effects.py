"""What VirtRigaud's objects ask of a guest beyond its sizes, with real guests: commands, disks that grow, firmware, the TPM, limits."""

import asyncio
import json
from functools import partial
from pathlib import Path

import pytest

from paddock.base.images.build import tiny
from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.kubernetes.client.errors import Invalid
from tests.coroutines import played
from tests.host.drivers.test_kubevirt import OWNER, Managed, prepared, ready, until
from tests.host.guests import Shelf
from tests.host.runs.conftest import Console, Data, Talk, condition

pytestmark = pytest.mark.needs("qemu")
RIGAUD = "/apis/infra.virtrigaud.io/v1beta1/namespaces/default"
API = "infra.virtrigaud.io/v1beta1"
WEB = f"{RIGAUD}/virtualmachines/web"
GIB_SECTORS = 2097152
SMALL = {"cpu": 1, "memory": "128Mi", "diskDefaults": {"size": "1Gi"}, "securityProfile": {"tpmEnabled": True, "tpmVersion": "2.0"}}
TPM = "cat /sys/class/tpm/tpm0/tpm_version_major"


async def world(talk: Talk, url: str) -> None:
    """A Provider that is this server, a class and an image."""
    specs: dict[str, tuple[str, str, Data]] = {
        "providers": (
            "Provider",
            "here",
            {"type": "qemu", "endpoint": "qemu:///system", "credentialSecretRef": {"name": "none"}, "runtime": {"image": "none:1"}},
        ),
        "vmclasses": ("VMClass", "small", SMALL),
        "vmimages": ("VMImage", "tiny", {"source": {"http": {"url": url}}}),
    }
    for plural, (kind, name, spec) in specs.items():
        await talk.make(f"{RIGAUD}/{plural}", {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec})


async def machine(talk: Talk, **spec: object) -> None:
    refs = {"providerRef": {"name": "here"}, "classRef": {"name": "small"}, "imageRef": {"name": "tiny"}}
    await talk.make(
        f"{RIGAUD}/virtualmachines", {"apiVersion": API, "kind": "VirtualMachine", "metadata": {"name": "web"}, "spec": refs | spec}
    )


def holds(kind: str, status: str, found: Data) -> bool:
    return condition(found, kind).get("status") == status


async def booted(console: Console) -> str:
    return (await console.shell("cat /proc/sys/kernel/random/boot_id")).strip()


@pytest.mark.needs("swtpm")
@pytest.mark.spec("virtrigaud", 37, 42, 120)
@played
async def test_a_hook_runs_in_the_guest_and_its_disk_grows_on_and_off(talk: Talk, /, web: Shelf, tiny_guest: tiny.TinyImage) -> None:
    await world(talk, web.put(tiny_guest.disk))
    disk = {"name": "data", "sizeGiB": 1, "expandPolicy": "Online"}
    hook = {"postStart": {"exec": {"command": ["/bin/touch", "/run/a b", "/run/$(reboot)"]}}, "gracefulShutdownTimeout": "90s"}
    await machine(talk, disks=[disk], lifecycle=hook)
    await talk.until(WEB, partial(holds, "PostStart", "True"), "the hook has run", 180)
    async with talk.console("web") as console:
        await ready(console)
        assert sorted((await console.shell("ls -1 /run | grep '[ $]'")).split("\n"))[-2:] == ["$(reboot)", "a b"]
        assert (await console.shell(TPM)).strip() == "2"
        before = await booted(console)
        await until(console, "cat /sys/class/block/vdb/size", str(GIB_SECTORS))
        await talk.change(WEB, {"spec": {"disks": [{**disk, "sizeGiB": 2}]}})
        await until(console, "cat /sys/class/block/vdb/size", str(2 * GIB_SECTORS))
        assert await booted(console) == before
        await talk.change(WEB, {"spec": {"disks": [{**disk, "sizeGiB": 3, "expandPolicy": "Offline"}]}})
        await talk.until(WEB, partial(holds, "RestartRequired", "True"), "the change waits")
        assert (await console.shell("cat /sys/class/block/vdb/size")).strip() == str(2 * GIB_SECTORS)
        with pytest.raises(Invalid, match="cannot shrink"):
            await talk.change(WEB, {"spec": {"disks": [{**disk, "sizeGiB": 1}]}})
    await talk.change(WEB, {"spec": {"powerState": "Off"}})
    await talk.until(WEB, partial(holds, "RestartRequired", "False"), "the change was made with the power off", 180)
    await talk.change(WEB, {"spec": {"powerState": "On"}})
    await talk.running("web", 120)
    async with talk.console("web") as console:
        await ready(console)
        await until(console, "cat /sys/class/block/vdb/size", str(3 * GIB_SECTORS))
        assert await booted(console) != before and (await console.shell(TPM)).strip() == "2"


@pytest.mark.slow
@pytest.mark.needs("ovmf", "swtpm")
@pytest.mark.spec("virtrigaud", 118, 120)
@played
async def test_the_guest_sees_secure_boot_and_the_tpm_below_its_limits(talk: Talk, /, web: Shelf, tiny_signed: tiny.TinyImage) -> None:
    managed = Managed(talk)
    (node,) = (await talk.get("/api/v1/nodes"))["items"]
    mhz = int(node["metadata"]["labels"]["cpu-timer.node.kubevirt.io/tsc-frequency"]) // 1_000_000
    hardware = p.ClassPayload(
        cpu=1,
        memory_mib=512,
        firmware="UEFI",
        guest_tools_policy="skip",
        disk_defaults=p.DiskDefaultsPayload(size_gib=1),
        security_profile=p.SecurityPayload(secure_boot=True, tpm_enabled=True, tpm_version="2.0"),
        resource_limits=p.LimitsPayload(cpu_limit=4 * mhz),
    )
    image = p.ImagePayload(template_name=await prepared(managed, web.put(tiny_signed.disk)))
    made = await managed.driver.create(m.CreateRequest(name="web", owner=OWNER, class_json=p.encode(hardware), image_json=p.encode(image)))
    managed.id = made.id
    await managed.ends(made.task)
    await managed.power(m.PowerOp.ON)
    async with talk.console("web") as console:
        await ready(console)
        variable = "od -An -tu1 /sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
        mounted = "mount -t efivarfs efivarfs /sys/firmware/efi/efivars 2>/dev/null"
        assert (await console.shell(f"{mounted}; {variable}")).split()[-1] == "1"
        assert (await console.shell(TPM)).strip() == "2"
    told = json.loads((await managed.seen()).provider_raw_json)
    assert "limitations" not in told
    quotas = [*Path("/sys/fs/cgroup").glob("**/paddock/*/cpu.max"), *Path("/sys/fs/cgroup").glob("**/paddock/*/cpu.cfs_quota_us")]
    if quotas:
        assert any(each.read_text().split()[0] == "400000" for each in quotas), [each.read_text() for each in quotas]
    await managed.power(m.PowerOp.OFF)
    await asyncio.sleep(0)
