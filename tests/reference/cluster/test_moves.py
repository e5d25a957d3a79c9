"""`paddock move` between `paddock up` and a cluster with KubeVirt: there and back, with everything killed on the way."""

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.host.conftest import work
from tests.host.guests import registry, tiny_disk_image
from tests.host.moves.conftest import MARKER, MoveCommand, document
from tests.host.moves.test_moves import STEPS
from tests.host.runs.conftest import VMIS, VMS, Talk
from tests.reference.client import Json
from tests.reference.cluster import control, forward, ingress, namespace, uploads
from tests.reference.cluster.conftest import Cluster
from tests.reference.cluster.moving import CLAIMS, DISKS, EXPORTS, OF_MOVES, Between, between, digest, fill, machine, until
from tests.reference.server import write_kubeconfig
from tests.reference.virtctl.conftest import INSTANCES, MACHINES

# Fixtures that pytest finds here.
__all__ = ["between", "registry", "tiny_disk_image", "work"]
pytestmark = [pytest.mark.reference, pytest.mark.soak]
_SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web-init"}, "stringData": {"userdata": "#cloud-config\n"}}
# Enough that a program can be killed while it carries it.
_CARGO = 192 << 20


def _begin(between: Between, image: str) -> None:
    machine = document(image)
    guest = machine["spec"]["template"]["spec"]
    # The node has no dummy interfaces, which KubeVirt's bridge would need.
    guest["domain"]["devices"]["interfaces"] = [{"name": "default", "masquerade": {}}]
    guest["networks"] = [{"name": "default", "pod": {}}]

    between.do(lambda talk: talk.make(VMS, machine))
    between.on_host(f"echo {MARKER} > /dev/vdb; sync")


