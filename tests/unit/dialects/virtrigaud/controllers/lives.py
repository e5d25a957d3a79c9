"""Lives of Providers, sets, clones, snapshots, migrations and policies whose documents say everything, in several forms where needed."""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from paddock.base.jsondata import Data
from paddock.contract.errors import ErrorKind
from paddock.contract.tls import TlsMaterial
from paddock.dialects.virtrigaud.controllers.migrations.reconciler import NetworkChecks
from paddock.dialects.virtrigaud.plan.placement import inventory
from paddock.kubernetes import catalog
from paddock_drivers.fake.settings import FakeDatastore, FakeHost, RpcFault
from tests.kit.declarations import documents
from tests.kit.declarations.documents import NOTHING
from tests.kit.providers import providertls
from tests.unit.dialects.virtrigaud.controllers.moving import moving
from tests.unit.kubevirt.controllers.providerpods import CORE, NAME, cluster
from tests.unit.kubevirt.controllers.rigaudharness import Rigaud, image, machine, network, rigaud

LABELS = {"example.com/part": "web"}
DISK = {
    "name": "data",
    "sizeGiB": 4,
    "type": "thick",
    "scsi": {"controller": 1, "sharedBus": "virtualSharing", "controllerType": "lsilogic"},
}
DISKS = [{**DISK, "expandPolicy": "Online", "storageClass": "fast"}]
CARD = {"name": "lan", "networkRef": {"name": "lan", "namespace": "default"}}
ADDRESS = {"ipAddress": "10.0.0.8", "macAddress": "02:00:00:00:00:07", "prefix": 16, "gateway": "10.0.0.1", "dns": "10.0.0.2"}
GUEST = "first-boot"
CHECKS = {"checkDiskSize": False, "checkChecksum": False}
RETRIES = {"maxRetries": 1, "retryDelay": "1s", "backoffMultiplier": 3}


def full(kind: str, name: str, change: Data) -> Data:
    """A document with everything that its kind declares, changed where its values contradict each other."""
    declared = catalog.find("infra.virtrigaud.io", kind)
    assert declared is not None
    whole = {name: each for name, each in documents.fullest(declared).items() if name != "status"}
    made: Data = _made({**merged(whole, {"spec": change}), "metadata": {"name": name, "namespace": "default"}})
    return made


def merged(base: Any, change: Any) -> Any:
    """A document with a change; the members that the change says to be `NOTHING` are so."""
    if not isinstance(base, dict) or not isinstance(change, dict):
        return change
    return {**base, **{name: merged(base.get(name, {}), each) for name, each in change.items()}}


def _made(value: Any) -> Any:
    """A document of its own, without the members that are `NOTHING`."""
    if isinstance(value, dict):
        return {name: _made(each) for name, each in value.items() if each is not NOTHING}
    return [_made(each) for each in value] if isinstance(value, list) else value


async def lived(life: Rigaud, *bodies: Data, seconds: float = 200.0) -> tuple[Data, ...]:
    """Make objects, and let controllers do what they can."""
    await life.make(*bodies)
    await asyncio.sleep(seconds)
    return bodies


# --- clones -----------------------------------------------------------------------------------------------------------------


def clone(name: str, source: Data, change: Data) -> Data:
    """A clone that says everything, of one source."""
    sources = dict.fromkeys(("vmRef", "snapshotRef", "templateRef", "imageRef"), NOTHING)
    card = {"name": "lan", "ipAddress": "10.0.0.9", "subnetMask": "255.255.0.0", "gateway": "10.0.0.1", "dns": ["10.0.0.2"]}
    plain = {
        "source": {**sources, **source},
        "target": {
            "name": f"of-{name}",
            "namespace": "default",
            "providerRef": {"name": "lab", "namespace": "default"},
            "classRef": {"name": "small"},
            "placementRef": NOTHING,
            "networks": [{**CARD, **ADDRESS}],
            "disks": DISKS,
        },
        "options": {"type": "FullClone", "includeSnapshots": NOTHING, "retryPolicy": RETRIES, "storage": {"preferThinProvisioning": False}},
        "customization": {
            "networks": [{**card, "macAddress": "02:00:00:00:00:09"}],
            "userData": {"cloudInit": {"inline": "#cloud-config\n", "secretRef": NOTHING}, "ignition": NOTHING},
            "sysprep": NOTHING,
            "guestCommands": [
                {"command": "a", "arguments": ["b"], "workingDirectory": "/", "runAsUser": "c", "timeout": "1m", "stage": GUEST}
            ],
            "certificates": [{"name": "a", "data": "pem", "store": "ca"}],
        },
    }
    return full("VMClone", name, merged(plain, change))


