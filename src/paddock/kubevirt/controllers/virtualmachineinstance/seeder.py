"""The disks that tell a guest who it is and what it should become: cloud-init, sysprep, config maps, secrets, tokens, facts.

What they hold is read now, once: a guest reads its seed when it boots. Only what the agent keeps in the guest follows later changes.
"""

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path

import msgspec

from paddock.base.seeds import configdrive, configfiles, nocloud, seed, sysprep
from paddock.base.seeds.errors import SeedError
from paddock.base.seeds.seed import Seed, SeedIdentity, Texts
from paddock.engine.machine.config import DiskLayer
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.core.secret import decoded
from paddock.kubevirt.controllers.virtualmachineinstance.reader import CredentialReader, InstanceReferences
from paddock.kubevirt.controllers.virtualmachineinstance.targets import key_of
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.volumes import (
    CloudInitSource,
    ConfigMapVolume,
    SecretVolume,
    ServiceAccountVolume,
    Sysprep,
    Volume,
    VolumeNameReference,
)
from paddock.kubevirt.plan.instance import facts, prerequisites
from paddock.kubevirt.plan.instance.nics import hostname_of

_TOKEN_SECONDS = 365 * 86400
_TYPE_NOTE = "kubevirt.io/instancetype-name"
_CLUSTER_TYPE_NOTE = "kubevirt.io/cluster-instancetype-name"


class _TokenStatus(msgspec.Struct, frozen=True):
    token: str = ""


