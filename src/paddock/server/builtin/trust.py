"""Recognition of KubeVirt's own controllers: what KubeVirt reserves for itself is theirs (docs/spec/kubevirt.md 2.10)."""

from paddock.server.resources.strategy import WriteContext

_NAMESPACE = "system:serviceaccount:kubevirt:"
# As whom Paddock's controllers ask in the same process.
CONTROLLER = f"{_NAMESPACE}kubevirt-controller"
CONTROLLER_GROUPS = ("system:serviceaccounts", "system:serviceaccounts:kubevirt", "system:authenticated", "system:masters")
_TRUSTED = frozenset((CONTROLLER, f"{_NAMESPACE}kubevirt-handler", f"{_NAMESPACE}kubevirt-apiserver", f"{_NAMESPACE}kubevirt-operator"))


def is_controller(user: str) -> bool:
    """Return whether a user is one of KubeVirt's controllers."""
    return user in _TRUSTED


def is_trusted(context: WriteContext) -> bool:
    """Return whether a write is a controller's own."""
    return is_controller(context.user)
