"""The objects that objects on a server refer to, as far as a plan looks at them."""

from collections.abc import Sequence
from typing import Any

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.kubernetes import admission, catalog
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key, plain
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.plan.changes.references import references

# References whose objects say something about sizes and networks. Secrets stay unread.
_READ = ("VMClass", "MachineTemplate", "MachineClass", "NetworkConfiguration", "Provider", "VMNetworkAttachment")
# Those that a translation to KubeVirt needs.
TRANSLATED = (*_READ, "VMImage", "Image", "DataSource", "NetworkAttachmentDefinition")


async def read(client: Client, data: Data, kinds: Sequence[str] = _READ) -> Sequence[Resource]:
    """Return the objects that a machine refers to, as far as they are of some kinds and may be read.

    The default kinds are those that decide about sizes and networks.
    """
    group, _ = admission.split_api_version(data.get("apiVersion"))
    namespace = str((data.get("metadata") or {}).get("namespace") or "")
    found: list[Resource] = []
    for reference in references(group, str(data.get("kind")), data):
        for to_group, kind in reference.to:
            if kind in kinds and (declared := catalog.find(to_group, kind)) is not None:
                target = plain(to_group, declared.versions[0].name, declared.plural, kind)
                key = Key(reference.namespace or namespace if declared.namespaced else "", reference.name)
                found += await _read(client, target, key)
    return found


async def _read(client: Client, target: Any, key: Key) -> list[Resource]:
    try:
        value = admission.admit(await client.get(target, key), AdmissionSettings()).value
    except PaddockError:
        # The plan then names the worse case.
        return []
    return [value] if isinstance(value, Resource) else []