async def clones(folder: Path) -> tuple[Data, ...]:
    """Clones of machines, snapshots and images; one that is refused for each block that is."""
    faults = (RpcFault(rpc="Clone", effect="task-error", count=1),)
    place = {"placementRef": {"name": "spread"}, "disks": NOTHING}
    kept = {"name": "a", "secretRef": {"name": GUEST}, "secretKey": "pem"}
    document = {"cloudInit": {"secretRef": {"name": GUEST}}}
    ignition = {"ignition": {"inline": NOTHING, "secretRef": {"name": GUEST}}}
    inline = {"ignition": {"inline": "{}", "secretRef": NOTHING}}
    named = {"name": "ubuntu", "namespace": "default"}
    dhcp = [{"name": "lan", "dhcp": True, "macAddress": "02:00:00:00:00:08"}]
    plain = {
        "customization": {"hostname": NOTHING, "domain": NOTHING, "timeZone": NOTHING, "guestCommands": NOTHING, "certificates": NOTHING}
    }
    instant = {"options": {"type": "InstantClone", "includeSnapshots": True}}
    async with rigaud(faults=faults, hosts=(FakeHost(id="h1"),)) as life:
        values = {"userdata": "#cloud-config\n", "pem": "pem", "ignition": "{}"}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": GUEST}, "stringData": values}
        await life.make(secret, machine(disks=[{"name": "data", "sizeGiB": 1}]))
        await life.ready()
        before = {
            "apiVersion": "infra.virtrigaud.io/v1beta1",
            "kind": "VMSnapshot",
            "metadata": {"name": "before"},
            "spec": {"vmRef": {"name": "web"}},
        }
        await lived(life, before, full("VMPlacementPolicy", "spread", POLICY))
        found = (
            clone("machine", {"vmRef": {"name": "web"}}, {}),
            clone(
                "secrets", {"vmRef": {"name": "web"}}, {"customization": {"userData": document, "certificates": [kept], "networks": dhcp}}
            ),
            clone(
                "ignition", {"vmRef": {"name": "web"}}, merged(plain, {"customization": {"userData": {**ignition, "cloudInit": NOTHING}}})
            ),
            clone("inline", {"vmRef": {"name": "web"}}, merged(plain, {"customization": {"userData": {**inline, "cloudInit": NOTHING}}})),
            clone("snapshot", {"snapshotRef": {"name": "before"}}, {}),
            clone("image", {"imageRef": named}, {"target": place}),
            clone("template", {"templateRef": named}, {}),
            clone("instant", {"vmRef": {"name": "web"}}, instant),
            clone("snapshots", {"vmRef": {"name": "web"}}, {"options": {"includeSnapshots": True}}),
            clone("bare", {"vmRef": {"name": "web"}}, {"customization": {"certificates": [{"name": "a"}]}}),
            clone("windows", {"vmRef": {"name": "web"}}, {"customization": {"sysprep": {"enabled": True}}}),
        )
        return await lived(life, *found)


# --- snapshots --------------------------------------------------------------------------------------------------------------


