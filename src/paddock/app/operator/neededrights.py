"""The rights that an operator needs, by its settings.

`rules/` declares them, and each dialect those of its controllers in `rights.yaml`. The charts grant them from the same files.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from paddock.app.operator.settings import OperatorSettings
from paddock.kubernetes import catalog
from paddock.kubernetes.client.errors import RefusedRight

# The operator's own account, in words: it need not know its name to say what to grant.
_ACCOUNT = "the operator"
_RULES, _RIGHTS = Path(__file__).parent / "rules", "rights.yaml"


def of(settings: OperatorSettings) -> Mapping[RefusedRight, str]:
    """Return the rights in the cluster that an operator with these settings needs, and for each what needs it."""
    wanted = [(name, "", name) for name in sorted(settings.fronts.wanted)]
    if settings.fronts.manage_clone_rbac:
        wanted.append(("clones", "", "--manage-clone-rbac"))
    if settings.security is not None:
        wanted.append(("metrics", "", "--metrics-secure"))
    if settings.lease.wanted and settings.namespace:
        wanted.append(("leases", settings.namespace, "--leader-elect"))
    users: dict[RefusedRight, list[str]] = {}
    for name, namespace, user in wanted:
        for rule in rules(name):
            for right in _rights(rule, namespace):
                users.setdefault(right, []).append(user)
    return {right: ", ".join(dict.fromkeys(found)) for right, found in users.items()}


def rules(name: str) -> list[dict[str, Any]]:
    """Return rules of a role, as RBAC writes them."""
    declared: list[dict[str, Any]] = yaml.load(roles()[name].read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return declared


@cache
def roles() -> Mapping[str, Path]:
    """Return the file of each role's rules."""
    of_dialects = {name: catalog.folder(name) / _RIGHTS for name in catalog.DIALECTS}
    return {path.stem: path for path in _RULES.glob("*.yaml")} | {name: path for name, path in of_dialects.items() if path.exists()}


def _rights(rule: Mapping[str, Any], namespace: str) -> Iterator[RefusedRight]:
    for group in rule["apiGroups"]:
        for path in rule["resources"]:
            resource, _, subresource = path.partition("/")
            for verb in rule["verbs"]:
                for name in rule.get("resourceNames") or ("",):
                    yield RefusedRight(_ACCOUNT, verb, group, resource, subresource, namespace, name)
