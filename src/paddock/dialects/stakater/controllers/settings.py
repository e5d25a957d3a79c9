"""Settings of Stakater's machines, fixed when the program starts."""

import msgspec


class StakaterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Choices, each with its default."""

    # objects that are reconciled at a time
    workers: int = 5
    # every object is reconciled again this often
    resync_seconds: float = 60.0
    # what a card gets whose binding plug-in is not registered: masquerade (bridge on a network by a definition), or fail
    binding_fallback: str = "masquerade"
    # plug-ins that the backend has without a registration in the KubeVirt object
    bindings: frozenset[str] = frozenset()
    # make the Role and the RoleBinding that copying an image out of another namespace needs
    manage_clone_rbac: bool = False
    # value of the label app.kubernetes.io/managed-by
    product: str = "paddock"
    # of the machines
    architecture: str = "amd64"
