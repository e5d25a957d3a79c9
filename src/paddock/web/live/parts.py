"""Values of an object that the rows of several topics have."""

from collections.abc import Iterator

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis import verdict
from paddock.fleet.diagnosis.scene import ObjectPlace, at, conditions, entries, texts
from paddock.fleet.machines import parts as machineparts
from paddock.fleet.machines.finding import MachineView
from paddock.kubernetes.client.target import Key, Target
from paddock.web.answers.rows import WebObjectRow

Cells = dict[str, str | float | list[str]]


def place(machine: MachineView) -> str:
    """Return the place of a machine, as the page names it."""
    return f"{machine.kind.word}/{machine.key}"


def key_of(data: Data) -> Key:
    """Return the place of an object among those of its kind."""
    return Key(texts(data, "metadata", "namespace"), texts(data, "metadata", "name"))


def claims(machine: MachineView) -> Iterator[Key]:
    """Yield the claims that a machine uses."""
    key = machine.vm_key or machine.vmi_key
    if key is not None:
        yield from (Key(key.namespace, each) for each in machineparts.claims(machine))


def networks(machine: MachineView) -> Iterator[Key]:
    """Yield the NetworkAttachmentDefinitions that a machine is attached to."""
    key = machine.vm_key or machine.vmi_key
    if key is None:
        return
    for each in entries(machineparts.spec_of(machine), "networks"):
        if name := texts(each, "multus", "networkName"):
            namespace, _, short = name.rpartition("/")
            yield Key(namespace or key.namespace, short)


def message_of(data: Data) -> str:
    """Return what an object says about itself, if something is wrong or not yet as it should be."""
    found = conditions(data)
    for name in ("Failure", "Ready", "Progressing", "Running"):
        text = texts(found.get(name), "message")
        # That there is no instance yet is what the state says, and never why.
        if text and texts(found.get(name), "reason") != "VMINotExists":
            return text
    return texts(data, "status", "error", "message") or texts(data, "status", "message")


def row(
    target: Target[Data],
    data: Data,
    cells: Cells,
    machines: list[str],
    *,
    percent: int = -1,
    judged: verdict.ObjectVerdict | None = None,
) -> WebObjectRow:
    """Return the row of an object that is no machine. Its state is that of `paddock why`, where nobody who knows more has judged it."""
    key = key_of(data)
    judged = judged or verdict_of(target, data)
    return WebObjectRow(
        id=f"{target.qualified}/{key.namespace}/{key.name}",
        group=target.group,
        kind=target.kind,
        namespace=key.namespace,
        name=key.name,
        state=judged.state,
        # The verdict goes on after a name; a column stands alone.
        status=judged.word.removeprefix("is ").removeprefix("has "),
        created=texts(data, "metadata", "creationTimestamp"),
        cells={name: value for name, value in cells.items() if value not in ("", [])},
        machines=machines,
        percent=percent,
        keeps=_keeper(data),
    )


def verdict_of(target: Target[Data], data: Data) -> verdict.ObjectVerdict:
    """Return the verdict on an object from its own status."""
    key = key_of(data)
    return verdict.of(ObjectPlace(target.group, target.kind, key.namespace, key.name), data)


def percent_of(data: Data, *path: str) -> int:
    """Return a progress such as `45.3%` as a whole number; -1 for none."""
    found = str(at(data, *path) or "").removesuffix("%")
    try:
        return min(max(int(float(found)), 0), 100)
    except (ValueError, OverflowError):
        return -1


def _keeper(data: Data) -> str:
    """Return why it makes no sense to delete an object: its owner would make it again."""
    for owner in entries(data, "metadata", "ownerReferences"):
        if owner.get("controller"):
            return f"{texts(owner, 'kind')} {texts(owner, 'name')} keeps it; change or delete that"
    return ""
