"""The right to copy a golden image out of another namespace: how its lack is recognized, and what grants it (4.6)."""

from collections.abc import Iterable
from typing import Any

import yaml

from paddock.dialects.stakater.rules import MANAGED_BY

Data = dict[str, Any]
GROUP = "rbac.authorization.k8s.io"
ROLE = "paddock-clone-source"
# What CDI and KubeVirt say, and Paddock's own server after them.
_DENIAL = "insufficient permissions in clone source namespace"


def denial(texts: Iterable[str | None]) -> str:
    """The first that says that a copy is not allowed; empty when none does."""
    return next((text for text in texts if text and _DENIAL in text), "")


def binding_name(namespace: str) -> str:
    """The binding for the machines of a namespace."""
    return f"{ROLE}-{namespace}"


def manifests(source: str, namespace: str, product: str) -> tuple[Data, Data]:
    """A Role in the namespace of the image, and its binding to the default service account of the machine's."""
    labels = {MANAGED_BY: product}
    role: Data = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Role",
        "metadata": {"name": ROLE, "namespace": source, "labels": labels},
        "rules": [{"apiGroups": ["cdi.kubevirt.io"], "resources": ["datavolumes/source"], "verbs": ["create"]}],
    }
    binding: Data = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": binding_name(namespace), "namespace": source, "labels": labels},
        "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": ROLE},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
    }
    return role, binding


def advice(said: str, source: str, namespace: str, product: str) -> str:
    """What the condition says: the refusal, and what to apply."""
    documents = "---\n".join(yaml.safe_dump(each, sort_keys=False) for each in manifests(source, namespace, product))
    return f"{said}\nApply these two objects, or let the controller make them (paddock operator --manage-clone-rbac):\n{documents}"
