"""The objects that an instance names, read from caches, and the keys and passwords that their Secrets hold.

A change of such an object leads to every instance that read it, also when the object did not exist at that time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeVar

import msgspec

from paddock.base.jsondata import Data
from paddock.base.seeds import seed as seeds
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.core.configmap import ConfigMap
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.core.secret import Secret, decoded
from paddock.kubernetes.runtime.cache import CacheChange
from paddock.kubernetes.runtime.controller import Keys
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubevirt.controllers.virtualmachineinstance.targets import CLAIMS, CONFIG_MAPS, DATA_VOLUMES, SECRETS, VOLUMES
from paddock.kubevirt.kinds.access import CredentialSource
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.instance import VirtualMachineInstanceSpec

T = TypeVar("T")


class InstanceReferences:
    """The objects that instances name, and the instances that read each of them. `request` asks for a reconcile of an instance."""

    def __init__(self, informers: Informers, request: Callable[[Key], None]) -> None:
        self._informers = {each.qualified: informers.of(each) for each in (SECRETS, CONFIG_MAPS, CLAIMS, VOLUMES, DATA_VOLUMES)}
        self._request = request
        # kind and key of an object -> keys of the instances that read it
        self._readers: dict[tuple[str, Key], dict[Key, None]] = {}

    @property
    def watched(self) -> Iterator[tuple[Informer, Keys]]:
        """The kinds to watch, and the instances that a change of an object concerns."""
        for kind, informer in self._informers.items():
            yield informer, partial(self._readers_of, kind)

    def secret(self, instance: Key, name: str) -> Secret | None:
        """A Secret of the instance's namespace."""
        return self._get(SECRETS, instance, name)

    def config_map(self, instance: Key, name: str) -> ConfigMap | None:
        """A ConfigMap of the instance's namespace."""
        return self._get(CONFIG_MAPS, instance, name)

    def claim(self, instance: Key, name: str) -> PersistentVolumeClaim | None:
        """A claim of the instance's namespace."""
        return self._get(CLAIMS, instance, name)

    def data_volume(self, instance: Key, name: str) -> DataVolume | None:
        """A DataVolume of the instance's namespace."""
        return self._get(DATA_VOLUMES, instance, name)

    def persistent_volume(self, instance: Key, name: str) -> Data | None:
        """The volume of a claim."""
        return self._get(VOLUMES, instance, name)

    def freed(self, namespace: str, claims: Iterable[str]) -> None:
        """Request a reconcile of the instances that may wait for these claims: nobody uses them any more."""
        for name in claims:
            for instance in tuple(self._readers.get((CLAIMS.qualified, Key(namespace, name)), ())):
                self._request(instance)

    def forget(self, instance: Key) -> None:
        """Drop what is known of an instance that is gone."""
        for place in [place for place, readers in self._readers.items() if instance in readers]:
            del self._readers[place][instance]
            if not self._readers[place]:
                del self._readers[place]

    def _get(self, target: Target[T], instance: Key, name: str) -> T | None:
        key = Key(instance.namespace if target.namespaced else "", name)
        self._readers.setdefault((target.qualified, key), {})[instance] = None
        seen = self._informers[target.qualified].cache.get(key)
        return seen.read(target) if seen is not None else None

    def _readers_of(self, kind: str, change: CacheChange) -> tuple[Key, ...]:
        return tuple(self._readers.get((kind, change.seen.key), ()))


class GuestCredentials(msgspec.Struct, frozen=True):
    """Keys and passwords by user, which the agent keeps in the guest."""

    keys: Mapping[str, tuple[str, ...]]
    passwords: Mapping[str, str]
    # why not all are known; empty when they are
    missing: str = ""

    @property
    def empty(self) -> bool:
        """Return true if there is nothing to keep."""
        return not (self.keys or self.passwords or self.missing)


class CredentialReader:
    """Reads the Secrets of access credentials."""

    def __init__(self, objects: InstanceReferences) -> None:
        self._objects = objects

    def of(self, instance: Key, spec: VirtualMachineInstanceSpec) -> GuestCredentials:
        """The credentials that the agent keeps in the guest."""
        keys: dict[str, tuple[str, ...]] = {}
        passwords: dict[str, str] = {}
        missing: list[str] = []
        for each in spec.accessCredentials or ():
            if each.sshPublicKey is not None and each.sshPublicKey.propagationMethod.qemuGuestAgent is not None:
                values = self._values(instance, each.sshPublicKey.source, missing)
                for user in each.sshPublicKey.propagationMethod.qemuGuestAgent.users:
                    keys[user] = (*keys.get(user, ()), *seeds.public_keys(values))
            if each.userPassword is not None:
                found = self._values(instance, each.userPassword.source, missing)
                passwords |= seeds.passwords(found)
        return GuestCredentials(keys, passwords, "; ".join(missing))

    def seeded(self, instance: Key, spec: VirtualMachineInstanceSpec, method: str) -> tuple[tuple[str, ...], list[str]]:
        """The keys that a seed of this kind (noCloud, configDrive) brings, and what is missing."""
        found: list[str] = []
        missing: list[str] = []
        for each in spec.accessCredentials or ():
            if each.sshPublicKey is not None and getattr(each.sshPublicKey.propagationMethod, method) is not None:
                found += seeds.public_keys(self._values(instance, each.sshPublicKey.source, missing))
        return tuple(found), missing

    def _values(self, instance: Key, source: CredentialSource, missing: list[str]) -> dict[str, bytes]:
        name = source.secret.secretName if source.secret is not None else ""
        secret = self._objects.secret(instance, name)
        if secret is None:
            missing.append(f"the Secret {name} does not exist")
            return {}
        return decoded(secret)