async def snapshots(folder: Path) -> tuple[Data, ...]:
    """One that is taken, one that is refused for its encryption, and a schedule."""
    taken = {
        "vmRef": {"name": "web"},
        "snapshotConfig": {"encryption": NOTHING, "type": "Standard", "consistencyLevel": "FilesystemConsistent", "quiesce": True},
        "retentionPolicy": {"maxAge": "1s", "gracePeriod": "2s", "preservePinned": False},
        "schedule": NOTHING,
    }
    crash = {"snapshotConfig": {"encryption": {"enabled": False}, "type": "Crash", "consistencyLevel": "CrashConsistent", "quiesce": False}}
    kept = {"retentionPolicy": {"deleteOnVMDelete": False, "maxAge": "1h", "maxCount": NOTHING}, "metadata": {"pinned": True}}
    hidden = {"snapshotConfig": {"encryption": {"enabled": True}}}
    schedule = {"enabled": True, "cronSpec": "* * * * *", "timezone": "Europe/Oslo", "suspend": NOTHING, "concurrencyPolicy": "Replace"}
    async with rigaud() as life:
        await life.make(machine())
        await life.ready()
        found = (
            full("VMSnapshot", "taken", taken),
            full("VMSnapshot", "crash", merged(taken, merged(crash, kept))),
            full("VMSnapshot", "hidden", merged(taken, hidden)),
            full("VMSnapshot", "schedule", merged(taken, {"schedule": schedule})),
            full("VMSnapshot", "suspended", merged(taken, {"schedule": {**schedule, "suspend": True}})),
        )
        await lived(life, *found)
        await life.delete()
        await asyncio.sleep(100)
        return found


# --- migrations -------------------------------------------------------------------------------------------------------------


def migration(storage: str, blocks: Data) -> Data:
    """A migration that says everything, over one kind of storage."""
    others = {name: blocks if name == storage else NOTHING for name in ("pvc", "nfs", "s3")}
    change = {
        "source": {
            "vmRef": {"name": "web"},
            "providerRef": {"name": "lab", "namespace": "default"},
            "snapshotRef": NOTHING,
            "createSnapshot": False,
        },
        "target": {
            "name": "moved",
            "namespace": "default",
            "providerRef": {"name": "other", "namespace": "default"},
            "classRef": {"name": "small"},
            "placementRef": NOTHING,
            "networks": [{**CARD, **ADDRESS}],
            "disks": DISKS,
        },
        "options": {
            "diskFormat": "qcow2",
            "compress": NOTHING,
            "timeout": "2h",
            "cleanupPolicy": "Always",
            "retryPolicy": RETRIES,
            "verifyChecksums": False,
            "validationChecks": CHECKS,
        },
        "storage": {"type": storage, "transferMode": "relay", **others},
    }
    return full("VMMigration", "move", change)


async def elsewhere(host: str) -> tuple[str, ...]:
    """The storage's host is another one."""
    return ("192.0.2.9",)


async def migrations(folder: Path) -> tuple[Data, ...]:
    """Migrations over each kind of storage; one of a snapshot, and one to a place that a policy chooses."""
    blocks: Mapping[str, Data] = {
        "pvc": {"name": NOTHING, "size": "10Gi", "mountPath": "/other"},
        "nfs": {"server": "nas.example", "export": "/exports", "path": "sub", "uid": 107, "gid": 36},
        "s3": {"endpoint": "https://s3.example", "region": "r", "credentialsSecretRef": {"name": "s3", "namespace": "default"}},
    }
    found = [migration(each, block) for each, block in blocks.items()]
    found.append(merged(migration("pvc", {"name": NOTHING, "size": "9Gi"}), {"spec": {"target": {"placementRef": {"name": "spread"}}}}))
    found.append(merged(migration("pvc", {"name": NOTHING, "size": "9Gi"}), {"spec": {"source": {"snapshotRef": {"name": "before"}}}}))
    found.append(merged(migration("pvc", {"name": NOTHING, "size": "9Gi"}), {"spec": {"options": {"compress": True}}}))
    found.append(migration("pvc", {"name": "there", "accessMode": "ReadWriteOnce"}))
    for number, body in enumerate(found):
        place = folder / str(number)
        place.mkdir()
        faults = (RpcFault(rpc="ImportDisk", kind=ErrorKind.INVALID_SPEC, count=1),) if number == 0 else ()
        async with moving(place, faults=faults, backends=("pvc", "s3", "nfs"), checks=NetworkChecks(addresses=elsewhere)) as world:
            keys = {"accessKeyID": "a", "secretAccessKey": "b"}
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s3"}, "stringData": keys}
            await lived(world.life, secret, body, seconds=2000)
    return tuple(found)


