"""References to objects of more than one kind, and the rule that only certain kinds may stand there."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path

VIRT = "kubevirt.io"
SNAPSHOT = "snapshot.kubevirt.io"
BACKUP = "backup.kubevirt.io"


class KindReference(Protocol):
    """A reference that says of which kind its object is."""

    @property
    def apiGroup(self) -> str | None: ...

    @property
    def kind(self) -> str: ...


# (group, kind)
GroupKind = tuple[str, str]
MACHINE: GroupKind = (VIRT, "VirtualMachine")


def kind_findings(reference: KindReference | None, path: Path, kinds: Sequence[str], rule: str) -> Iterator[Finding]:
    """A reference names an object of one of some kinds. Its group may be any: the kind alone decides what is meant."""
    if reference is not None and reference.kind and reference.kind not in kinds:
        yield finding.unsupported((*path, "kind"), reference.kind, kinds, rule)


def reference_findings(reference: KindReference | None, path: Path, allowed: tuple[GroupKind, ...], rule: str) -> Iterator[Finding]:
    """A reference names an object of one of the allowed kinds, in the right group."""
    if reference is None:
        return
    yield from kind_findings(reference, path, sorted({kind for _, kind in allowed}), rule)
    groups = [group for group, kind in allowed if kind == reference.kind]
    if not groups or (reference.apiGroup or "") in groups:
        return
    if reference.apiGroup:
        yield finding.unsupported((*path, "apiGroup"), reference.apiGroup, groups, rule)
    else:
        yield finding.required((*path, "apiGroup"), rule, f"the group of a {reference.kind} is {groups[0]}")
