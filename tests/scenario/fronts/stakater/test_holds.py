"""The prerequisites of a machine, and that it goes on by itself once they exist."""

import asyncio
from copy import deepcopy
from typing import Any

import pytest
import yaml

from paddock.dialects.stakater.controllers.settings import StakaterSettings
from tests.coroutines import played, played_by
from tests.scenario.fronts.stakater.conftest import Play
from tests.scenario.fronts.stakater.stage import CATALOGUE, DISK, KEY, SOURCE, Data, Stage, front

NETWORK: Data = {
    "apiVersion": "k8s.cni.cncf.io/v1",
    "kind": "NetworkAttachmentDefinition",
    "metadata": {"name": "vlan10"},
    "spec": {"config": '{"cniVersion": "0.3.1", "type": "bridge", "bridge": "br0"}'},
}
GOLDEN: Data = {
    "apiVersion": "cdi.kubevirt.io/v1beta1",
    "kind": "DataVolume",
    "metadata": {"name": "golden", "namespace": CATALOGUE},
    "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "30Gi"}}}},
}


@pytest.mark.spec("stakater", 54)
@played_by("play", catalogue=False)
async def test_a_data_source_is_waited_for(stage: Stage, /) -> None:
    await stage.make(front())
    await asyncio.sleep(300)
    assert (await stage.said())["Ready"] == ("False", "DataSourceNotFound")
    assert "openshift-virtualization-os-images/rhel9" in await stage.message()
    assert await stage.host.vm() == {} and await stage.volume("web-rootdisk") == {}
    assert "vm" not in (await stage.front())["status"]
    await stage.host.make(deepcopy(SOURCE))
    await stage.available()


@played_by("play", catalogue=False)
async def test_a_data_source_that_is_not_ready_is_waited_for(stage: Stage, /) -> None:
    source = {**deepcopy(SOURCE), "spec": {"source": {"pvc": {"name": "golden", "namespace": CATALOGUE}}}}
    await stage.host.make(source)
    await stage.make(front())
    await asyncio.sleep(60)
    assert (await stage.said())["Ready"] == ("False", "DataSourceNotReady")
    assert "PVC not found" in await stage.message()
    assert await stage.host.vm() == {}


@played_by("play", catalogue=False)
async def test_an_image_that_does_not_fit_is_told_before_anything_is_made(stage: Stage, /) -> None:
    await stage.host.make(GOLDEN, {**deepcopy(SOURCE), "spec": {"source": {"pvc": {"name": "golden", "namespace": CATALOGUE}}}})
    await asyncio.sleep(10)
    await stage.make(front(storage={"size": "10Gi"}))
    await asyncio.sleep(60)
    assert (await stage.said())["Synced"] == ("False", "ReconcileError")
    assert "storage.size 10Gi is smaller than the image's 30Gi" in await stage.message("Synced")
    assert await stage.host.vm() == {}
    await stage.parameters(storage={"size": "30Gi"})
    await asyncio.sleep(10)
    assert await stage.host.vm() != {}


@pytest.mark.parametrize("managed", [False, True])
def test_a_copy_that_is_not_allowed_is_told_with_what_grants_it(play: Play, managed: bool) -> None:
    async def script(stage: Stage) -> None:
        await stage.host.make(GOLDEN, {**deepcopy(SOURCE), "spec": {"source": {"pvc": {"name": "golden", "namespace": CATALOGUE}}}})
        await asyncio.sleep(10)
        await stage.make(front(storage={"size": "30Gi"}))
        await asyncio.sleep(30)
        roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{CATALOGUE}"
        if not managed:
            assert (await stage.said())["Ready"] == ("False", "CloneNotAuthorized")
            text = await stage.message()
            refusal, _, documents = text.partition("--manage-clone-rbac):\n")
            assert f"insufficient permissions in clone source namespace {CATALOGUE}" in refusal
            for document in yaml.safe_load_all(documents):
                kind = {"Role": "roles", "RoleBinding": "rolebindings"}[document["kind"]]
                assert (await stage.api.post(f"{roles}/{kind}", document)).status == 201
            # A refusal is tried again after five minutes, or up to a fifth more.
            await asyncio.sleep(400)
        await stage.available()
        await stage.make(front("other", storage={"size": "30Gi"}))
        await stage.available("other")
        # The rights go with the last machine that needs them, where they were made by the controller.
        for name, left in (("web", True), ("other", not managed)):
            await stage.delete(name)
            await asyncio.sleep(60)
            assert await stage.front(name) == {}
            assert bool((await stage.api.get(f"{roles}/rolebindings")).data["items"]) is left
        assert bool((await stage.api.get(f"{roles}/roles")).data["items"]) is not managed

    play(script, StakaterSettings(manage_clone_rbac=managed, bindings=frozenset({"l2bridge"})), catalogue=False)


@pytest.mark.spec("stakater", 55)
@played
async def test_a_secret_with_keys_is_waited_for(stage: Stage, /) -> None:
    await stage.make(front(sshPublicKey={"secretName": "team-keys"}))
    await asyncio.sleep(300)
    assert (await stage.said())["Ready"] == ("False", "SSHKeySecretNotFound")
    assert "default/team-keys" in await stage.message()
    assert await stage.host.vm() == {}
    await stage.host.make({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "team-keys"}, "stringData": {"key": KEY}})
    await stage.available()
    # Gone again, it holds nothing back that is not about it.
    await stage.host.delete("Secret", "v1", "team-keys")
    await stage.parameters(additionalLabels={"tier": "web"})
    await stage.available()
    assert (await stage.host.vm())["metadata"]["labels"]["tier"] == "web"