def _make(between: Between, *objects: Json) -> None:
    between.cluster.kubectl.ok("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))


def test_a_guest_goes_there_and_back_with_its_data(between: Between, tiny_disk_image: str) -> None:
    _begin(between, tiny_disk_image)
    before = _identity(asyncio.run(_instance(between)))
    with between.one_at_a_time():
        planned = between.there.run("web", "--dry-run")
        assert planned.returncode == 0 and "carries disk data (web-data), 32Mi" in planned.stderr, planned.stderr
        assert not any(map(between.cluster.names, OF_MOVES))
        assert "moved to namespace default" in between.there.good("web", "--verify")
        assert between.on_cluster("head -n1 /dev/vdb") == MARKER
        assert between.cluster.names(EXPORTS) == [] and between.guests()[0] == []
        assert _identity(between.cluster.get(f"{INSTANCES}/web")) == before
        between.on_cluster("echo written on the cluster | dd of=/dev/vdb seek=1 bs=512; sync")
        assert "moved to namespace default" in between.back.good("web", "--verify", "--replace")
        assert between.on_host("head -n1 /dev/vdb") == MARKER
        assert between.on_host("dd if=/dev/vdb skip=1 bs=512 count=1 2>/dev/null | head -n1") == "written on the cluster"
        assert _identity(asyncio.run(_instance(between))) == before
        _cannot_start_the_source(between)
        assert "deleted at" in between.back.good("web", "--delete-source")
    assert not any(map(between.cluster.names, OF_MOVES))


async def _instance(between: Between) -> Json:
    async with between.host.client() as client:
        return await Talk(between.host, client).get(f"{VMIS}/web")


def _identity(instance: Json) -> tuple[str, str]:
    """Return what licences and DHCP know a guest by: the UUID of its firmware, and its MAC address."""
    return instance["spec"]["domain"]["firmware"]["uuid"], instance["status"]["interfaces"][0]["mac"]


def _cannot_start_the_source(between: Between) -> None:
    """Nothing on a cluster knows a fence. A person starts the source all the same, and nothing runs."""
    between.cluster.virtctl.ok("start", "web")
    pods = "/api/v1/namespaces/default/pods"

    def is_refused() -> bool:
        conditions = [each for pod in between.cluster.get(pods)["items"] for each in pod["status"].get("conditions", ())]
        return any(each.get("reason") == "Unschedulable" for each in conditions)

    until(is_refused)
    refused = between.back.run("web")
    assert refused.returncode == 2 and "wants to run, while the machine at the target may run" in refused.stderr, refused.stderr
    assert between.guests()[1] == []
    between.cluster.virtctl.ok("stop", "web", "--force", "--grace-period=0")
    until(lambda: not between.cluster.get(f"{INSTANCES}/web"))


def test_the_command_is_killed_in_every_phase(between: Between, tiny_disk_image: str) -> None:
    _begin(between, tiny_disk_image)
    with between.one_at_a_time():
        assert [step for step in STEPS if between.there.killed_at(step, "web")] == list(STEPS)
        between.there.good("web")
        assert between.on_cluster("head -n1 /dev/vdb") == MARKER
        for step in ("fence the machine at", "delete the machine at", "delete what was carried", "release the source"):
            between.there.killed_at(step, "web", "--undo")
        between.there.run("web", "--undo")
        assert between.on_host("head -n1 /dev/vdb") == MARKER
    assert not any(map(between.cluster.names, OF_MOVES))


def test_a_guest_of_the_cluster_comes_to_the_host_in_every_phase(between: Between, tiny_disk_image: str) -> None:
    """The other way: the command dies at each step, the move is undone, and done again."""
    _begin(between, tiny_disk_image)
    between.there.good("web")
    between.there.good("web", "--delete-source")
    with between.one_at_a_time():
        assert [step for step in STEPS if between.back.killed_at(step, "web")] == list(STEPS)
        between.back.good("web", "--undo")
        assert between.on_cluster("head -n1 /dev/vdb") == MARKER
        between.back.good("web")
        assert between.on_host("head -n1 /dev/vdb") == MARKER


def _partial(folder: Path, name: str) -> Callable[[], bool]:
    """Return a condition: an upload has begun to write."""
    return lambda: any(each.stat().st_blocks * 512 > 8 << 20 for each in folder.rglob(name))


def test_every_program_is_killed_while_it_carries(between: Between) -> None:
    """A disk of random data goes to the host and back; each program on its way dies with a part of it."""
    cluster = between.cluster
    _make(between, machine("cargo", "cargo-data"))
    until(lambda: cluster.get(f"{DISKS}/cargo-data").get("status", {}).get("phase") == "Succeeded")
    wanted = fill(between.file("cargo-data"), _CARGO)
    size = between.file("cargo-data").stat().st_size
    _lose_the_source(between)
    between.back.good("cargo", "--verify")
    assert _sums(between.lines) == {"cargo-data": (size, wanted)}
    between.back.good("cargo", "--delete-source")
    assert not any(map(cluster.names, OF_MOVES))
    _lose_the_target(between)
    between.there.good("cargo")
    assert _sums(between.lines)["cargo-data"] == (size, wanted)
    assert digest(between.file("cargo-data")) == wanted


def _sums(lines: list[str]) -> dict[str, tuple[int, str]]:
    """Return length and SHA-256 of each disk as the command says them last."""
    said = [re.search(r"disk (\S+) is there: (\d+) bytes, sha256 (\w+)", line) for line in lines]
    return {each[1]: (int(each[2]), each[3]) for each in said if each}


def _fails(process: "subprocess.Popen[str]") -> None:
    _, said = process.communicate()
    assert process.returncode == 2 and "nothing is lost" in said, said


def _lose_the_source(between: Between) -> None:
    """From the cluster to the host: the export server, the export itself, the API server of the cluster, and the host that receives."""

    def sends() -> bool:
        return any(_read_bytes(pid) > 16 << 20 for pid in between.processes("virt-exportserver"))

    def kill_server() -> None:
        for pid in between.processes("virt-exportserver"):
            os.kill(pid, signal.SIGKILL)

    def delete_export() -> None:
        # Its server may go on for 30 seconds, which suffice for the whole disk.
        between.cluster.kubectl.ok("delete", "vmexport", "--all", "--wait=false")
        kill_server()

    for kill in (kill_server, delete_export, partial(_kill_api, between), between.host.kill):
        process = between.back.until_line("carry a disk cargo-data", "cargo")
        until(sends)
        kill()
        _fails(process)
        _mend(between)


def _kill_api(between: Between) -> None:
    for pid in between.processes("kube-apiserver", "--etcd-servers"):
        os.kill(pid, signal.SIGKILL)


def _mend(between: Between) -> None:
    """Start what was killed again."""
    if not between.host.is_up:
        between.host.start()
    if not between.processes("kube-apiserver", "--etcd-servers"):
        control.start_api(between.cluster.machine)


def _read_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/io").read_text().splitlines()[0].split()[1])
    except OSError:
        return 0


def _lose_the_target(between: Between) -> None:
    """From the host to the cluster: the upload proxy, the API server of the cluster, and the host that sends."""
    machine = between.cluster.machine
    written = "disk.img" if between.cluster.has_cdi else "partial"
    for kill in (partial(_kill_uploads, between.cluster), partial(_kill_api, between), between.host.kill):
        process = between.there.until_line("carry a disk cargo-data", "cargo")
        until(_partial(machine.directory / "volumes", written))
        kill()
        _fails(process)
        _mend(between)
        if not between.cluster.has_cdi and not between.processes(uploads.__name__):
            uploads.start(machine)


def _kill_uploads(cluster: Cluster) -> None:
    """Kill the upload proxy; that of CDI itself is a Pod, which comes again."""
    if cluster.has_cdi:
        cluster.kubectl.ok(
            "delete", "pod", "-n", uploads.NAMESPACE, "-l", f"cdi.kubevirt.io={uploads.PROXY}", "--grace-period=0", "--force"
        )
    else:
        uploads.kill(cluster.machine)


def test_several_machines_move_with_what_they_refer_to(between: Between) -> None:
    service: Json = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop"}}
    service["spec"] = {"selector": {"tier": "shop"}, "ports": [{"port": 80}]}
    machines = [machine(name, f"{name}-data", size="32Mi") for name in ("shop-a", "shop-b")]
    for each in machines:
        each["metadata"]["labels"] = {"tier": "shop"}
        each["spec"]["template"]["metadata"] = {"labels": {"tier": "shop"}}
        each["spec"]["template"]["spec"]["volumes"].append({"name": "init", "cloudInitNoCloud": {"secretRef": {"name": "web-init"}}})
        each["spec"]["template"]["spec"]["domain"]["devices"]["disks"].append({"name": "init", "disk": {"bus": "virtio"}})
    _make(between, _SECRET, service, *machines)
    filled = [f"{DISKS}/{name}-data" for name in ("shop-a", "shop-b")]
    until(lambda: all(between.cluster.get(each).get("status", {}).get("phase") == "Succeeded" for each in filled))
    try:
        between.back.good("-l", "tier=shop", "--verify")
        between.back.good("-l", "tier=shop", "--delete-source")
        between.cluster.kubectl.ok("delete", "secret/web-init", "service/shop")
        between.there.good("-l", "tier=shop")
        assert between.cluster.names(MACHINES) == ["shop-a", "shop-b"]
        assert between.cluster.get("/api/v1/namespaces/default/services/shop")["spec"]["selector"] == {"tier": "shop"}
        assert between.cluster.get("/api/v1/namespaces/default/secrets/web-init")["data"] == {"userdata": "I2Nsb3VkLWNvbmZpZwo="}
        between.there.good("-l", "tier=shop", "--undo")
        assert between.cluster.names(MACHINES) == [] and not between.cluster.get("/api/v1/namespaces/default/secrets/web-init")
    finally:
        between.cluster.kubectl.run("delete", "secret/web-init", "service/shop")


async def lone(talk: Talk) -> None:
    """Make a machine with a disk."""
    await talk.make(VMS, machine("lone", "lone-data", size="32Mi"))
    await talk.until(f"{DISKS}/lone-data", lambda found: found.get("status", {}).get("phase") == "Succeeded")


def test_a_plan_names_what_a_cluster_lacks(between: Between) -> None:
    if between.cluster.has_cdi:
        pytest.skip("needs stand-in: cdi-operator makes a Service that was deleted again")
    kubectl = between.cluster.kubectl

    between.do(lone)
    service = kubectl.ok("get", "service", "-n", uploads.NAMESPACE, uploads.PROXY, "-o", "json")
    kubectl.ok("delete", "service", "-n", uploads.NAMESPACE, uploads.PROXY)
    kubectl.ok("annotate", "storageclass", "usual", "storageclass.kubernetes.io/is-default-class-")
    try:
        refused = between.there.run("lone", "--dry-run")
    finally:
        kubectl.ok("annotate", "storageclass", "usual", "storageclass.kubernetes.io/is-default-class=true")
        kubectl.ok("apply", "-f", "-", stdin=service)
    assert refused.returncode == 2, refused.stderr
    assert "CDIConfig names no uploadProxyURL" in refused.stderr and "no default storage class" in refused.stderr
    assert between.there.run("lone", "--dry-run").returncode == 0
    assert between.cluster.names(CLAIMS) == []


def test_a_plan_names_rights_that_a_user_of_the_cluster_lacks(between: Between, tmp_path: Path) -> None:
    """A ServiceAccount has the rights that the guide lists, but for one; then it has that one, too."""
    cluster, account = between.cluster, "mover"
    _make(between, machine("lone", "lone-data", size="32Mi"), _account(account), *_granted(account, "get"))
    until(lambda: cluster.get(f"{DISKS}/lone-data").get("status", {}).get("phase") == "Succeeded")
    try:
        token = cluster.kubectl.ok("create", "token", account).strip()
        access = write_kubeconfig(tmp_path / "mover", cluster.api.access.url, token, cluster.api.access.authority)
        command = MoveCommand(access, between.host.root, between.lines)
        refused = command.run("lone", "--dry-run")
        assert refused.returncode == 2, refused.stderr
        assert "cannot: you may not create pods/portforward in namespace default at the source" in refused.stderr, refused.stderr
        cluster.kubectl.ok("apply", "-f", "-", stdin=json.dumps(_granted(account, "get", "create")[0]))
        assert "moved to namespace default" in command.good("lone")
        command.good("lone", "--delete-source")
    finally:
        kinds = ("serviceaccount", "role", "rolebinding", "clusterrole", "clusterrolebinding")
        cluster.kubectl.run("delete", "--wait=false", *(f"{each}/{account}" for each in kinds))


def _account(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}


def _granted(account: str, *forwards: str) -> list[Json]:
    """The rights in the namespace, and those to see what every user may see."""
    every = ["get", "list", "create", "patch", "delete"]
    rules = [
        {"apiGroups": ["kubevirt.io", "export.kubevirt.io", "cdi.kubevirt.io"], "resources": ["*"], "verbs": every},
        {"apiGroups": [""], "resources": ["persistentvolumeclaims", "secrets", "configmaps", "services", "pods"], "verbs": every},
        {"apiGroups": [""], "resources": ["pods/portforward"], "verbs": list(forwards)},
    ]
    seen = [
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
        {"apiGroups": ["kubevirt.io"], "resources": ["kubevirts"], "verbs": ["get", "list"]},
        {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses"], "verbs": ["get", "list"]},
    ]
    rbac, metadata = "rbac.authorization.k8s.io", {"name": account}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "default"}
    version = f"{rbac}/v1"
    return [
        {"apiVersion": version, "kind": "Role", "metadata": {**metadata, "namespace": "default"}, "rules": rules},
        {
            "apiVersion": version,
            "kind": "RoleBinding",
            "metadata": {**metadata, "namespace": "default"},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": account},
            "subjects": [subject],
        },
        {"apiVersion": version, "kind": "ClusterRole", "metadata": metadata, "rules": seen},
        {
            "apiVersion": version,
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": account},
            "subjects": [subject],
        },
    ]


def test_a_cluster_with_addresses_of_its_own(between: Between, tmp_path: Path) -> None:
    """An Ingress leads to KubeVirt's virt-exportproxy, and CDI names its upload proxy. The first dies on the way."""
    cluster = between.cluster
    if cluster.has_cdi:
        pytest.skip("needs stand-in: the controller of CDI writes the status of CDIConfig")
    _make(between, machine("cargo", "cargo-data"))
    until(lambda: cluster.get(f"{DISKS}/cargo-data").get("status", {}).get("phase") == "Succeeded")
    wanted = fill(between.file("cargo-data"), _CARGO)
    port = forward.open_port(cluster.machine, namespace.ADDRESS, uploads.PROXY_PORT)
    with ingress.exports(cluster, tmp_path) as proxy, _upload_address(cluster, f"https://localhost:{port}"):
        files = (cluster.machine.directory / "kubeconfig", between.host.root / "kubeconfig")
        back = MoveCommand(*files, between.lines, {"HTTPS_PROXY": proxy})
        process = back.until_line("carry a disk cargo-data", "cargo")
        until(lambda: any(_read_bytes(pid) > 16 << 20 for pid in between.processes("virt-exportserver")))
        before = _starts_of_proxy(cluster)
        for pid in between.processes("virt-exportproxy"):
            os.kill(pid, signal.SIGKILL)
        _fails(process)
        # The pod of one that was killed is still ready for a moment.
        until(lambda: _starts_of_proxy(cluster) > before)
        back.good("cargo")
        back.good("cargo", "--delete-source")
        between.there.good("cargo")
        assert {carried for _, carried in _sums(between.lines).values()} == {wanted}
        assert digest(between.file("cargo-data")) == wanted


def _starts_of_proxy(cluster: Cluster) -> int:
    """Return how often virt-exportproxy has started, once it is ready."""
    (pod,) = cluster.get("/api/v1/namespaces/kubevirt/pods?labelSelector=kubevirt.io%3Dvirt-exportproxy")["items"]
    (container,) = pod["status"]["containerStatuses"]
    return container["restartCount"] + 1 if container["ready"] else 0


@contextlib.contextmanager
def _upload_address(cluster: Cluster, url: str) -> Iterator[None]:
    def name(value: str | None) -> None:
        patch = json.dumps({"status": {"uploadProxyURL": value}})
        cluster.kubectl.ok("patch", "cdiconfig", "config", "--type=merge", "-p", patch)

    name(url)
    try:
        yield
    finally:
        name(None)
