"""Faults of Stakater's, Vitistack's and Kubermatic's objects, carried out by their controllers on a whole host."""

import asyncio
from typing import Any

from paddock.base.images import http
from tests.kit.engine.fakehost import GIB, FakeHost
from tests.scenario.why.disk_faults import volume
from tests.scenario.why.faults import Fault, Inject
from tests.scenario.why.image_faults import URL, answer

_STAKATER = "/apis/infrastructure.stakater.com/v1/namespaces/default/virtualmachines"
_VITISTACK = "/apis/vitistack.io/v1alpha1/namespaces/default/machines"
_CLASSES = "/apis/vitistack.io/v1alpha1/machineclasses"
_CDI = "/apis/cdi.kubevirt.io/v1beta1/namespaces"
Data = dict[str, Any]


async def post(host: FakeHost, path: str, document: Data) -> None:
    """Make an object; the test fails when it is refused."""
    reply = await host.api.post(path, document)
    assert reply.status == 201, reply.data


async def source(host: FakeHost, **given: Any) -> None:
    """A DataSource, by default of an image that there is."""
    host.engine.images.offer(URL, virtual_size=GIB)
    spec = {"source": given or {"http": {"url": URL}}}
    await post(
        host,
        f"{_CDI}/default/datasources",
        {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource", "metadata": {"name": "debian"}, "spec": spec},
    )
    await asyncio.sleep(3)


def stakater(parameters: Data, notes: dict[str, str] | None = None) -> Data:
    """Stakater's machine."""
    base: Data = {
        "dataSource": {"name": "debian", "namespace": "default"},
        "storage": {"size": "2Gi"},
        "memory": {"guest": "128Mi"},
        "networks": [{"name": "default", "type": "pod", "bindingName": "masquerade"}],
        "runStrategy": "Always",
        "firmware": {"efi": False, "secureBoot": False},
    }
    return {
        "apiVersion": "infrastructure.stakater.com/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "web", **({"annotations": notes} if notes else {})},
        "spec": {"parameters": {**base, **parameters}},
    }


def of_stakater(parameters: Data | None = None, *, sourced: bool = True, notes: dict[str, str] | None = None) -> Inject:
    """Stakater's machine, with its DataSource or without."""

    async def inject(host: FakeHost) -> None:
        if sourced:
            await source(host)
        await post(host, _STAKATER, stakater(parameters or {}, notes))
        await asyncio.sleep(10)

    return inject


async def _conflict(host: FakeHost) -> None:
    await source(host)
    vm: Data = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web"}}
    await host.make(
        {**vm, "spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}}}}}
    )
    await post(host, _STAKATER, stakater({}))
    await asyncio.sleep(10)


async def _no_image(host: FakeHost) -> None:
    await source(host)
    host.engine.images.script(URL, [http.bad_status(answer(404, "Not Found"))] * 50)
    await post(host, _STAKATER, stakater({}))
    await asyncio.sleep(20)


async def _too_small(host: FakeHost) -> None:
    base = volume("golden", {"blank": {}}, resources={"requests": {"storage": "20Gi"}})
    await host.make(base)
    await asyncio.sleep(10)
    await source(host, pvc={"name": "golden", "namespace": "default"})
    await post(host, _STAKATER, stakater({"storage": {"size": "10Gi"}}))
    await asyncio.sleep(10)


async def _not_permitted(host: FakeHost) -> None:
    await host.api.namespace("golden")
    base = volume("base", {"blank": {}})
    base["metadata"]["namespace"] = "golden"
    await host.make(base)
    await asyncio.sleep(10)
    about = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource", "metadata": {"name": "debian", "namespace": "golden"}}
    await post(host, f"{_CDI}/golden/datasources", {**about, "spec": {"source": {"pvc": {"name": "base", "namespace": "golden"}}}})
    await asyncio.sleep(3)
    await post(host, _STAKATER, stakater({"dataSource": {"name": "debian", "namespace": "golden"}}))
    await asyncio.sleep(10)


async def _root_lost(host: FakeHost) -> None:
    await source(host)
    await post(host, _STAKATER, stakater({}))
    await host.running(seconds=30)
    reply = await host.api.merge(f"{_STAKATER}/web", {"spec": {"parameters": {"runStrategy": "Halted"}}})
    assert reply.status == 200, reply.data
    await asyncio.sleep(60)
    await host.delete("DataVolume", "cdi.kubevirt.io/v1beta1", "web-rootdisk")
    await asyncio.sleep(20)


def of_vitistack(spec: Data) -> Inject:
    """Vitistack's machine."""

    async def inject(host: FakeHost) -> None:
        about = {"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine", "metadata": {"name": "web"}}
        await post(host, _VITISTACK, {**about, "spec": {"template": "small", **spec}})
        await asyncio.sleep(20)

    return inject


def of_own_form(*classes: Data, **spec: Any) -> Inject:
    """Vitistack's machine in its own form, with classes that there are."""

    async def inject(host: FakeHost) -> None:
        for each in classes:
            data = {"apiVersion": "vitistack.io/v1alpha1", "kind": "MachineClass", "metadata": {"name": "tall"}}
            await post(host, _CLASSES, {**data, "spec": {"cpu": {"cores": 1, "sockets": 1}, "memory": {"quantity": "500Gi"}, **each}})
        about = {"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine", "metadata": {"name": "web"}}
        await post(host, _VITISTACK, {**about, "spec": {"provider": "kubevirt", **spec}})
        await asyncio.sleep(20)

    return inject


async def _disk_lost(host: FakeHost) -> None:
    await of_vitistack({})(host)
    await asyncio.sleep(20)
    vm = await host.vm()
    await host.change("web", {"spec": {"running": False} if vm["spec"].get("running") is not None else {"runStrategy": "Halted"}})
    await asyncio.sleep(60)
    await host.delete("PersistentVolumeClaim", "v1", "web-root")
    await asyncio.sleep(60)


async def _elsewhere(host: FakeHost) -> None:
    await host.api.namespace("golden")
    about = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource", "metadata": {"name": "debian", "namespace": "golden"}}
    spec = {"source": {"http": {"url": URL, "secretRef": "login"}}}
    await post(
        host, "/api/v1/namespaces/golden/secrets", {"metadata": {"name": "login"}, "stringData": {"accessKeyId": "a", "secretKey": "b"}}
    )
    await post(host, f"{_CDI}/golden/datasources", {**about, "spec": spec})
    await asyncio.sleep(3)
    await _kubermatic(host, {"kind": "DataSource", "name": "debian", "namespace": "golden"})


async def _without_login(host: FakeHost) -> None:
    await source(host, http={"url": URL, "secretRef": "login"})
    await _kubermatic(host, {"kind": "DataSource", "name": "debian"})


async def _kubermatic(host: FakeHost, reference: Data) -> None:
    spec = {"sourceRef": reference, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}
    template = {"domain": {"memory": {"guest": "64Mi"}, "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}}}
    volumes = [{"name": "root", "dataVolume": {"name": "web-root"}}]
    await host.make(
        {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachine",
            "metadata": {"name": "web"},
            "spec": {
                "runStrategy": "Always",
                "dataVolumeTemplates": [{"metadata": {"name": "web-root"}, "spec": spec}],
                "template": {"spec": {**template, "volumes": volumes}},
            },
        }
    )
    await asyncio.sleep(20)


_KEYS = {"secretName": "keys", "propagationMethod": "noCloud"}
_LAN = [{"name": "lan", "type": "multus", "bindingName": "bridge", "multus": {"networkName": "lan"}}]
_FRONT = "Stakater VirtualMachine web"
_GUEST = "VirtualMachineInstance web"
_LAN_OF_OWN_FORM = "NetworkConfiguration lan"
FRONT_FAULTS: tuple[Fault, ...] = (
    Fault("Stakater: no such DataSource", of_stakater(sourced=False), "datasource-missing", "DataSource debian", ask="web"),
    Fault("Stakater: no such Secret with keys", of_stakater({"sshPublicKey": _KEYS}), "secret-missing", "Secret keys", ask="web"),
    Fault("Stakater: no such network", of_stakater({"networks": _LAN}), "network-missing", "NetworkAttachmentDefinition lan", ask="web"),
    Fault(
        "Stakater: no such storage class",
        of_stakater({"storage": {"size": "2Gi", "storageClassName": "gold"}}),
        "storageclass-missing",
        "StorageClass gold",
        ask="web",
    ),
    Fault("Stakater: the name is taken", _conflict, "name-conflict", _FRONT, ask="web"),
    Fault("Stakater: paused", of_stakater(notes={"crossplane.io/paused": "true"}), "reconcile-paused", _FRONT, ask="web", state="notice"),
    Fault("Stakater: no such image", _no_image, "image-missing", "DataVolume web-rootdisk", ask="web"),
    Fault("Stakater: the disk is too small", _too_small, "image-too-large", _FRONT, ask="web"),
    Fault("Stakater: the image may not be copied", _not_permitted, "clone-not-permitted", "VirtualMachine web", ask="web"),
    Fault("Stakater: no memory", of_stakater({"memory": {"guest": "500Gi"}}), "no-memory", _GUEST, ask="web"),
    Fault("Stakater: the root disk was deleted", _root_lost, "claim-lost", _FRONT, ask="web"),
    Fault("Stakater: no such host", of_stakater({"nodeSelector": {"disk": "fast"}}), "node-selector", _GUEST, ask="web"),
    Fault("Vitistack: no such template", of_vitistack({"template": "huge"}), "template-missing", "MachineTemplate huge", ask="web"),
    Fault(
        "Vitistack: no such network",
        of_vitistack({"networks": [{"name": "lan", "networkName": "lan"}]}),
        "networkconfiguration-missing",
        "NetworkConfiguration lan",
        ask="web",
    ),
    Fault(
        "Vitistack: no such storage class",
        of_vitistack({"disks": [{"name": "root", "size": "1Gi", "storageClass": "gold"}]}),
        "storageclass-missing",
        "StorageClass gold",
        ask="web",
    ),
    Fault(
        "Vitistack: no such Secret",
        of_vitistack({"cloudInit": {"secretRef": {"name": "seed"}}}),
        "secret-missing",
        "Secret seed",
        ask="web",
    ),
    Fault("Vitistack: no memory", of_vitistack({"resources": {"memory": {"size": "500Gi"}}}), "no-memory", _GUEST, ask="web"),
    *(
        Fault(f"Vitistack's own form: {name}", inject, cause, of, ask="web")
        for name, inject, cause, of in (
            ("no such class", of_own_form(machineClass="tall"), "machineclass-missing", "MachineClass tall"),
            ("a class that is off", of_own_form({"enabled": False}, machineClass="tall"), "machineclass-missing", "Machine web"),
            (
                "a class of others",
                of_own_form({"machineProviders": ["proxmox"]}, machineClass="tall"),
                "machineclass-missing",
                "Machine web",
            ),
            ("a class with too much memory", of_own_form({}, machineClass="tall"), "no-memory", _GUEST),
            ("no such network", of_own_form(network={"networkNamespaceName": "lan"}), "networkconfiguration-missing", _LAN_OF_OWN_FORM),
            ("no such Secret", of_own_form(cloudInit={"userDataSecretRef": {"name": "login"}}), "secret-missing", "Secret login"),
            (
                "no such ConfigMap",
                of_own_form(cloudInit={"networkDataConfigMapRef": {"name": "net"}}),
                "configmap-missing",
                "ConfigMap net",
            ),
            ("no such image", of_own_form(os={"isoUri": URL}), "image-missing", "DataVolume web-iso"),
        )
    ),
    Fault("Vitistack: a disk was deleted", _disk_lost, "claim-lost", "Machine web", ask="web"),
    Fault("Kubermatic: a Secret in another namespace", _elsewhere, "datasource-secret-elsewhere", "VirtualMachine web"),
    Fault("Kubermatic: no such Secret", _without_login, "secret-missing", "Secret login"),
)
