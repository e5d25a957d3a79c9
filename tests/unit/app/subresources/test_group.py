"""The group as a whole: discovery, rights, and what it says about the installation (docs/spec/kubevirt.md 4.1)."""

from pathlib import Path
from typing import Any

import pytest

import paddock
from paddock.server.api import Api
from paddock.server.housekeeping import bootstrap
from paddock.server.resources.kubevirtsubresources import GROUP
from paddock.server.security.guard import Guard
from paddock.server.security.identity import Identities
from tests.coroutines import played_by, scripted
from tests.kit.servers.apiharness import GuardedHarness, Harness, NamedUsers, NoJournal
from tests.unit.app.subresources.world import BASE, World, hardware, path

VMI = (
    "console",
    "consolelog",
    "vnc",
    "vnc/screenshot",
    "usbredir",
    "vsock",
    "portforward",
    "guestosinfo",
    "userlist",
    "filesystemlist",
    "objectgraph",
    "usagehistory",
)
VMI_PUT = (
    "pause",
    "unpause",
    "freeze",
    "unfreeze",
    "softreboot",
    "reset",
    "renew",
    "guestexec",
    "guestfile",
    "addvolume",
    "removevolume",
    "evacuate/cancel",
    "backup",
)
VM = ("expand-spec", "consolelog", "portforward", "objectgraph", "usagehistory")
VM_PUT = (
    "start",
    "stop",
    "restart",
    "migrate",
    "suspend",
    "resume",
    "addvolume",
    "removevolume",
    "memorydump",
    "removememorydump",
    "evacuate/cancel",
)
SEV = {"sev/fetchcertchain": "GET", "sev/querylaunchmeasurement": "GET", "sev/setupsession": "PUT", "sev/injectlaunchsecret": "PUT"}
OTHERS = (*SEV, "redefine-checkpoint")
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


# --- discovery ------------------------------------------------------------------------------------------------------------


@scripted
async def test_the_group_and_its_own_document() -> None:
    async with World() as world:
        own = (await world.api.get(f"/apis/{GROUP}")).data
        # The slip in the name is upstream's; clients read the preferred version.
        assert (own["kind"], own["name"]) == ("APIGroup", "subresource.kubevirt.io")
        assert own["preferredVersion"] == {"groupVersion": f"{GROUP}/v1", "version": "v1"}
        assert [each["version"] for each in own["versions"]] == ["v1", "v1alpha3"]
        groups = {each["name"]: each for each in (await world.api.get("/apis")).data["groups"]}
        assert groups[GROUP]["preferredVersion"]["groupVersion"] == f"{GROUP}/v1"


@pytest.mark.parametrize("version", ["v1", "v1alpha3"])
@scripted
async def test_the_list_of_resources(version: str) -> None:
    async with World() as world:
        listed = (await world.api.get(f"/apis/{GROUP}/{version}")).data
        assert (listed["kind"], listed["groupVersion"]) == ("APIResourceList", f"{GROUP}/{version}")
        found = {each["name"]: each for each in listed["resources"]}
        verbs = [
            *((f"virtualmachineinstances/{name}", ["get"]) for name in VMI),
            *((f"virtualmachineinstances/{name}", ["update"]) for name in VMI_PUT),
            *((f"virtualmachines/{name}", ["get"]) for name in VM),
            *((f"virtualmachines/{name}", ["update"]) for name in VM_PUT),
        ]
        for name, expected in verbs:
            assert (found[name]["verbs"], found[name]["namespaced"]) == (expected, True), name
        assert {name for name in found if "/" in name} == {
            *(name for name, _ in verbs),
            *(f"virtualmachineinstances/{name}" for name in OTHERS),
        }
        # Nobody shall try to list or delete "versions".
        assert (found["version"]["verbs"], found["version"]["namespaced"], found["expand-vm-spec"]["namespaced"]) == ([], False, True)
        assert "virtualmachines" not in found


@scripted
async def test_aggregated_discovery_tells_of_the_group() -> None:
    async with World() as world:
        items = (await world.api.get("/apis", accept=AGGREGATED)).data["items"]
        (group,) = [each for each in items if each["metadata"]["name"] == GROUP]
        resources = {each["resource"]: each for each in group["versions"][0]["resources"]}
        assert group["versions"][0]["version"] == "v1"
        assert "start" in [each["subresource"] for each in resources["virtualmachines"]["subresources"]]
        assert resources["virtualmachines"]["verbs"] == []


