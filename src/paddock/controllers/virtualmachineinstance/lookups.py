"""Looking at the objects that a machine names: who looked is told when the object changes, also when it was not there yet."""

from collections.abc import Iterable
from typing import TypeVar

from paddock.client.target import Key, Target
from paddock.controllers.virtualmachineinstance.kinds import CLAIMS, CONFIG_MAPS, DATA_VOLUMES, SECRETS
from paddock.dialects.core.configmap import ConfigMap
from paddock.dialects.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.dialects.core.secret import Secret
from paddock.dialects.kubevirt.datavolume_kind import DataVolume
from paddock.runtime.cache import CacheChange
from paddock.runtime.controller import Controller
from paddock.runtime.informer import Informer
from paddock.runtime.informers import Informers

T = TypeVar("T")


class Lookups:
    """Objects by name, and who looked at them."""

    def __init__(self, informers: Informers) -> None:
        self._informers = {each.qualified: informers.of(each) for each in (SECRETS, CONFIG_MAPS, CLAIMS, DATA_VOLUMES)}
        # kind and key of an object -> keys of the machines that looked at it
        self._lookers: dict[tuple[str, Key], dict[Key, None]] = {}
        self._controller: Controller | None = None

    def wake(self, controller: Controller) -> None:
        """Have the controller look at a machine again when something changes that was looked at for it."""
        self._controller = controller
        for kind, informer in self._informers.items():
            controller.watch(informer, lambda change, kind=kind: self._concerned(kind, change))  # type: ignore[misc]

    def secret(self, who: Key, name: str) -> Secret | None:
        """A Secret of the machine's namespace."""
        return self._get(SECRETS, who, name)

    def config_map(self, who: Key, name: str) -> ConfigMap | None:
        """A ConfigMap of the machine's namespace."""
        return self._get(CONFIG_MAPS, who, name)

    def claim(self, who: Key, name: str) -> PersistentVolumeClaim | None:
        """A claim of the machine's namespace."""
        return self._get(CLAIMS, who, name)

    def data_volume(self, who: Key, name: str) -> DataVolume | None:
        """A DataVolume of the machine's namespace."""
        return self._get(DATA_VOLUMES, who, name)

    def freed(self, namespace: str, claims: Iterable[str]) -> None:
        """Nobody uses these claims any more: somebody may have waited for them."""
        for name in claims:
            for who in tuple(self._lookers.get((CLAIMS.qualified, Key(namespace, name)), ())):
                if self._controller is not None:
                    self._controller.offer(who)

    def forget(self, who: Key) -> None:
        """The machine is gone."""
        for place in [place for place, lookers in self._lookers.items() if who in lookers]:
            del self._lookers[place][who]
            if not self._lookers[place]:
                del self._lookers[place]

    def _get(self, target: Target[T], who: Key, name: str) -> T | None:
        key = Key(who.namespace, name)
        self._lookers.setdefault((target.qualified, key), {})[who] = None
        seen = self._informers[target.qualified].cache.get(key)
        return seen.read(target) if seen is not None else None

    def _concerned(self, kind: str, change: CacheChange) -> tuple[Key, ...]:
        return tuple(self._lookers.get((kind, change.seen.key), ()))

    @property
    def informers(self) -> tuple[Informer, ...]:
        """What has to be whole before anybody looks."""
        return tuple(self._informers.values())
