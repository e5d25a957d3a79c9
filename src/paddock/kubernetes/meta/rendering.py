"""Choices of the caller of a translation; everything else follows from the objects."""

import msgspec


class Rendering(msgspec.Struct, frozen=True, kw_only=True):
    """Choices of an installation. The defaults are the product's."""

    # value of the label app.kubernetes.io/managed-by
    product: str = "paddock"
    # of the machines, where an object does not say it
    architecture: str = "amd64"
    # keep a dialect's literal output where our default departs from it (`render --target seed`)
    literal: bool = False
    # the StorageClass that "default" stands for, when it is known
    default_storage_class: str | None = None
    # Vitistack: second octet of generated MAC addresses, and the field that says a machine runs
    mac_set: str = "12"
    power_field: str = "running"
    # VirtRigaud: name of the Provider that machines read from KubeVirt are given
    provider: str = "kubevirt"