@scripted
async def test_openapi_has_the_paths_of_what_has_no_objects_and_no_schema() -> None:
    async with World() as world:
        document = (await world.api.get(f"/openapi/v3/apis/{GROUP}/v1")).data
        assert document["components"]["schemas"] == {}
        second = (await world.api.get("/openapi/v2")).data["paths"]
        machine = f"/apis/{GROUP}/v1/namespaces/{{namespace}}/virtualmachines/{{name}}"
        wanted = {
            f"{machine}/start": "put",
            f"{machine}/expand-spec": "get",
            f"{machine}/portforward/{{path}}": "get",
            f"/apis/{GROUP}/v1/namespaces/{{namespace}}/expand-vm-spec": "put",
            f"/apis/{GROUP}/v1/version": "get",
        }
        for name, method in wanted.items():
            assert [key for key in document["paths"][name] if key != "parameters"] == [method]
            assert list(second[name]) == [method]
        named = [operation["operationId"] for path in second.values() for operation in path.values()]
        assert len(named) == len(set(named))


@pytest.mark.parametrize(
    ("method", "target", "code"),
    [
        ("GET", path("vm", "vm", "start"), 405),
        ("PUT", path("vmi", "vm", "console"), 405),
        ("POST", path("vm", "vm", "start"), 405),
        ("GET", path("vm", "vm", "dance"), 404),
        ("GET", f"{BASE}/namespaces/default/virtualmachines", 405),
        ("GET", f"{BASE}/namespaces/default/virtualmachines/vm", 405),
        ("GET", f"/apis/{GROUP}/v2/version", 404),
        ("GET", f"{BASE}/sorcery", 404),
        ("PUT", path("vm", "vm", "start", namespace="nowhere"), 404),
    ],
)
@scripted
async def test_what_is_not_served(method: str, target: str, code: int) -> None:
    async with World() as world:
        await world.machine()
        reply = await world.api.call(method, target)
        assert (reply.status, reply.data["kind"]) == (code, "Status")


# --- rights ---------------------------------------------------------------------------------------------------------------


async def bind(api: Harness, user: str, role: str) -> None:
    body = {
        "metadata": {"name": f"{user}-{role.replace(':', '-')}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
    }
    made = await api.post("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", body, authorization="Bearer root")
    assert made.status == 201, made.data


async def role(api: Harness, name: str, resource: str, verb: str) -> None:
    rule = {"apiGroups": [GROUP], "resources": [resource], "verbs": [verb]}
    made = await api.post(
        "/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": name}, "rules": [rule]}, authorization="Bearer root"
    )
    assert made.status == 201, made.data


def guarded(folder: Path, script: Any) -> None:
    @scripted
    async def run() -> None:
        async with World(GuardedHarness(folder)) as world:
            await bootstrap.ensure(world.api.parts)
            await world.machine()
            await world.running()
            await script(world)

    run()


EVERY = [
    *(("GET", path("vmi", "vm", "portforward/22" if name == "portforward" else name)) for name in VMI),
    *(("PUT", path("vmi", "vm", name)) for name in VMI_PUT),
    *(("GET", path("vm", "vm", "portforward/22/tcp" if name == "portforward" else name)) for name in VM),
    *(("PUT", path("vm", "vm", name)) for name in VM_PUT),
    *((method, path("vmi", "vm", name)) for name, method in SEV.items()),
    ("PUT", f"{BASE}/namespaces/default/expand-vm-spec"),
]


@pytest.mark.spec("kubevirt", 63)
@played_by(guarded, "tmp_path")
async def test_who_is_nobody_or_has_no_rights_gets_nothing(world: World, /) -> None:
    for method, target in EVERY:
        wrong = await world.api.call(method, target, authorization="Bearer not-good")
        assert (wrong.status, wrong.data["reason"]) == (401, "Unauthorized"), target
        # Whoever says nothing is anonymous, and may do nothing.
        assert (await world.api.call(method, target)).status == 403, target
        stranger = await world.api.call(method, target, authorization="Bearer ada")
        assert (stranger.status, stranger.data["reason"]) == (403, "Forbidden"), target
    assert (await world.api.call("GET", f"{BASE}/version", authorization="Bearer ada")).status == 200
    assert (await world.api.call("GET", f"{BASE}/version")).status == 403


@pytest.mark.spec("kubevirt", 63)
@played_by(guarded, "tmp_path")
async def test_where_nobody_may_be_anonymous_whoever_says_nothing_is_unauthorized(world: World, /) -> None:
    api = world.api.api
    closed = Api(world.api.parts, Guard(Identities((NamedUsers(),), anonymous=False), world.api.rbac), NoJournal())
    closed.subresources.update(api.subresources)
    world.api.api = closed
    for method, target in EVERY:
        assert (await world.api.call(method, target)).status == 401, target


READ_ONLY = (
    *("guestosinfo", "userlist", "filesystemlist", "objectgraph", "usagehistory"),
    *("expand-spec", "sev/fetchcertchain", "sev/querylaunchmeasurement"),
)
# What neither `edit` nor `admin` allows.
NOBODYS = ("/migrate", "/renew", "/vsock", "/backup")


