"""The demonstration's objects: applied, watched, and deleted in the end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from paddock.base.clock import SystemClock
from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.kubernetes import catalog
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.options import Selection, WriteOptions
from paddock.kubernetes.client.target import Key, Target, plain
from tools.demo.sight import Seen

MACHINES = plain("kubevirt.io", "v1", "virtualmachines", "VirtualMachine")
INSTANCES = plain("kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance")
VOLUMES = plain("cdi.kubevirt.io", "v1beta1", "datavolumes", "DataVolume")
CLAIMS = plain("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
NAMESPACE = "default"
_HERE = Selection(namespace=NAMESPACE)
# Kinds that make others, so that they go before them.
_MAKERS = ("VirtualMachinePool", "Machine", "VirtualMachine")
_ASK_SECONDS = 0.2


@contextlib.asynccontextmanager
async def connected(config: Path) -> AsyncIterator[Client]:
    """A client of the demonstration's server."""
    async with Client(Https(kubeconfig.find({}, SystemClock(), explicit=config))) as client:
        yield client


def documents(folder: Path) -> list[Data]:
    """Everything that is applied, in order."""
    return [each for file in sorted(folder.glob("*.yaml")) for each in yaml.safe_load_all(file.read_text())]


def _target(document: Mapping[str, Any]) -> Target[Data]:
    group, _, version = document["apiVersion"].rpartition("/")
    kind = catalog.find(group, document["kind"])
    assert kind is not None, f"no dialect has {document['kind']} of {group}"
    return plain(group, version, kind.plural, kind.kind, namespaced=kind.namespaced)


def _key(document: Data, target: Target[Data]) -> Key:
    return Key(document["metadata"].get("namespace", NAMESPACE) if target.namespaced else "", document["metadata"]["name"])


async def apply(client: Client, wanted: Sequence[Data]) -> None:
    """Server-side apply; what is there as it should be stays untouched."""
    for document in wanted:
        target = _target(document)
        metadata = {**document["metadata"], **({"namespace": _key(document, target).namespace} if target.namespaced else {})}
        await client.apply(target, {**document, "metadata": metadata}, WriteOptions(manager="paddock-demo", force=True))


async def look(client: Client) -> Seen:
    """Return the present objects."""
    machines, instances, volumes = await asyncio.gather(*(client.list(each, _HERE) for each in (MACHINES, INSTANCES, VOLUMES)))
    return Seen(*({each["metadata"]["name"]: each for each in found.items} for found in (machines, instances, volumes)))


async def delete(client: Client, made: Sequence[Data]) -> None:
    """Take back what was applied, and wait until everything that came of it is gone."""
    for document in sorted(made, key=lambda each: each["kind"] not in _MAKERS):
        target = _target(document)
        with contextlib.suppress(NotFound):
            await client.delete(target, _key(document, target))
    while any([(await client.list(each, _HERE)).items for each in (MACHINES, INSTANCES, VOLUMES, CLAIMS)]):
        # A machine that somebody made to try it is a part of the demonstration, too, and so is the image that VirtRigaud's Provider keeps.
        for each in (MACHINES, VOLUMES):
            with contextlib.suppress(PaddockError):
                await client.delete_collection(each, _HERE)
        await asyncio.sleep(_ASK_SECONDS)