# --- sets, policies, Providers ----------------------------------------------------------------------------------------------


async def sets(folder: Path) -> tuple[Data, ...]:
    """Sets of each kind of update, one of them with claims."""
    spec = {**machine()["spec"], "powerState": "Off"}
    plain = {
        "replicas": 2,
        "selector": {"matchLabels": LABELS, "matchExpressions": [{"key": "example.com/part", "operator": "In", "values": ["web"]}]},
        "template": {"metadata": {"labels": LABELS}},
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0, "partition": 1, "podManagementPolicy": "Parallel"},
        },
        "minReadySeconds": 3,
        "revisionHistoryLimit": 3,
        "ordinals": {"start": 4},
        "volumeClaimTemplates": NOTHING,
    }
    bodies = [full("VMSet", "rolling", plain)]
    bodies.append(full("VMSet", "claims", merged(plain, {"volumeClaimTemplates": [{"metadata": {"name": "a"}, "spec": {}}]})))
    bodies.append(full("VMSet", "recreated", merged(plain, {"updateStrategy": {"type": "Recreate", "rollingUpdate": NOTHING}})))
    for body in bodies:
        body["spec"]["template"]["spec"] = spec
    async with rigaud() as life:
        await lived(life, *bodies)
        changed = {**spec, "tags": ["another"]}
        await life.merge("rolling", {"spec": {"template": {"spec": changed}, "replicas": 1}}, "VMSet")
        await asyncio.sleep(300)
    return tuple(bodies)


_TERM = {
    "labelSelector": {"matchLabels": LABELS, "matchExpressions": [{"key": "example.com/part", "operator": "In", "values": ["web"]}]},
    "namespaces": ["default"],
    "namespaceSelector": {
        "matchLabels": {"kubernetes.io/metadata.name": "default"},
        "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["default"]}],
    },
    "topologyKey": "host",
    "matchExpressions": [{"key": "example.com/part", "operator": "In", "values": ["web"]}],
}
_LISTED = {
    **_TERM,
    "namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["default"]}]},
}
_TERMS = {
    "requiredDuringScheduling": [_TERM, _LISTED],
    "preferredDuringScheduling": [{"weight": 3, "vmAffinityTerm": each} for each in (_TERM, _LISTED)],
}


def _places(key: str) -> Data:
    """Places that contradict nothing, with the taints of a key tolerated."""
    out = {each: ["elsewhere"] for each in ("excludedHosts", "excludedClusters", "excludedDatastores")}
    taint = {"key": key, "effect": "NoSchedule"}
    return {**out, "tolerations": [{**taint, "value": "another"}, {**taint, "operator": "Exists", "tolerationSeconds": 3}]}


POLICY: Data = {
    "hard": _places("hard"),
    "soft": _places("soft"),
    "affinity": {"vmAffinity": _TERMS},
    "antiAffinity": {"vmAntiAffinity": _TERMS},
    "securityConstraints": {"deniedSecurityGroups": ["other"]},
    "priority": 3,
    "weight": 7,
}
_HOST = {
    inventory.ZONE: "z",
    inventory.REGION: "r",
    inventory.CLUSTER: "c",
    f"{inventory.TAINT}hard": "value:NoSchedule",
    f"{inventory.TAINT}soft": "value:NoSchedule",
}


