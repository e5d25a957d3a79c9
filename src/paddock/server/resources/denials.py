"""The webhooks by which KubeVirt and CDI refuse objects. Pure.

Programs that were written for KubeVirt read these names and words in the message of a refusal. Paddock judges without webhooks, and its
refusals bear them none the less; the causes in the details say the same with fields and advice, and they are what kubectl prints.
"""

from collections.abc import Sequence

from paddock.kubernetes.meta.failure import Failure, StatusCause
from paddock.kubernetes.releases import is_of_kubevirt
from paddock.kubernetes.schema.finding import Finding

_KUBEVIRT, _CDI = "kubevirt.io", "cdi.kubevirt.io"
# Those whose name is not that of their kind and group.
_NAMES = {
    (_KUBEVIRT, "KubeVirt"): "kubevirt-{operation}-validator.kubevirt.io",
    (_KUBEVIRT, "VirtualMachineInstance"): "virtualmachineinstances-{operation}-validator.kubevirt.io",
    (_KUBEVIRT, "VirtualMachineInstanceMigration"): "migration-{operation}-validator.kubevirt.io",
    (_KUBEVIRT, "VirtualMachineInstancePreset"): "virtualmachinepreset-validator.kubevirt.io",
    (_KUBEVIRT, "VirtualMachineInstanceReplicaSet"): "virtualmachinereplicaset-validator.kubevirt.io",
    ("clone.kubevirt.io", "VirtualMachineClone"): "vm-clone-validator.kubevirt.io",
    ("migrations.kubevirt.io", "MigrationPolicy"): "migration-policy-validator.kubevirt.io",
    ("pool.kubevirt.io", "VirtualMachinePool"): "virtualmachinepool-validator.kubevirt.io",
}


def validator(group: str, kind: str, *, updates: bool) -> str:
    """The webhook that judges objects of a kind; empty where the kind is not one of KubeVirt's or CDI's."""
    if not is_of_kubevirt(group):
        return ""
    regular = f"{kind.lower()}-validate.{group}" if group == _CDI else f"{kind.lower()}-validator.{group}"
    return _NAMES.get((group, kind), regular).format(operation="update" if updates else "create")


def denial(webhook: str, findings: Sequence[Finding]) -> Failure:
    """The failure of an object that rules refuse. It names no object: kubectl prints `The request is invalid: ...`."""
    said = ", ".join(each.words or each.full_message for each in findings)
    causes = [StatusCause(each.cause.value, each.message, each.field) for each in findings]
    return Failure(422, "Invalid", f'admission webhook "{webhook}" denied the request: {said}', causes=causes)