@played
async def test_a_network_is_waited_for(stage: Stage, /) -> None:
    networks = [{"name": "data", "bindingName": "bridge", "multus": {"networkName": "vlan10"}}]
    await stage.make(front(networks=networks))
    await asyncio.sleep(60)
    assert (await stage.said())["Ready"] == ("False", "NetworkNotFound")
    assert "default/vlan10" in await stage.message()
    assert await stage.host.vm() == {}
    reply = await stage.api.post("/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions", NETWORK)
    assert reply.status == 201
    await asyncio.sleep(5)
    assert (await stage.host.vm())["spec"]["template"]["spec"]["networks"] == [{"name": "data", "multus": {"networkName": "vlan10"}}]


CONFIG = {"spec": {"configuration": {"network": {"binding": {"l2bridge": {"domainAttachmentType": "managedTap"}}}}}}
INSTALLATION = "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt"


def card(vm: Data, index: int = 0) -> Data:
    """A network card of the generated machine."""
    found: Data = vm["spec"]["template"]["spec"]["domain"]["devices"]["interfaces"][index]
    return found


@pytest.mark.spec("stakater", 68)
@played_by("play", settings=StakaterSettings())
async def test_a_binding_that_is_not_registered_is_replaced_where_everybody_sees_it(stage: Stage, /) -> None:
    await stage.make(front())
    await stage.available()
    vm = await stage.host.vm()
    assert "masquerade" in card(vm) and "binding" not in card(vm)
    assert vm["metadata"]["annotations"]["infrastructure.stakater.com/binding-fallback"] == "default=masquerade"
    assert (await stage.reasons()).count("BindingFallback") == 1
    assert (await stage.front())["spec"]["parameters"].get("networks") is None
    # Registered later, it is as it was asked for.
    assert (await stage.api.merge(INSTALLATION, CONFIG)).status == 200
    await asyncio.sleep(10)
    vm = await stage.host.vm()
    assert card(vm)["binding"] == {"name": "l2bridge"} and "masquerade" not in card(vm)
    assert "infrastructure.stakater.com/binding-fallback" not in (vm["metadata"].get("annotations") or {})


@pytest.mark.spec("stakater", 68)
@played_by("play", settings=StakaterSettings(binding_fallback="fail"))
async def test_a_binding_that_is_not_registered_is_waited_for_where_that_is_decided(stage: Stage, /) -> None:
    await stage.make(front())
    await asyncio.sleep(60)
    assert (await stage.said())["Ready"] == ("False", "BindingUnavailable")
    assert "l2bridge" in await stage.message()
    assert await stage.host.vm() == {}
    assert (await stage.api.merge(INSTALLATION, CONFIG)).status == 200
    await stage.available()


@played
async def test_the_engine_has_the_bindings_of_its_own(stage: Stage, /) -> None:
    await stage.make(front())
    await stage.available()
    vm = await stage.host.vm()
    assert card(vm)["binding"] == {"name": "l2bridge"}
    assert "infrastructure.stakater.com/binding-fallback" not in (vm["metadata"].get("annotations") or {})


async def _foreign(stage: Stage, kind: str, version: str, name: str, **more: Any) -> tuple[Data, str]:
    await stage.host.make({"apiVersion": version, "kind": kind, "metadata": {"name": name}, **more})
    await asyncio.sleep(5)
    found = await stage.host.get(kind, version, name)
    return found["spec"] if "spec" in found else found["data"], stage.host.place(kind, version, name=name)


MACHINE_SPEC = {"runStrategy": "Halted", "template": {"spec": {"domain": {"memory": {"guest": "128Mi"}, "devices": {}}}}}
BLANK = {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
FOREIGN = [
    ("VirtualMachine", "kubevirt.io/v1", "web", {"spec": MACHINE_SPEC}),
    ("DataVolume", "cdi.kubevirt.io/v1beta1", "web-rootdisk", {"spec": BLANK}),
    ("PersistentVolumeClaim", "v1", "web-data", {"spec": CLAIM}),
    ("Secret", "v1", "web-ssh-key", {"stringData": {"key": "theirs"}}),
]


@pytest.mark.spec("stakater", 56)
@pytest.mark.parametrize(("kind", "version", "name", "more"), FOREIGN, ids=[each[0] for each in FOREIGN])
@played
async def test_what_is_somebody_elses_is_left_alone(stage: Stage, /, kind: str, version: str, name: str, more: Data) -> None:
    before, path = await _foreign(stage, kind, version, name, **more)
    revision = (await stage.api.get(path)).data["metadata"]["resourceVersion"]
    await stage.make(front(sshPublicKey={"data": KEY}, additionalDisks=[DISK]))
    await asyncio.sleep(300)
    assert (await stage.said())["Synced"] == ("False", "NameConflict")
    assert name in await stage.message("Synced")
    found = (await stage.api.get(path)).data
    assert found.get("spec", found.get("data")) == before and found["metadata"]["resourceVersion"] == revision
    # Nothing else of it is made before all its names are its own.
    if kind != "VirtualMachine":
        assert await stage.host.vm() == {}
    if kind != "Secret":
        assert await stage.secret("web-ssh-key") == {}
    await stage.host.delete(kind, version, name)
    await stage.available()


@played
async def test_two_machines_whose_disks_have_one_name(stage: Stage, /) -> None:
    """`a` with a disk `b-rootdisk` and `a-b` both want the claim `a-b-rootdisk`."""
    await stage.make(front("a", additionalDisks=[{**DISK, "name": "b-rootdisk"}]))
    await stage.available("a")
    await stage.make(front("a-b"))
    await asyncio.sleep(60)
    assert (await stage.said("a-b"))["Synced"] == ("False", "NameConflict")
    assert "a-b-rootdisk" in await stage.message("Synced", "a-b")
    await stage.delete("a")
    await stage.available("a-b", seconds=90)
