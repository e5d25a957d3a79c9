"""From one object along the links, nearest first; and what has to be asked for to go on."""

from collections import deque
from collections.abc import Iterator

import msgspec

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis import verdict
from paddock.fleet.diagnosis.links import WIDE, How, ReferenceLink, links, lists
from paddock.fleet.diagnosis.scene import Ask, EventQuery, ObjectPlace, ObjectSnapshot, entries, texts

# A tangle is cut off here; no machine has so many parts.
_MOST_NODES = 300


class WalkNode(msgspec.Struct, frozen=True):
    """An object on the way; `data` is None for one that is named and was not found."""

    ref: ObjectPlace
    data: Data | None
    depth: int = 0
    above: "WalkNode | None" = None
    how: How = "made"
    # the field of the one above that leads here
    path: str = ""

    @property
    def trail(self) -> "tuple[WalkNode, ...]":
        """From the object that was asked about to this one."""
        return (*(self.above.trail if self.above is not None else ()), self)


def walk(scene: ObjectSnapshot, start: ObjectPlace) -> tuple[WalkNode, ...]:
    """The objects on the way, each once."""
    return tuple(node for node, _ in _walk(scene, start))


def asks(scene: ObjectSnapshot, start: ObjectPlace) -> frozenset[Ask]:
    """Return the objects to read next; none when all is known."""
    wanted: set[Ask] = set()
    for node, steps in _walk(scene, start):
        if node.data is None:
            wanted.add(node.ref)
            continue
        wanted |= set(lists(node.ref, node.data))
        if node.ref.id not in WIDE:
            wanted.add(EventQuery(node.ref.namespace, node.ref.name))
        for step in steps:
            wanted |= set(step.to)
    return frozenset(each for each in wanted if not scene.knows(each))


def _walk(scene: ObjectSnapshot, start: ObjectPlace) -> Iterator[tuple[WalkNode, tuple[ReferenceLink, ...]]]:
    seen = {start}
    queue = deque([WalkNode(start, scene.objects.get(start))])
    while queue and len(seen) < _MOST_NODES:
        node = queue.popleft()
        steps = tuple(_steps(scene, node))
        yield node, steps
        for step in steps:
            chosen = next((each for each in step.to if each in scene.objects), step.to[0])
            if chosen not in seen:
                seen.add(chosen)
                queue.append(WalkNode(chosen, scene.objects.get(chosen), node.depth + 1, node, step.how, step.path))


def _steps(scene: ObjectSnapshot, node: WalkNode) -> Iterator[ReferenceLink]:
    if node.data is None:
        return
    named = verdict.is_open(node.ref, node.data)
    yield from (each for each in links(scene, node.ref, node.data, named=named) if each.to and each.to[0].name)
    if node.depth == 0:
        yield from _owner(node)


def _owner(node: WalkNode) -> Iterator[ReferenceLink]:
    """Yield the link from a part to its owner."""
    for owner in entries(node.data, "metadata", "ownerReferences"):
        if owner.get("controller") and texts(owner, "kind") in _OWNERS:
            group = texts(owner, "apiVersion").rpartition("/")[0]
            yield ReferenceLink(
                (ObjectPlace(group, texts(owner, "kind"), node.ref.namespace, texts(owner, "name")),), "uses", "metadata.ownerReferences"
            )


_OWNERS = ("DataVolume", "VirtualMachine", "VirtualMachineRestore")
