"""The objects of a tenant. Pure."""

import base64

import msgspec

from paddock.base import cpushares, ownnames, quantity
from paddock.base.errors import Terminal
from paddock.base.jsondata import Data
from paddock.kubernetes.client.access import Access

ACCOUNT = TOKEN = "tenant"
_MANAGED: Data = {"app.kubernetes.io/managed-by": "paddock"}
_RBAC = "rbac.authorization.k8s.io"
# The title of each share in a table, and its name in the quota.
SHARES = (
    ("CPU", "requests.cpu/vmi"),
    ("MEMORY", "requests.memory/vmi"),
    ("STORAGE", "requests.storage"),
    ("MACHINES", "count/virtualmachines.kubevirt.io"),
)


class WrongShare(Terminal):
    """An amount that no quota takes."""


class TenantShares(msgspec.Struct, frozen=True):
    """The amounts that a tenant may have."""

    cpu: str
    memory: str
    storage: str
    machines: str
    # the share in the processors of a busy host; empty: that of everybody
    cpu_shares: str = ""

    def hard(self) -> Data:
        """Return the bounds of the quota. Raises `WrongShare`."""
        amounts = (self.cpu, self.memory, self.storage, self.machines)
        for (title, _), amount in zip(SHARES, amounts, strict=True):
            if not quantity.is_quantity(amount) or quantity.parse(amount) < 0:
                raise WrongShare(f'--{title.lower()}: "{amount}" is no amount', fix="write a number such as 4, or a size such as 8Gi")
        return {name: quantity.respelled(amount) for (_, name), amount in zip(SHARES, amounts, strict=True)}

    def annotations(self) -> dict[str, str]:
        """Return the annotations of the namespace. Raises `WrongShare`."""
        if self.cpu_shares and not cpushares.is_share(self.cpu_shares):
            raise WrongShare(f'--cpu-shares: "{self.cpu_shares}" {cpushares.RULE}')
        return {cpushares.ANNOTATION: self.cpu_shares} if self.cpu_shares else {}


def objects(name: str, shares: TenantShares) -> list[Data]:
    """Return the objects of a tenant, in the order in which they are made.

    The Secret gets a token of the ServiceAccount, which ends with it. Machines of other namespaces reach none of this one; names and the
    way out are open.
    """
    return [
        _object("v1", "Namespace", name, labels={ownnames.TENANT.name: name}, annotations=shares.annotations()),
        _object("v1", "ServiceAccount", ACCOUNT, name),
        {
            **_object("v1", "Secret", TOKEN, name, annotations={"kubernetes.io/service-account.name": ACCOUNT}),
            "type": "kubernetes.io/service-account-token",
        },
        {
            **_object(f"{_RBAC}/v1", "Role", "tenant", name),
            "rules": [{"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": ["get", "list", "watch"]}],
        },
        _binding("tenant", name, "Role", "tenant"),
        _binding("tenant-edit", name, "ClusterRole", "edit"),
        {**_object("v1", "ResourceQuota", "tenant", name), "spec": {"hard": shares.hard()}},
        {
            **_object("networking.k8s.io/v1", "NetworkPolicy", "tenant", name),
            "spec": {
                "podSelector": {},
                "policyTypes": ["Ingress", "Egress"],
                "ingress": [{"from": [{"podSelector": {}}]}],
                "egress": [{}],
            },
        },
    ]


def kubeconfig(name: str, access: Access, secret: Data) -> Data:
    """Return the kubeconfig of a tenant's user, from the Secret with its token. Raises `KeyError` while there is none."""
    token = base64.b64decode(secret["data"]["token"]).decode()
    cluster: Data = {"server": access.server}
    if access.authority:
        cluster["certificate-authority-data"] = base64.b64encode(access.authority).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": name}}],
        "current-context": name,
    }


def _object(
    api_version: str, kind: str, name: str, namespace: str = "", *, labels: Data | None = None, annotations: Data | None = None
) -> Data:
    metadata: Data = {"name": name, "labels": {**_MANAGED, **(labels or {})}}
    if namespace:
        metadata["namespace"] = namespace
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _binding(name: str, namespace: str, kind: str, role: str) -> Data:
    return {
        **_object(f"{_RBAC}/v1", "RoleBinding", name, namespace),
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    }
