"""Looks definitions up for the controller of machines, and has it look again when one changes.

A definition has no status and nothing belongs to it: there is nothing to reconcile until a machine is attached.
"""

from collections.abc import Iterable, Mapping

from paddock.engine.networks.nics import HostBridge
from paddock.kubernetes.client.target import Key, Target, declared
from paddock.kubernetes.core import networkattachment
from paddock.kubernetes.core.networkattachment import NetworkAttachmentDefinition
from paddock.kubernetes.runtime.cache import CacheChange
from paddock.kubernetes.runtime.controller import Controller
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.network.attachments import bridge_of

ATTACHMENTS: Target[NetworkAttachmentDefinition] = declared(networkattachment.KINDS[0], NetworkAttachmentDefinition)


class NetworkAttachments:
    """Definitions by their names, and which machines asked for them."""

    def __init__(self, informers: Informers) -> None:
        self._informer = informers.of(ATTACHMENTS)
        self._asked: dict[Key, set[Key]] = {}

    def resolve(self, instance: VirtualMachineInstance) -> Mapping[str, HostBridge | str]:
        """For each network of the instance that a definition describes: its bridge, or why there is none."""
        who = Key(instance.metadata.namespace or "", instance.metadata.name)
        found: dict[str, HostBridge | str] = {}
        for network in instance.spec.networks or ():
            if network.multus is not None:
                key = self._key(network.multus.networkName, who.namespace)
                self._asked.setdefault(key, set()).add(who)
                seen = self._informer.cache.get(key)
                found[network.name] = bridge_of(str(key), seen.read(ATTACHMENTS) if seen is not None else None)
        return found

    def wake(self, controller: Controller) -> None:
        """Have the controller of machines look again when a definition changes."""
        controller.watch(self._informer, self._concerned)

    def _concerned(self, change: CacheChange) -> Iterable[Key]:
        # Whoever still wants it asks again.
        return self._asked.pop(change.seen.key, ())

    @staticmethod
    def _key(name: str, namespace: str) -> Key:
        """`namespace/name`, or a name in the machine's own namespace."""
        given = Key.of(name)
        return given if given.namespace else Key(namespace, given.name)
