"""References to objects of more than one kind, and the rule that only certain kinds may stand there."""

from collections.abc import Iterator
from typing import Protocol

from paddock.schema import finding
from paddock.schema.finding import Finding, Path

VIRT = "kubevirt.io"
SNAPSHOT = "snapshot.kubevirt.io"
BACKUP = "backup.kubevirt.io"


class KindReference(Protocol):
    """A reference that says of which kind its object is."""

    @property
    def apiGroup(self) -> str | None: ...

    @property
    def kind(self) -> str: ...


def is_of_kubevirt(group: str) -> bool:
    """Return whether a group is KubeVirt's or CDI's."""
    return group == VIRT or group.endswith(f".{VIRT}")


# (group, kind)
GroupKind = tuple[str, str]
MACHINE: GroupKind = (VIRT, "VirtualMachine")


def kind_findings(reference: KindReference | None, path: Path, kinds: tuple[str, ...], rule: str) -> Iterator[Finding]:
    """A reference names an object of one of some kinds. Its group may be any: the kind alone decides what is meant."""
    if reference is not None and reference.kind and reference.kind not in kinds:
        yield finding.unsupported((*path, "kind"), reference.kind, kinds, rule)


def reference_findings(reference: KindReference | None, path: Path, allowed: tuple[GroupKind, ...], rule: str) -> Iterator[Finding]:
    """A reference names an object of one of the allowed kinds, in the right group."""
    if reference is None or not reference.kind:
        return
    group = reference.apiGroup or ""
    groups = [known for known, kind in allowed if kind == reference.kind]
    if not groups:
        yield finding.unsupported((*path, "kind"), reference.kind, sorted({kind for _, kind in allowed}), rule)
    elif group not in groups and not group:
        yield finding.required((*path, "apiGroup"), rule, f"the group of a {reference.kind} is {groups[0]}")
    elif group not in groups:
        yield finding.unsupported((*path, "apiGroup"), group, groups, rule)
