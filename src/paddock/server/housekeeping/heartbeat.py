"""The sign that this host is alive: a Lease in kube-node-lease renewed every 10 seconds, and every five minutes the Node's condition.

Two signs, because the Lease is cheap and the Node is what people look at. A Lease or a Node that somebody deleted is made again.
"""

from collections.abc import Callable

import msgspec

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import ages, failure
from paddock.server.context import ServerParts
from paddock.server.housekeeping import node as presence
from paddock.server.objects.requests import Options, Proposal
from paddock.server.store.contract import StoreKey

SECONDS = 10.0
_NAMESPACE = "kube-node-lease"
_LEASE_SECONDS = 40
_STATUS_SECONDS = 300.0
_WHO = Options(user="system:apiserver", manager="paddock", unasked=True)


class Heartbeat:
    """Keeps the Node of this host alive."""

    def __init__(
        self,
        parts: ServerParts,
        host: presence.NodeFacts,
        problem: Callable[[], presence.NodeProblem | None] = lambda: None,
        limits: Callable[[], tuple[presence.NodeLimit, ...]] = lambda: (),
    ) -> None:
        """`problem` tells why the host cannot run machines now (None: it can), and `limits` what it lacks for some of them."""
        self._parts = parts
        self._host = host
        self._problem = problem
        self._limits = limits
        self._told_at = parts.clock.seconds()

    async def beat(self) -> None:
        """Say once that the host is alive."""
        nodes = self._parts.registry.find("", "v1", "nodes")
        if nodes is None:
            return
        now = self._parts.clock.seconds()
        host = msgspec.structs.replace(self._host, problem=self._problem(), limits=self._limits())
        node = self._parts.view.get(nodes.collection, "", self._host.name)
        # A clock that was set back must not silence the host until it has caught up.
        if node is None or host != self._host or abs(now - self._told_at) >= _STATUS_SECONDS:
            await presence.ensure_node(self._parts, host)
            self._told_at, self._host = now, host
            node = self._parts.view.get(nodes.collection, "", self._host.name)
        if node is not None:
            await self._renew(_lease(self._host.name, node, ages.micro_timestamp(now)))

    async def _renew(self, wanted: Data) -> None:
        leases = self._parts.registry.find("coordination.k8s.io", "v1", "leases")
        if leases is None:
            return

        def renewed(old: Data) -> Proposal:
            metadata = {**old["metadata"], "ownerReferences": wanted["metadata"]["ownerReferences"]}
            return Proposal({**old, "metadata": metadata, "spec": {**(old.get("spec") or {}), **wanted["spec"]}})

        try:
            if self._parts.store.decided(StoreKey(leases.collection, _NAMESPACE, self._host.name)) is None:
                await self._parts.writer.create(leases, _NAMESPACE, wanted, _WHO)
            else:
                await self._parts.writer.replace(leases, _NAMESPACE, self._host.name, renewed, _WHO)
        except failure.Failure as said:
            # It, or its namespace, is going or gone: a beat to come finds it in order.
            if said.code not in (403, 404, 409):
                raise


def _lease(name: str, node: Data, now: str) -> Data:
    """The Lease of a node, as kubelets write it."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": _NAMESPACE, "ownerReferences": [owner]},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": _LEASE_SECONDS, "renewTime": now},
    }
