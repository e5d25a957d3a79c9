"""From one object along the links, nearest first; and what has to be asked for to go on."""

from collections import deque
from collections.abc import Iterator

import msgspec

from paddock.plan.why import verdict
from paddock.plan.why.links import WIDE, How, Link, links, lists
from paddock.plan.why.scene import About, Ask, Data, Ref, Scene, entries, texts

# A tangle is cut off here; no machine has so many parts.
_MOST_NODES = 300


class Node(msgspec.Struct, frozen=True):
    """An object on the way; `data` is None for one that is named and was not found."""

    ref: Ref
    data: Data | None
    depth: int = 0
    above: "Node | None" = None
    how: How = "made"
    # the field of the one above that leads here
    path: str = ""

    @property
    def trail(self) -> "tuple[Node, ...]":
        """From the object that was asked about to this one."""
        return (*(self.above.trail if self.above is not None else ()), self)


def walk(scene: Scene, start: Ref) -> tuple[Node, ...]:
    """The objects on the way, each once."""
    return tuple(node for node, _ in _walk(scene, start))


def asks(scene: Scene, start: Ref) -> frozenset[Ask]:
    """What has to be asked for before more can be said; nothing when all is known."""
    wanted: set[Ask] = set()
    for node, steps in _walk(scene, start):
        if node.data is None:
            wanted.add(node.ref)
            continue
        wanted |= set(lists(node.ref, node.data))
        if node.ref.id not in WIDE:
            wanted.add(About(node.ref.namespace, node.ref.name))
        for step in steps:
            wanted |= set(step.to)
    return frozenset(each for each in wanted if not scene.knows(each))


def _walk(scene: Scene, start: Ref) -> Iterator[tuple[Node, tuple[Link, ...]]]:
    seen = {start}
    queue = deque([Node(start, scene.objects.get(start))])
    while queue and len(seen) < _MOST_NODES:
        node = queue.popleft()
        steps = tuple(_steps(scene, node))
        yield node, steps
        for step in steps:
            chosen = next((each for each in step.to if each in scene.objects), step.to[0])
            if chosen not in seen:
                seen.add(chosen)
                queue.append(Node(chosen, scene.objects.get(chosen), node.depth + 1, node, step.how, step.path))


def _steps(scene: Scene, node: Node) -> Iterator[Link]:
    if node.data is None:
        return
    named = verdict.is_open(node.ref, node.data)
    yield from (each for each in links(scene, node.ref, node.data, named=named) if each.to and each.to[0].name)
    if node.depth == 0:
        yield from _owner(node)


def _owner(node: Node) -> Iterator[Link]:
    """Whoever asks about a part is told of what it is a part of."""
    for owner in entries(node.data, "metadata", "ownerReferences"):
        if owner.get("controller") and texts(owner, "kind") in _OWNERS:
            group = texts(owner, "apiVersion").rpartition("/")[0]
            yield Link((Ref(group, texts(owner, "kind"), node.ref.namespace, texts(owner, "name")),), "uses", "metadata.ownerReferences")


_OWNERS = ("DataVolume", "VirtualMachine", "VirtualMachineRestore")
