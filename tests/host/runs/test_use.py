"""`kubectl top`, with the real kubectl and a guest that works, and the short names that kubectl resolves without a warning."""

import asyncio
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.coroutines import played
from tests.host.runs.conftest import VMS, Host, Talk, machine

pytestmark = pytest.mark.needs("qemu", "kubectl")


async def kubectl(host: Host, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run kubectl as the administrator of a host."""
    command = ["kubectl", "--cache-dir", str(host.root / "kubectl"), *words]
    environment = {**os.environ, "KUBECONFIG": str(host.root / "kubeconfig")}
    return await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=120, env=environment, check=False)


def rows(said: str) -> list[list[str]]:
    """The words of each line."""
    return [line.split() for line in said.splitlines()]


@played
async def test_kubectl_top_shows_a_machine_that_works(talk: Talk, /, work: Path, tiny_disk_image: str) -> None:
    host = talk.host
    none = await kubectl(host, "top", "pod")
    assert (none.returncode, none.stdout) == (0, "") and "No resources found" in none.stderr
    domain = {"memory": {"guest": "128Mi"}}
    await talk.make(VMS, machine("web", tiny_disk_image, domain=domain, terminationGracePeriodSeconds=0))
    await talk.running("web")
    async with talk.console("web") as console:
        await console.until(b"READY", 120)
        await console.write(b"while :; do :; done &\r")
        await asyncio.sleep(2)
        pod = (await kubectl(host, "get", "pods", "-l", "vm.kubevirt.io/name=web", "-o", "name")).stdout.strip().removeprefix("pod/")
        for words in (("top", "pod"), ("top", "pod", pod), ("top", "pod", "-A", "-l", "vm.kubevirt.io/name=web")):
            told = await kubectl(host, *words, "--no-headers")
            assert told.returncode == 0, told.stderr
            *_, name, cpu, memory = rows(told.stdout)[0]
            assert name == pod
            # One processor that works all the time, on a host that others use as well.
            assert 100 <= int(cpu.removesuffix("m")) <= 2500, told.stdout
            assert int(memory.removesuffix("Mi")) >= 64, told.stdout
    told = await kubectl(host, "top", "pod", "--containers", "--no-headers")
    assert rows(told.stdout)[0][:2] == [pod, "compute"]
    node = rows((await kubectl(host, "top", "node", "--no-headers")).stdout)[0]
    assert len(node) == 5 and re.fullmatch(r"\d+%", node[4])
    assert (await kubectl(host, "top", "pod", "nobody")).returncode == 1
    table = await kubectl(host, "get", "pods.metrics.k8s.io")
    assert rows(table.stdout)[0] == ["NAME", "CPU", "MEMORY", "WINDOW"]


@played
async def test_no_short_name_brings_a_warning(talk: Talk, /) -> None:
    groups = [each["groupVersion"] for group in (await talk.get("/apis"))["groups"] for each in group["versions"]]
    lists = [await talk.get(f"/apis/{each}") for each in groups] + [await talk.get("/api/v1")]
    kinds = [each for one in lists for each in one["resources"] if "/" not in each["name"] and "list" in each["verbs"]]
    called = {name for each in kinds for name in (*each.get("shortNames", ()), each["singularName"]) if name}
    assert {"vm", "vmi", "dv", "m", "vmsnapshot"} <= called
    # These warn on every cluster: of two deprecated kinds, and of Events, which Kubernetes serves in two groups.
    called -= {"cs", "componentstatus", "ep", "endpoints", "ev", "event"}
    told = await kubectl(talk.host, "get", ",".join(sorted(called)), "-o", "name")
    assert told.returncode == 0 and "arning" not in told.stderr, told.stderr
    for name in (
        "vm",
        "vms",
        "vmi",
        "virtualmachine",
        "virtualmachines",
        "vmsnapshot",
        "vmclone",
        "machine",
        "no",
        "po",
        "nodes",
        "pods",
    ):
        told = await kubectl(talk.host, "get", name)
        assert told.returncode == 0 and "arning" not in told.stderr, (name, told.stderr)
