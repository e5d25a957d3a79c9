"""DataVolumes at the door: whose claim is there already, who may copy what, and who made it."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from paddock.kubernetes.core.storageclass import IS_DEFAULT, PROVISIONER
from paddock.kubevirt.plan.storage import requesters
from tests import virtualtime
from tests.coroutines import run_by
from tests.kit.servers.apiharness import GuardedHarness, Harness

CDI = "/apis/cdi.kubevirt.io/v1beta1/namespaces"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
MAKER = "paddock.dev/made-by"
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
ROOT = {"authorization": "Bearer root"}
ADA = {"authorization": "Bearer ada"}


def volume(name: str, source: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    spec = {**source, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}
    return {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": name, **metadata}, "spec": spec}


def copy(namespace: str = "golden") -> dict[str, Any]:
    return {"source": {"pvc": {"namespace": namespace, "name": "disk"}}}


async def permit(api: Harness, user: str, verbs: list[str], resources: list[str], namespace: str) -> None:
    role = {"metadata": {"name": user}, "rules": [{"apiGroups": ["cdi.kubevirt.io", ""], "resources": resources, "verbs": verbs}]}
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    binding = {"metadata": {"name": user}, "roleRef": {"kind": "Role", "name": user, "apiGroup": "rbac.authorization.k8s.io"}}
    assert (await api.post(f"{RBAC}/namespaces/{namespace}/roles", role, **ROOT)).status == 201
    assert (await api.post(f"{RBAC}/namespaces/{namespace}/rolebindings", {**binding, "subjects": [subject]}, **ROOT)).status == 201


@run_by(virtualtime.run)
async def test_whoever_copies_from_another_namespace_needs_the_right_there(tmp_path: Path) -> None:
    async with GuardedHarness(tmp_path) as api:
        await api.namespace("golden")
        await permit(api, "ada", ["create", "get", "update", "patch"], ["datavolumes"], "default")
        path = f"{CDI}/default/datavolumes"
        refused = await api.post(path, volume("a", copy()), **ADA)
        assert refused.status == 403
        assert "User ada has insufficient permissions in clone source namespace golden" in refused.data["message"]
        # the same through a DataSource
        source = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource", "metadata": {"name": "fedora"}, "spec": copy()}
        assert (await api.post(f"{CDI}/golden/datasources", source, **ROOT)).status == 201
        reference = {"sourceRef": {"kind": "DataSource", "name": "fedora", "namespace": "golden"}}
        assert (await api.post(path, volume("a", reference), **ADA)).status == 403
        assert (await api.post(path, volume("own", copy("default")), **ADA)).status == 201
        await permit(api, "ada", ["create"], ["datavolumes/source"], "golden")
        assert (await api.post(path, volume("a", copy()), **ADA)).status == 201
        assert (await api.post(path, volume("b", reference), **ADA)).status == 201


@pytest.mark.parametrize(
    ("source", "resources", "status"),
    [
        (copy(), ["pods"], 201),
        (copy(), ["persistentvolumeclaims"], 403),
        ({"source": {"snapshot": {"namespace": "golden", "name": "kept"}}}, ["pods"], 403),
        ({"source": {"snapshot": {"namespace": "golden", "name": "kept"}}}, ["pods", "persistentvolumeclaims"], 201),
    ],
)
@run_by(virtualtime.run)
async def test_whoever_could_read_the_source_may_copy_it(tmp_path: Path, source: dict[str, Any], resources: list[str], status: int) -> None:
    async with GuardedHarness(tmp_path) as api:
        await api.namespace("golden")
        await permit(api, "ada", ["create"], ["datavolumes"], "default")
        await permit(api, "ada", ["create"], resources, "golden")
        assert (await api.post(f"{CDI}/default/datavolumes", volume("a", source), **ADA)).status == status


@pytest.mark.parametrize(
    ("template", "account"),
    [
        ({}, "default"),
        ({"serviceAccountName": "copier"}, "copier"),
        ({"volumes": [{"name": "account", "serviceAccount": {"serviceAccountName": "copier"}}]}, "copier"),
    ],
)
@run_by(virtualtime.run)
async def test_the_disk_of_a_machine_asks_as_its_service_account(tmp_path: Path, template: dict[str, Any], account: str) -> None:
    async with GuardedHarness(tmp_path) as api:
        hardware = {"domain": {"devices": {}, "memory": {"guest": "1Gi"}}, **template}
        spec = {"runStrategy": "Halted", "template": {"spec": hardware}}
        machine = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web"}, "spec": spec}
        made = await api.post("/apis/kubevirt.io/v1/namespaces/default/virtualmachines", machine, **ROOT)
        assert made.status == 201, made.data
        owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": made.data["metadata"]["uid"]}
        body = volume("a", {"source": {"blank": {}}}, ownerReferences=[{**owner, "controller": True}])
        disk = await api.post(f"{CDI}/default/datavolumes", body, **ROOT)
        user = orjson.loads(disk.data["metadata"]["annotations"][MAKER])["user"]
        assert user == f"system:serviceaccount:default:{account}"


@pytest.mark.spec("kubevirt", 124)
@run_by(virtualtime.run)
async def test_more_than_any_disk_has_is_refused_where_this_host_makes_the_disks(tmp_path: Path) -> None:
    async with GuardedHarness(tmp_path) as api:
        for name, provisioner, default in (("theirs", "example.org/disks", "false"), ("ours", PROVISIONER, "true")):
            metadata = {"name": name, "annotations": {IS_DEFAULT: default}}
            path = "/apis/storage.k8s.io/v1/storageclasses"
            assert (await api.post(path, {"metadata": metadata, "provisioner": provisioner}, **ROOT)).status == 201
        for member in ("pvc", "storage"):
            for name, status in (("", 422), ("ours", 422), ("theirs", 201)):
                asked = {**CLAIM, "resources": {"requests": {"storage": "8Ei"}}, **({"storageClassName": name} if name else {})}
                document = volume(f"{member}-{name or 'none'}", {})
                document["spec"] = {"source": {"blank": {}}, member: asked}
                reply = await api.post(f"{CDI}/default/datavolumes", document, **ROOT)
                assert reply.status == status, reply.data
                if status == 422:
                    field = f"spec.{member}.resources.requests.storage"
                    (cause,) = reply.data["details"]["causes"]
                    assert (cause["field"], "a disk has at most 2Pi" in cause["message"]) == (field, True)


@run_by(virtualtime.run)
async def test_the_server_says_who_made_it(tmp_path: Path) -> None:
    async with GuardedHarness(tmp_path) as api:
        await permit(api, "ada", ["*"], ["*"], "default")
        forged = {MAKER: orjson.dumps({"user": "root", "groups": ["system:masters"]}).decode(), "x": "y"}
        made = await api.post(f"{CDI}/default/datavolumes", volume("a", {"source": {"blank": {}}}, annotations=forged), **ADA)
        notes = made.data["metadata"]["annotations"]
        assert orjson.loads(notes[MAKER])["user"] == "ada" and notes["x"] == "y"
        patch = {"metadata": {"annotations": forged}}
        changed = await api.call("PATCH", f"{CDI}/default/datavolumes/a", patch, content_type="application/merge-patch+json", **ADA)
        assert orjson.loads(changed.data["metadata"]["annotations"][MAKER])["user"] == "ada"


@run_by(virtualtime.run)
async def test_the_server_says_who_made_a_cron(tmp_path: Path) -> None:
    async with GuardedHarness(tmp_path) as api:
        await permit(api, "ada", ["*"], ["*"], "default")
        template = {"spec": {**copy(), "storage": {"resources": {"requests": {"storage": "1Gi"}}}}}
        spec = {"schedule": "30 1 * * *", "managedDataSource": "a", "template": template}
        body = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataImportCron", "metadata": {"name": "a"}, "spec": spec}
        made = await api.post(f"{CDI}/default/dataimportcrons?fieldValidation=Strict", body, **ADA)
        assert made.status == 201 and made.data["spec"] == spec
        forged = {"metadata": {"annotations": {MAKER: orjson.dumps({"user": "root", "groups": ["system:masters"]}).decode()}}}
        place = f"{CDI}/default/dataimportcrons/a"
        changed = await api.call("PATCH", place, forged, content_type="application/merge-patch+json", **ADA)
        assert orjson.loads(changed.data["metadata"]["annotations"][MAKER])["user"] == "ada"


@pytest.mark.parametrize(
    ("cron", "user"),
    [
        ({"metadata": {"annotations": {MAKER: requesters.note("ada", ())}}, "spec": {}}, "ada"),
        ({"metadata": {}, "spec": {"createdBy": requesters.note("bob", ())}}, "bob"),
        ({"metadata": {}, "spec": {}}, None),
    ],
)
def test_a_cron_of_an_earlier_release_still_says_who_made_it(cron: dict[str, Any], user: str | None) -> None:
    note = requesters.note_of_cron(cron)
    maker = requesters.read(note) if note is not None else None
    assert (maker.user if maker is not None else None) == user


@pytest.mark.parametrize("allowed", [False, True])
@run_by(virtualtime.run)
async def test_a_claim_of_that_name_is_in_the_way_unless_it_may_be_taken_over(allowed: bool) -> None:
    async with Harness() as api:
        claim = {"metadata": {"name": "a"}, "spec": CLAIM}
        assert (await api.post("/api/v1/namespaces/default/persistentvolumeclaims", claim)).status == 201
        annotations = {"cdi.kubevirt.io/allowClaimAdoption": "true"} if allowed else {}
        body = volume("a", {"source": {"blank": {}}}, annotations=annotations)
        answer = await api.post(f"{CDI}/default/datavolumes", body)
        assert answer.status == (201 if allowed else 422)
        if not allowed:
            assert "Destination PVC default/a already exists" in answer.causes["metadata.name"]
