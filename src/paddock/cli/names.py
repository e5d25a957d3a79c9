"""`[KIND/]NAME` as people write it: the places where the object may be, the likeliest first."""

from paddock.base.errors import Terminal
from paddock.base.nearest import nearest
from paddock.fleet.diagnosis.links import (
    CLONE,
    EXPORT,
    NODE,
    POD,
    POOLS,
    REPLICA_SET,
    RESTORE,
    SERVICE,
    ref_of,
)
from paddock.fleet.diagnosis.scene import ObjectPlace
from paddock.kubernetes import catalog
from paddock.kubernetes.schema.dialect import KindId
from paddock.kubevirt.plan.changes.references import CLAIM, DATA_SOURCE, DATA_VOLUME, INSTANCE, MACHINE, SNAPSHOT
from paddock.kubevirt.plan.diagnosis import kinddiagnosis

# What is looked for when no kind is named: what stands in front goes before what is made of it.
LIKELY: tuple[KindId, ...] = (
    *(kind for kind, each in kinddiagnosis.items() if each.is_namesake),
    *(kind for kind, each in kinddiagnosis.items() if each.members is not None),
    *(kind for kind, each in kinddiagnosis.items() if each.polls is not None),
    *POOLS,
    REPLICA_SET,
    MACHINE,
    INSTANCE,
    *(kind for kind, each in kinddiagnosis.items() if each.is_network),
    CLONE,
    RESTORE,
    SNAPSHOT,
    EXPORT,
    DATA_VOLUME,
    CLAIM,
    DATA_SOURCE,
    SERVICE,
)
# Kinds that nobody declares here, by what people call them.
_UNDECLARED: dict[str, KindId] = {"pod": POD, "pods": POD, "po": POD, "node": NODE, "nodes": NODE, "no": NODE}


class NoKind(Terminal):
    """No kind is called so."""


def candidates(text: str, namespace: str) -> list[ObjectPlace]:
    """The places that are meant."""
    word, slash, name = text.rpartition("/")
    kinds = _kinds(word) if slash else LIKELY
    return [ref_of(each, namespace, name) for each in kinds]


def _kinds(word: str) -> list[KindId]:
    """The kinds of a name: `vm`, `virtualmachines`, `VirtualMachine`, each also with its group behind a dot."""
    if word.lower() in _UNDECLARED:
        return [_UNDECLARED[word.lower()]]
    wanted, _, group = word.lower().partition(".")
    named = [
        each
        for each in catalog.every()
        if wanted in (each.kind.lower(), each.plural, each.singular, *each.short_names) and group in ("", each.group)
    ]
    if not named:
        meant = nearest(wanted, sorted({kind.lower() for _, kind in catalog.known()}))
        raise NoKind(f'no kind is called "{word}"', fix=f'did you mean "{meant}"?' if meant else "`paddock explain` describes kinds")
    order = {kind: index for index, kind in enumerate(LIKELY)}

    def key(kind: KindId) -> tuple[bool, int, KindId]:
        # To kubectl, vm is KubeVirt's.
        return wanted == "vm" and kind != MACHINE, order.get(kind, len(order)), kind

    return sorted({(each.group, each.kind) for each in named}, key=key)
