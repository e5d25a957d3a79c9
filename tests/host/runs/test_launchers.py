"""The Pod of a running machine and KubeVirt's programs, as the real kubectl shows them."""

import asyncio
import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.coroutines import played
from tests.host.runs.conftest import VMS, Host, Talk, machine

pytestmark = pytest.mark.needs("qemu", "kubectl")
_INSTALLATION = "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt"
_NIC = {"interfaces": [{"name": "default", "masquerade": {}}]}


async def kubectl(host: Host, *words: str, code: int = 0) -> str:
    """Run kubectl as the administrator of a host; what it printed, wherever."""
    command = ["kubectl", "--cache-dir", str(host.root / "kubectl"), *words]
    environment = {**os.environ, "KUBECONFIG": str(host.root / "kubeconfig")}
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.returncode == code, (words, done.stdout, done.stderr)
    return done.stdout + done.stderr


@pytest.mark.spec("kubevirt", 156, 158)
@played
async def test_the_pod_of_a_machine_has_its_address(talk: Talk, /, work: Path, tiny_disk_image: str) -> None:
    host = talk.host
    watching = await asyncio.create_subprocess_exec(
        *("kubectl", "--cache-dir", str(host.root / "kubectl"), "get", "pods", "--watch", "-o", "name"),
        stdout=subprocess.PIPE,
        env={**os.environ, "KUBECONFIG": str(host.root / "kubeconfig")},
    )
    body = machine("web", tiny_disk_image, domain={"memory": {"guest": "128Mi"}, "devices": _NIC}, terminationGracePeriodSeconds=0)
    body["spec"]["template"]["spec"]["networks"] = [{"name": "default", "pod": {}}]
    body["spec"]["template"].setdefault("metadata", {})["labels"] = {"tier": "front"}
    await talk.make(VMS, body)
    await talk.running("web")
    assert watching.stdout is not None
    seen = (await asyncio.wait_for(watching.stdout.readline(), 120)).decode().strip()
    watching.terminate()
    await watching.wait()
    instance = json.loads(await kubectl(host, "get", "vmi", "web", "-o", "json"))
    address = instance["status"]["interfaces"][0]["ipAddress"]
    (pod,) = json.loads(await kubectl(host, "get", "pods", "-l", "kubevirt.io=virt-launcher,tier=front", "-o", "json"))["items"]
    name = pod["metadata"]["name"]
    assert seen == f"pod/{name}" and address
    assert (pod["status"]["podIP"], pod["spec"]["nodeName"]) == (address, instance["status"]["nodeName"])
    assert list(instance["status"]["activePods"]) == [pod["metadata"]["uid"]]
    wide = (await kubectl(host, "get", "pods", "-o", "wide", "--no-headers")).split()
    assert [wide[0], wide[2], wide[5], wide[6]] == [name, "Running", address, instance["status"]["nodeName"]]
    described = await kubectl(host, "describe", "pod", name)
    assert address in described and "Controlled By:  VirtualMachineInstance/web" in described
    assert name in await kubectl(host, "describe", "node", pod["spec"]["nodeName"])
    for words in (("delete", "pod", name), ("label", "pod", name, "a=b")):
        assert "paddock stop web" in await kubectl(host, *words, code=1)
    assert "paddock logs web" in await kubectl(host, "logs", name, code=1)
    # A client that waits for the Pod of a machine to be ready, and for its end.
    await kubectl(host, "wait", "pod", name, "--for=condition=Ready", "--timeout=120s")
    await kubectl(host, "patch", "vm", "web", "--type=merge", "-p", '{"spec": {"runStrategy": "Halted"}}')
    await kubectl(host, "wait", "pod", name, "--for=delete", "--timeout=120s")


@pytest.mark.spec("kubevirt", 159)
@played
async def test_the_programs_of_kubevirt_are_ready(talk: Talk, /) -> None:
    host = talk.host
    await talk.until(_INSTALLATION, lambda found: found.get("status", {}).get("phase") == "Deployed", "KubeVirt is deployed")
    for name in ("virt-api", "virt-controller", "virt-operator"):
        assert "successfully rolled out" in await kubectl(
            host, "rollout", "status", "-n", "kubevirt", f"deployment/{name}", "--timeout=60s"
        )
    assert "successfully rolled out" in await kubectl(
        host, "rollout", "status", "-n", "kubevirt", "daemonset/virt-handler", "--timeout=60s"
    )
    shown = await kubectl(host, "get", "deploy,ds", "-n", "kubevirt", "--no-headers")
    assert [line.split()[:2] for line in shown.splitlines() if line][:3] == [
        [f"deployment.apps/{name}", "1/1"] for name in ("virt-api", "virt-controller", "virt-operator")
    ]
    assert "KubeVirt" in await kubectl(host, "delete", "deployment", "-n", "kubevirt", "virt-api", code=1)