@pytest.mark.spec("kubevirt", 63)
@played_by(guarded, "tmp_path")
async def test_whoever_may_look_may_change_nothing_and_see_no_screen(world: World, /) -> None:
    for user, role_name in (("viewer", "view"), ("looker", "kubevirt.io:view")):
        await bind(world.api, user, role_name)
        for method, target in EVERY:
            reply = await world.api.call(method, target, authorization=f"Bearer {user}")
            may = target.endswith((*READ_ONLY, "expand-vm-spec"))
            assert (reply.status != 403) is may, (user, target, reply.raw)
    for user, role_name in (("editor", "edit"), ("writer", "kubevirt.io:edit"), ("boss", "admin"), ("chief", "kubevirt.io:admin")):
        await bind(world.api, user, role_name)
        for method, target in EVERY:
            reply = await world.api.call(method, target, authorization=f"Bearer {user}")
            denied = NOBODYS if user in ("boss", "chief") else (*NOBODYS, "/vnc/screenshot")
            assert (reply.status != 403) is (not target.endswith(denied)), (user, target, reply.raw)
    await bind(world.api, "mover", "kubevirt.io:migrate")
    assert (await world.api.call("PUT", path("vm", "vm", "migrate"), authorization="Bearer mover")).status == 202
    assert (await world.api.call("PUT", path("vmi", "vm", "renew"), authorization="Bearer mover")).status != 403


@pytest.mark.spec("kubevirt", 63)
@played_by(guarded, "tmp_path")
async def test_console_and_display_have_rights_of_their_own(world: World, /) -> None:
    rights = {"seer": "virtualmachineinstances/vnc", "typist": "virtualmachineinstances/console"}
    for user, resource in (*rights.items(), ("painter", "virtualmachineinstances/vnc/screenshot")):
        await role(world.api, user, resource, "get")
        await bind(world.api, user, user)

    async def code(user: str, name: str) -> int:
        return (await world.api.call("GET", path("vmi", "vm", name), authorization=f"Bearer {user}")).status

    # 400: they may, and did not come with a WebSocket.
    assert [await code("seer", name) for name in ("vnc", "vnc/screenshot", "console")] == [400, 403, 403]
    assert [await code("typist", name) for name in ("vnc", "vnc/screenshot", "console")] == [403, 403, 400]
    assert [await code("painter", name) for name in ("vnc", "vnc/screenshot", "console")] == [403, 200, 403]
    # The verb is part of the right.
    assert (await world.api.call("PUT", path("vmi", "vm", "pause"), authorization="Bearer seer")).status == 403


# --- the installation -----------------------------------------------------------------------------------------------------


@scripted
async def test_the_version_can_be_compared() -> None:
    async with World() as world:
        told = (await world.api.get(f"{BASE}/version")).data
        assert told["gitVersion"] == f"v1.9.0+paddock.{paddock.__version__}"
        assert set(told) >= {"gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"}
        assert set((await world.api.get(f"{BASE}/guestfs")).data) == {"registry", "tag", "digest", "imagePrefix", "gsImage"}
        assert (await world.api.get(f"{BASE}/healthz")).status == 200


@pytest.mark.parametrize("method", ["GET", "PUT"])
@pytest.mark.parametrize("verb", ["start", "stop", "dump"])
@scripted
async def test_profilers_are_refused(verb: str, method: str) -> None:
    async with World() as world:
        reply = await world.api.call(method, f"{BASE}/{verb}-cluster-profiler")
        assert (reply.status, '"ClusterProfiler" feature gate must be enabled' in reply.data["message"]) == (403, True)
        await gates(world, "ClusterProfiler")
        reply = await world.api.call(method, f"{BASE}/{verb}-cluster-profiler")
        assert (reply.status, "there are no pods here" in reply.data["message"]) == (403, True)