class _Token(msgspec.Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


class Seeder:
    """Makes the seeds of machines."""

    def __init__(self, client: Client, objects: InstanceReferences, credentials: CredentialReader, authority: bytes) -> None:
        self._client = client
        self._objects = objects
        self._credentials = credentials
        self._authority = authority

    async def layer(self, instance: VirtualMachineInstance, volume: Volume, path: Path) -> DiskLayer | None:
        """The disk of a volume; None for one that is no seed. Raises `MissingPrerequisite`."""
        try:
            found = await self._seed(instance, volume)
        except SeedError as error:
            raise prerequisites.failed("FailedMount", f"volume {volume.name}: {error}") from error
        if found is None:
            return None
        replace_file(path, found.image())
        return DiskLayer(path, "raw")

    async def files(self, instance: VirtualMachineInstance, volume: Volume) -> Mapping[str, bytes] | None:
        """The same content as files, for a volume that the guest mounts as a directory."""
        found = await self._seed(instance, volume)
        return None if found is None else found.files

    async def _seed(self, instance: VirtualMachineInstance, volume: Volume) -> Seed | None:
        if volume.cloudInitNoCloud is not None:
            return nocloud.seed(self._guest(instance, "noCloud"), self._texts(instance, volume.name, volume.cloudInitNoCloud))
        if volume.cloudInitConfigDrive is not None:
            texts = self._texts(instance, volume.name, volume.cloudInitConfigDrive)
            return configdrive.seed(self._guest(instance, "configDrive"), texts, facts.tagged(instance))
        if volume.sysprep is not None:
            return sysprep.seed(self._sysprep(instance, volume.name, volume.sysprep))
        if volume.configMap is not None:
            return self._config_map(instance, volume.name, volume.configMap)
        if volume.secret is not None:
            return self._secret(instance, volume.name, volume.secret)
        if volume.serviceAccount is not None:
            return await self._account(instance, volume.name, volume.serviceAccount)
        if volume.downwardAPI is not None:
            return configfiles.downward(facts.values(instance, volume.downwardAPI.fields or ()), volume.downwardAPI.volumeLabel or "")
        return None

    # --- cloud-init -------------------------------------------------------------------------------------------------------

    def _guest(self, instance: VirtualMachineInstance, method: str) -> SeedIdentity:
        keys, missing = self._credentials.seeded(key_of(instance), instance.spec, method)
        if missing:
            raise prerequisites.failed("FailedMount", f"access credentials: {'; '.join(missing)}")
        firmware, notes = instance.spec.domain.firmware, instance.metadata.annotations or {}
        return SeedIdentity(
            uuid=(firmware.uuid if firmware is not None else None) or instance.metadata.uid or "",
            name=f"{instance.metadata.name}.{instance.metadata.namespace}",
            hostname=hostname_of(instance),
            instance_type=notes.get(_TYPE_NOTE) or notes.get(_CLUSTER_TYPE_NOTE) or "",
            public_keys=keys,
        )

    def _texts(self, instance: VirtualMachineInstance, name: str, cloud_init_source: CloudInitSource) -> Texts:
        user = _inline(cloud_init_source.userData, cloud_init_source.userDataBase64)
        if cloud_init_source.secretRef is not None:
            user = seed.user_data(self._values(instance, name, cloud_init_source.secretRef.name))
        network = _inline(cloud_init_source.networkData, cloud_init_source.networkDataBase64)
        if cloud_init_source.networkDataSecretRef is not None:
            network = seed.network_data(self._values(instance, name, cloud_init_source.networkDataSecretRef.name))
        return Texts(user, network)

    # --- files ------------------------------------------------------------------------------------------------------------

    def _sysprep(self, instance: VirtualMachineInstance, name: str, sysprep: Sysprep) -> Mapping[str, bytes]:
        if sysprep.secret is not None:
            return self._values(instance, name, sysprep.secret.name)
        reference = sysprep.configMap or VolumeNameReference()
        found = self._config_map(instance, name, ConfigMapVolume(name=reference.name))
        return {} if found is None else found.files

    def _config_map(self, instance: VirtualMachineInstance, name: str, volume: ConfigMapVolume) -> Seed | None:
        found = self._objects.config_map(key_of(instance), volume.name)
        if found is None and not volume.optional:
            raise prerequisites.failed("FailedMount", f'volume {name}: configmap "{volume.name}" not found')
        data, binary = (found.data or {}, found.binaryData or {}) if found is not None else ({}, {})
        return configfiles.config_map(data, {key: base64.b64decode(text) for key, text in binary.items()}, volume.volumeLabel or "")

    def _secret(self, instance: VirtualMachineInstance, name: str, volume: SecretVolume) -> Seed:
        values = self._values(instance, name, volume.secretName, optional=bool(volume.optional))
        return configfiles.secret(values, volume.volumeLabel or "")

    async def _account(self, instance: VirtualMachineInstance, name: str, volume: ServiceAccountVolume) -> Seed:
        namespace = instance.metadata.namespace or ""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{volume.serviceAccountName}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": _TOKEN_SECONDS}}
        try:
            answer = await self._client.request("POST", path, body=msgspec.json.encode(body))
        except NotFound as error:
            raise prerequisites.failed(
                "FailedMount", f'volume {name}: serviceaccount "{volume.serviceAccountName}" not found', 5.0
            ) from error
        return configfiles.service_account(namespace, msgspec.json.decode(answer, type=_Token).status.token, self._authority)

    def _values(self, instance: VirtualMachineInstance, name: str, secret: str, *, optional: bool = False) -> dict[str, bytes]:
        found = self._objects.secret(key_of(instance), secret)
        if found is None and not optional:
            raise prerequisites.failed("FailedMount", f'volume {name}: secret "{secret}" not found')
        return decoded(found) if found is not None else {}


def _inline(text: str | None, encoded: str | None) -> bytes:
    if text is not None:
        return text.encode()
    try:
        return base64.b64decode(encoded or "", validate=True)
    except binascii.Error as error:
        raise SeedError("cannot read the base64 of a seed", why=str(error)) from error


def replace_file(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Write a whole file or none. One that holds the data already stays as it is."""
    if path.exists() and path.read_bytes() == data:
        return
    fresh = path.with_name(f".{path.name}")
    fresh.write_bytes(data)
    if mode is not None:
        fresh.chmod(mode)
    fresh.replace(path)
