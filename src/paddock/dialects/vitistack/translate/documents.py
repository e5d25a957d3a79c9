"""The documents for cloud-init that a machine refers to: keys of Secrets and ConfigMaps."""

from collections.abc import Iterator

import msgspec

from paddock.dialects.vitistack.kinds.fields import MachineCloudInit
from paddock.dialects.vitistack.translate.errors import ConfigMapNotFound, DocumentNotFound, SecretNotFound
from paddock.kubernetes.core.configmap import ConfigMap, values
from paddock.kubernetes.core.secret import Secret, decoded
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.finding import Path

USER_DATA_KEY, NETWORK_DATA_KEY = "userdata", "networkdata"


class DocumentReference(msgspec.Struct, frozen=True):
    """A key of an object; `kubevirt_key` is the key under which KubeVirt reads such a document from a Secret."""

    cls: type[Secret] | type[ConfigMap]
    name: str
    key: str
    kubevirt_key: str
    path: Path

    @property
    def is_direct(self) -> bool:
        """True if KubeVirt's machine can refer to the object itself."""
        return self.cls is Secret and self.key == self.kubevirt_key

    def value(self, object_set: ObjectSet, namespace: str) -> bytes | None:
        found = object_set.get(self.cls, namespace, self.name)
        if found is None:
            return None
        return (decoded(found) if isinstance(found, Secret) else values(found)).get(self.key)

    def missing(self, object_set: ObjectSet, namespace: str, own_secret: str) -> DocumentNotFound:
        """The error that the document is not there."""
        there = object_set.get(self.cls, namespace, self.name) is not None
        instead = ""
        if not self.is_direct:
            instead = f"the disk refers to Secret {own_secret}, which has to be given the key {self.kubevirt_key}"
        elif there:
            instead = f"the disk refers to Secret {self.name} as it is"
        error = SecretNotFound if self.cls is Secret else ConfigMapNotFound
        return error(self.name, self.key, path=self.path, namespace=namespace, lacks_key=there, instead=instead)


def user_data(machine_cloud_init: MachineCloudInit) -> DocumentReference | None:
    """Return the reference of the user data; None when there is none, and when user data in the machine wins."""
    if machine_cloud_init.userData or machine_cloud_init.userDataBase64:
        return None
    if machine_cloud_init.secretRef is not None:
        path: Path = ("spec", "cloudInit", "secretRef")
        return DocumentReference(Secret, machine_cloud_init.secretRef.name, machine_cloud_init.secretRef.key, USER_DATA_KEY, path)
    return _own(machine_cloud_init, "userData", USER_DATA_KEY)


def network_data(machine_cloud_init: MachineCloudInit) -> DocumentReference | None:
    """Return the reference of the network data; None when there is none of its own, and when the machine has it."""
    return (
        None
        if machine_cloud_init.networkData or machine_cloud_init.networkDataBase64
        else _own(machine_cloud_init, "networkData", NETWORK_DATA_KEY)
    )


def _own(machine_cloud_init: MachineCloudInit, document: str, key: str) -> DocumentReference | None:
    for cls in (Secret, ConfigMap):
        member = f"{document}{cls.__name__}Ref"
        reference = getattr(machine_cloud_init, member)
        if reference is not None:
            return DocumentReference(cls, reference.name, reference.key or key, key, ("spec", "cloudInit", member))
    return None


def references(machine_cloud_init: MachineCloudInit | None) -> Iterator[DocumentReference]:
    """Yield the references of the documents that are looked up."""
    for reference in (user_data(machine_cloud_init), network_data(machine_cloud_init)) if machine_cloud_init is not None else ():
        if reference is not None:
            yield reference
