"""`paddock snap --memory` and `restore` with a real guest and a real server: the guest goes on where it was, over restarts of Paddock."""

import json

import pytest

from tests.host.commands.test_power import paddock
from tests.host.commands.test_suspend import _COUNT, _MEMORY, _in_guest, _with
from tests.host.runs.conftest import VMIS, VMS, Data, Host, Talk, machine

pytestmark = pytest.mark.needs("qemu")
_GROUP = "/apis/snapshot.kubevirt.io/v1beta1/namespaces/default"


def _on_disk(image: str) -> Data:
    """A machine whose disk lasts."""
    made = machine("web", domain={"memory": {"guest": "256Mi"}, "devices": {"disks": []}}, terminationGracePeriodSeconds=0)
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    template = {"metadata": {"name": "disk"}, "spec": {"source": {"registry": {"url": f"docker://{image}"}}, "storage": storage}}
    made["spec"]["dataVolumeTemplates"] = [template]
    spec = made["spec"]["template"]["spec"]
    spec["domain"]["devices"]["disks"] = [{"name": "root", "disk": {"bus": "virtio"}}, {"name": "seed", "disk": {"bus": "virtio"}}]
    spec["volumes"] = [
        {"name": "root", "dataVolume": {"name": "disk"}},
        {"name": "seed", "cloudInitNoCloud": {"userData": "#cloud-config\nhostname: web\n"}},
    ]
    return made


@pytest.mark.spec("kubevirt", 209)
@pytest.mark.spec("kubevirt", 212)
def test_a_guest_goes_on_from_a_snapshot(host: Host, tiny_disk_image: str) -> None:
    async def snapshotted(talk: Talk) -> tuple[str, float, int]:
        await talk.make(VMS, _on_disk(tiny_disk_image))
        await talk.running("web", 120)
        await _in_guest(talk, _MEMORY, _COUNT)
        sums, uptime, count = await _in_guest(talk, "sha256sum /dev/shm/random", "cat /proc/uptime", "sleep 2; cat /dev/shm/count")
        assert await paddock(talk, "snap", "web", "one", "--memory") == "one\n"
        (listed,) = json.loads(await paddock(talk, "snap", "ls", "web", "-o", "json"))
        print(listed)
        assert listed["consistent"] == "with memory" and "Mi" in listed["memory"] and "ms" in listed["memory"]
        return sums, float(uptime.split()[0]), int(count)

    async def restored(talk: Talk) -> None:
        first = (await talk.get(f"{VMIS}/web"))["metadata"]["uid"]
        assert await paddock(talk, "restore", "web", "one", "--yes") == "vm/web restored to one\n"
        await talk.until(f"{VMIS}/web", lambda vmi: vmi and vmi["metadata"]["uid"] != first and vmi["status"].get("phase") == "Running")
        now = await _in_guest(talk, "sha256sum /dev/shm/random", "cat /proc/uptime", "sleep 2; cat /dev/shm/count")
        assert now[0] == before[0] and int(now[2]) > before[2]
        assert before[1] < float(now[1].split()[0]) < before[1] + 200
        # Another start boots.
        assert await paddock(talk, "restart", "web", "--force") != ""
        second = (await talk.get(f"{VMIS}/web"))["metadata"]["uid"]
        await talk.until(f"{VMIS}/web", lambda vmi: vmi and vmi["status"].get("phase") == "Running")
        assert second != first and "paddock.dev/continues" not in (await talk.get(f"{VMS}/web"))["metadata"].get("annotations", {})
        assert await _in_guest(talk, "cat /dev/shm/count 2>/dev/null") == [""]
        assert await paddock(talk, "snap", "rm", "web", "one", "--yes") == "one deleted\n"
        await talk.until(f"{_GROUP}/virtualmachinesnapshotcontents", lambda found: found["items"] == [])
        assert not list(host.root.glob("engine/memory/*")) and not list(host.root.glob("engine/machines/*/saved*"))

    host.start()
    before = _with(host, snapshotted)
    host.kill()
    host.start()
    _with(host, restored)