async def gates(world: World, *names: str) -> None:
    await world.api.namespace("kubevirt")
    target = "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts"
    spec = {"configuration": {"developerConfiguration": {"featureGates": list(names)}}}
    body = {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt"}, "spec": spec}
    assert (await world.api.post(target, body)).status == 201


@pytest.mark.parametrize(("name", "method"), SEV.items())
@scripted
async def test_sev_is_refused(name: str, method: str) -> None:
    async with World() as world:
        reply = await world.api.call(method, path("vmi", "vm", name))
        assert (reply.status, reply.data["message"]) == (400, "'WorkloadEncryptionSEV' feature gate is not enabled")
        await gates(world, "WorkloadEncryptionSEV")
        assert (await world.api.call(method, path("vmi", "vm", name))).status == 404
        await world.running()
        reply = await world.api.call(method, path("vmi", "vm", name))
        assert (reply.status, "AMD SEV" in reply.data["message"]) == (400, True)


@pytest.mark.parametrize("name", ["backup", "redefine-checkpoint"])
@scripted
async def test_backups_are_refused(name: str) -> None:
    async with World() as world:
        assert (await world.put("vmi", "vm", name)).status == 400
        await gates(world, "IncrementalBackup")
        await world.running()
        reply = await world.put("vmi", "vm", name)
        assert (reply.status, "VirtualMachineBackup" in reply.data["message"]) == (400, True)


@scripted
async def test_vsock_is_refused_by_its_gate_and_by_the_lack_of_a_device() -> None:
    async with World() as world:
        await gates(world, "VSOCK")
        await world.running()
        reply = await world.get("vmi", "vm", "vsock?port=22")
        assert (reply.status, reply.data["message"]) == (400, "VSOCK is not attached.")


# --- trees ----------------------------------------------------------------------------------------------------------------


@scripted
async def test_the_tree_of_what_a_machine_depends_on() -> None:
    async with World() as world:
        volumes = [
            {"name": "root", "dataVolume": {"name": "disk"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "init", "cloudInitNoCloud": {"secretRef": {"name": "init"}}},
        ]
        disks = {"disks": [{"name": each["name"], "disk": {}} for each in volumes]}
        await world.machine(template={"spec": hardware(volumes=volumes, devices=disks)})
        await world.set_machine_status("vm", created=True)
        off = await world.get("vm", "vm", "objectgraph")
        assert (off.status, off.data["message"]) == (400, "ObjectGraph feature gate not enabled: Unable to return object graph.")
        await gates(world, "ObjectGraph")
        tree = (await world.get("vm", "vm", "objectgraph")).data
        assert tree["objectReference"] == {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "vm", "namespace": "default"}
        found = {(each["objectReference"]["kind"], each["objectReference"]["name"]): each for each in tree["children"]}
        assert {("VirtualMachineInstance", "vm"), ("DataVolume", "disk"), ("PersistentVolumeClaim", "data"), ("Secret", "init")} <= set(
            found
        )
        assert found["DataVolume", "disk"]["children"][0]["objectReference"]["kind"] == "PersistentVolumeClaim"
        assert found["Secret", "init"]["labels"] == {"kubevirt.io/dependency-type": "config"}
        wanted = {"labelSelector": {"matchLabels": {"kubevirt.io/dependency-type": "storage"}}}
        only = (await world.api.call("GET", path("vm", "vm", "objectgraph"), wanted)).data
        assert {each["labels"]["kubevirt.io/dependency-type"] for each in only["children"]} == {"storage"}
        assert (await world.get("vmi", "vm", "objectgraph")).status == 404


# --- expanding ------------------------------------------------------------------------------------------------------------


def written(**metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "vm", **metadata},
        "spec": {
            "runStrategy": "Halted",
            "instancetype": {"name": "small"},
            "template": {"spec": {"domain": {"devices": {}}}},
        },
    }


async def small(world: World) -> None:
    body = {"metadata": {"name": "small"}, "spec": {"cpu": {"guest": 3}, "memory": {"guest": "96Mi"}}}
    body |= {"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineClusterInstancetype"}
    made = await world.api.post("/apis/instancetype.kubevirt.io/v1beta1/virtualmachineclusterinstancetypes", body)
    assert made.status == 201, made.data


@pytest.mark.spec("kubevirt", 92)
@scripted
async def test_a_machine_says_everything_itself() -> None:
    async with World() as world:
        await small(world)
        await world.stored.create("virtualmachines", "default", written())
        for reply in (
            await world.get("vm", "vm", "expand-spec"),
            await world.api.put(f"{BASE}/namespaces/default/expand-vm-spec", written()),
            await world.api.put(f"{BASE}/namespaces/default/expand-vm-spec", written(namespace="default")),
        ):
            assert reply.status == 200
            assert "instancetype" not in reply.data["spec"]
            domain = reply.data["spec"]["template"]["spec"]["domain"]
            assert (domain["cpu"]["sockets"], domain["memory"]["guest"]) == (3, "96Mi")
        assert world.vm()["spec"]["instancetype"]["name"] == "small"


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (None, 400, "empty request body"),
        ({"kind": "Pod"}, 400, "Object is not a valid VirtualMachine"),
        ({**written(), "spec": {"template": 3}}, 400, "Object is not a valid VirtualMachine"),
        (written(namespace="other"), 400, "VM namespace must be empty or default"),
        (written(), 500, "small"),
    ],
)
@scripted
async def test_what_cannot_be_expanded(body: Any, code: int, words: str) -> None:
    async with World() as world:
        reply = await world.api.put(f"{BASE}/namespaces/default/expand-vm-spec", body)
        assert (reply.status, words in reply.data["message"]) == (code, True), reply.data
        assert (await world.get("vm", "vm", "expand-spec")).status == 404
