"""The policy that refuses to delete protected machines, as the operator of KubeVirt's SSP installs one.

It covers the machines of every dialect. Whoever deletes it has no protection; it is made once in the life of a directory.
"""

from collections.abc import Iterator

from paddock.base import ownnames
from paddock.base.jsondata import Data
from paddock.kubernetes import catalog
from paddock.kubernetes.client.target import Target
from paddock.kubernetes.targets import kind_target

LABEL, VALUE = "kubevirt.io/vm-delete-protection", "True"
EDITION, VERSION = ownnames.DELETE_PROTECTION.name, "1"
NAME = "kubevirt-vm-deletion-protection"
_GROUP = "admissionregistration.k8s.io"
POLICIES: Target[Data] = kind_target(_GROUP, "ValidatingAdmissionPolicy")
BINDINGS: Target[Data] = kind_target(_GROUP, "ValidatingAdmissionPolicyBinding")
# Who deletes an instance of KubeVirt alone ends its guest; the machine stays.
_MACHINES = {each.machines[0].group: each.machines[0].plural for each in (catalog.dialect(catalog.HUB), *catalog.fronts())}
_UNPROTECTED = (
    f"!has(oldObject.metadata.labels) || !('{LABEL}' in oldObject.metadata.labels) || oldObject.metadata.labels['{LABEL}'] != '{VALUE}'"
)
_MESSAGE = f"the machine is protected from deletion; take the label {LABEL} off first (paddock unprotect)"


def objects() -> Iterator[tuple[Target[Data], Data]]:
    """Yield the policy and its binding."""
    rules = [
        {"apiGroups": [group], "apiVersions": ["*"], "operations": ["DELETE"], "resources": [plural]} for group, plural in _MACHINES.items()
    ]
    spec: Data = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": _UNPROTECTED, "message": _MESSAGE, "reason": "Forbidden"}],
    }
    yield POLICIES, {"apiVersion": POLICIES.api_version, "kind": POLICIES.kind, "metadata": {"name": NAME}, "spec": spec}
    binding: Data = {"policyName": NAME, "validationActions": ["Deny"]}
    yield BINDINGS, {"apiVersion": BINDINGS.api_version, "kind": BINDINGS.kind, "metadata": {"name": NAME}, "spec": binding}