async def policies(folder: Path) -> tuple[Data, ...]:
    """A policy that says everything, a machine that it places beside another one, and a policy that contradicts it."""
    hosts = (FakeHost(id="h1", labels=_HOST, cpu=4), FakeHost(id="h2"))
    stores = (FakeDatastore(name="fast"), FakeDatastore(name="slow"))
    found = (
        full("VMPlacementPolicy", "spread", POLICY),
        full("VMPlacementPolicy", "other", {**POLICY, "hard": {**_places("hard"), "hosts": ["another"]}, "priority": 9}),
    )
    async with rigaud(hosts=hosts, datastores=stores) as life:
        beside = {**machine("beside"), "metadata": {"name": "beside", "labels": LABELS}}
        await lived(life, beside, *found)
        placed = {**machine("web", placementRef={"name": "spread"}), "metadata": {"name": "web", "labels": {**LABELS, "app": "a"}}}
        await lived(life, placed)
    return found


_SOURCES: Mapping[str, Data] = {
    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"},
    "resourceFieldRef": {"containerName": "provider", "resource": "limits.cpu", "divisor": "1"},
    "configMapKeyRef": {"name": "a", "key": "b", "optional": True},
    "secretKeyRef": {"name": "a", "key": "b", "optional": True},
}
VARIABLES = [{"name": "A", "value": "b"}, *({"name": f"A_{each}", "valueFrom": {each: said}} for each, said in _SOURCES.items())]


async def providers(folder: Path) -> tuple[Data, ...]:
    """A Provider whose program is in Pods, with a machine that says no place."""
    change = {
        "type": "libvirt",
        "endpoint": "qemu+ssh://root@lab/system",
        "credentialSecretRef": {"name": "lab", "namespace": "default"},
        "defaults": {"storagePod": NOTHING},
        "healthCheck": {"interval": "5s", "timeout": "1s", "failureThreshold": 2, "successThreshold": 2},
        "runtime": {
            "image": "example/provider:1",
            "imagePullPolicy": "Always",
            "replicas": 2,
            "env": VARIABLES,
            "logLevel": "debug",
            "logFormat": "json",
            "service": {"tls": {"secretRef": {"name": "own"}}},
        },
    }
    pod = merged(
        change,
        {
            "healthCheck": {"enabled": False},
            "defaults": {"datastore": NOTHING, "storagePod": "gold"},
            "runtime": {"service": {"tls": {"enabled": False}}},
        },
    )
    found = (full("Provider", "lab", change), full("Provider", "lab", pod))
    for number, (body, secret) in enumerate(zip(found, ("own", ""), strict=True)):
        place = folder / str(number)
        place.mkdir()
        async with cluster(place) as world:
            await world.credentials()
            await _certificates(world, providertls.Authority().issue(NAME))
            probe = {"tcpSocket": {"port": 8080}}
            body["spec"]["runtime"] |= {"securityContext": {"runAsUser": 7}, "livenessProbe": probe, "readinessProbe": probe}
            body["spec"]["runtime"]["service"]["port"] = world.port
            made = await world.api.post("/apis/infra.virtrigaud.io/v1beta1/namespaces/default/providers", body)
            assert made.status == 201, made.data
            await asyncio.sleep(2)
            async with world.pod(secret):
                await asyncio.sleep(3)
    async with rigaud(world=False) as life:
        bare = network(network={"type": "nat"})
        await lived(life, *found[:1], image(), bare, {**machine(), "spec": {**machine()["spec"], "placement": {}}})
    return found


async def _certificates(world: Any, material: TlsMaterial) -> None:
    values = {"tls.crt": material.certificate, "tls.key": material.key, "ca.crt": material.authority}
    data = {each: base64.b64encode(value).decode() for each, value in values.items()}
    await world.api.post(f"{CORE}/secrets", {"metadata": {"name": "own"}, "data": data})


LIVES: Mapping[str, Callable[[Path], Awaitable[tuple[Data, ...]]]] = {
    "Provider": providers,
    "VMSet": sets,
    "VMClone": clones,
    "VMSnapshot": snapshots,
    "VMMigration": migrations,
    "VMPlacementPolicy": policies,
}
