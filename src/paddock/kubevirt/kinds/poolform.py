"""The two forms of a pool's machine, and the way from one to the other and back (docs/spec/kubermatic.md 2.4).

`fold` makes the nested form of a flat pool: it is what KubeVirt understands and what everything else here works with. `unfold`
is its inverse. Both are pure and leave a pool alone that has the wanted form already.
"""

from typing import TYPE_CHECKING, Any

import msgspec

from paddock.kubernetes.meta.objects import TemplateMeta
from paddock.kubernetes.schema.finding import Path
from paddock.kubevirt.kinds.instance import VirtualMachineInstanceSpec, VirtualMachineInstanceTemplate
from paddock.kubevirt.kinds.poolfields import FLAT_KEYS, PoolMachineSpec
from paddock.kubevirt.kinds.virtualmachine import VirtualMachineSpec

if TYPE_CHECKING:
    from paddock.kubevirt.kinds.pool import VirtualMachinePool

TEMPLATE: Path = ("spec", "virtualMachineTemplate")
MACHINE: Path = (*TEMPLATE, "spec")
_NOTHING = dict.fromkeys(FLAT_KEYS)
_MACHINE_KEYS = tuple(name for name in VirtualMachineSpec.__struct_fields__ if name != "template")


def flat_keys(spec: PoolMachineSpec) -> tuple[str, ...]:
    """The members of the flat form that are given."""
    return tuple(name for name in FLAT_KEYS if getattr(spec, name) is not None)


def is_flat(pool: "VirtualMachinePool") -> bool:
    """Return whether a pool has the flat form and nothing of the nested one."""
    spec = pool.spec.virtualMachineTemplate.spec
    return spec.template is None and bool(flat_keys(spec))


def instance_metadata(metadata: TemplateMeta | None) -> TemplateMeta | None:
    """Return the metadata of a running machine in the flat form: the labels and annotations of the machine."""
    if metadata is None or (metadata.labels is None and metadata.annotations is None):
        return None
    return TemplateMeta(labels=metadata.labels, annotations=metadata.annotations)


def fold(pool: "VirtualMachinePool") -> "VirtualMachinePool":
    """The pool in the nested form; one that is not flat is left alone."""
    if not is_flat(pool):
        return pool
    given = pool.spec.virtualMachineTemplate
    hardware = VirtualMachineInstanceSpec(**{name: getattr(given.spec, name) for name in flat_keys(given.spec)})
    template = VirtualMachineInstanceTemplate(metadata=instance_metadata(given.metadata), spec=hardware)
    return _with_machine(pool, msgspec.structs.replace(given.spec, template=template, **_NOTHING))


def unfold(pool: "VirtualMachinePool") -> "VirtualMachinePool":
    """The pool in the flat form. One that the flat form cannot say, because its running machines have labels or annotations of
    their own, is left alone."""
    given = pool.spec.virtualMachineTemplate
    template = given.spec.template
    if template is None or flat_keys(given.spec) or template.metadata != instance_metadata(given.metadata):
        return pool
    members = {name: getattr(template.spec, name) for name in FLAT_KEYS}
    return _with_machine(pool, msgspec.structs.replace(given.spec, template=None, **members))


def machine_spec(pool: "VirtualMachinePool") -> VirtualMachineSpec:
    """Return each machine of the pool as the spec of a VirtualMachine. A pool of neither form gives a machine without hardware."""
    spec = fold(pool).spec.virtualMachineTemplate.spec
    template = VirtualMachineInstanceTemplate() if spec.template is None else spec.template
    return VirtualMachineSpec(template=template, **{name: getattr(spec, name) for name in _MACHINE_KEYS})


def hardware_path(pool: "VirtualMachinePool") -> Path:
    """Return the path of the hardware of the pool's machines."""
    return MACHINE if is_flat(pool) else (*MACHINE, "template", "spec")


def instance_metadata_path(pool: "VirtualMachinePool") -> Path:
    """Return the path of the metadata of the pool's running machines."""
    return (*TEMPLATE, "metadata") if is_flat(pool) else (*MACHINE, "template", "metadata")


def _with_machine(pool: "VirtualMachinePool", machine: PoolMachineSpec) -> "VirtualMachinePool":
    template = msgspec.structs.replace(pool.spec.virtualMachineTemplate, spec=machine)
    return msgspec.structs.replace(pool, spec=msgspec.structs.replace(pool.spec, virtualMachineTemplate=template))


# --- the same on plain data: nothing that is written is lost, and patches have forms of their own ----------------------------


def folded(data: dict[str, Any]) -> dict[str, Any]:
    """A pool's data in the nested form, in place; data of neither form, or of both, is left alone."""
    around, machine = _parts(data)
    hardware = {name: machine[name] for name in FLAT_KEYS if name in machine}
    if not hardware or "template" in machine:
        return data
    for name in hardware:
        del machine[name]
    machine["template"] = {**_metadata(around), "spec": hardware}
    return data


def unfolded(data: dict[str, Any]) -> dict[str, Any]:
    """A pool's data in the flat form, in place; what that form cannot say is left alone."""
    around, machine = _parts(data)
    template = machine.get("template")
    if not isinstance(template, dict) or any(name in machine for name in FLAT_KEYS):
        return data
    if (template.get("metadata") or {}) != (_metadata(around).get("metadata") or {}):
        return data
    del machine["template"]
    machine.update(template.get("spec") or {})
    return data


def moved(patch: dict[str, Any]) -> dict[str, Any]:
    """A merge patch of a pool that is stored nested: what it says of flat places, it says of the nested ones; a new value."""
    around, machine = _parts(patch)
    flat = {name: machine[name] for name in FLAT_KEYS if name in machine}
    if not flat:
        return patch
    template = dict(machine["template"]) if isinstance(machine.get("template"), dict) else {}
    template["spec"] = {**flat, **(template.get("spec") or {})}
    if "metadata" not in template:
        template.update(_metadata(around))
    rest = {name: value for name, value in machine.items() if name not in flat}
    inner = {**around, "spec": {**rest, "template": template}}
    return {**patch, "spec": {**patch["spec"], "virtualMachineTemplate": inner}}


def _parts(data: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parts around the machine of a pool, and the machine; both empty where the data has another form."""
    place: Any = data
    found = []
    for name in MACHINE:
        place = place.get(name) if isinstance(place, dict) else None
        found.append(place)
    _, around, machine = (each if isinstance(each, dict) else {} for each in found)
    return around, machine


def _metadata(around: dict[str, Any]) -> dict[str, Any]:
    given = around.get("metadata")
    kept = {name: given[name] for name in ("labels", "annotations") if name in given} if isinstance(given, dict) else {}
    return {"metadata": kept} if kept else {}
