"""The networks that interfaces of machines name, looked up on the server."""

from collections.abc import Sequence

from paddock.base.jsondata import Data
from paddock.base.nearest import nearest
from paddock.fleet.kinds import named_target
from paddock.fleet.machines.edits import ChangeRefused
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.errors import Forbidden, NotFound
from paddock.kubernetes.client.options import Selection
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt.plan.changes.adapters import POD

_DEFINITIONS = kind_target("k8s.cni.cncf.io", "NetworkAttachmentDefinition")


async def check(server: ServerSession, machine: MachineView, network: str) -> None:
    """Raise `ChangeRefused` if a network does not exist: the guest would wait for it without a word."""
    if network == POD:
        return
    own = machine.kind.adapter.network_kind
    target = named_target(own) if own is not None else _DEFINITIONS
    namespace, slash, name = network.rpartition("/")
    key = Key(namespace if slash else machine.namespace, name)
    try:
        await server.client.get(target, key)
    except Forbidden:
        # A user who may change machines need not be allowed to read networks.
        return
    except NotFound as error:
        why = f"there is no {target.kind} {name} in the namespace {key.namespace}"
        fix = _fix(target.kind, name, await _names(server, target, key.namespace))
        raise ChangeRefused(f"cannot add an interface on {network} to {machine}", why=why, fix=fix) from error


def _fix(kind: str, name: str, known: Sequence[str]) -> str:
    if meant := nearest(name, known):
        return f'did you mean "{meant}"?'
    return f"the namespace has {', '.join(known)}" if known else f"make it first; `paddock explain {kind}` has its fields"


async def _names(server: ServerSession, target: Target[Data], namespace: str) -> list[str]:
    try:
        answer = await server.client.list(target, Selection(namespace=namespace))
    except (Forbidden, NotFound):
        return []
    return sorted(each["metadata"]["name"] for each in answer.items)
