"""The roles of Kubernetes' controllers, so that those that run beside this server may do their work. Facts of upstream's bootstrap policy.

A rule is `verbs groups resources`, with `=` and names behind where it is about some objects only. The core group is `core`, and paths
outside of groups begin with a slash.
"""

from collections.abc import Iterator

from paddock.base.jsondata import Data

PREFIX = "system:controller:"
MANAGER = "system:kube-controller-manager"
_RBAC = "rbac.authorization.k8s.io"
_EVENTS = "create,patch,update core,events.k8s.io events"
_RULES: dict[str, tuple[str, ...]] = {
    "attachdetach-controller": (
        "list,watch core persistentvolumeclaims,persistentvolumes",
        "get,list,watch core nodes",
        "patch,update core nodes/status",
        "list,watch core pods",
        _EVENTS,
        "create,delete,get,list,watch storage.k8s.io volumeattachments",
        "get,list,watch storage.k8s.io csidrivers",
        "get,list,watch storage.k8s.io csinodes",
    ),
    "certificate-controller": (
        "delete,get,list,watch certificates.k8s.io certificatesigningrequests",
        "update certificates.k8s.io certificatesigningrequests/approval,certificatesigningrequests/status",
        "approve certificates.k8s.io signers=kubernetes.io/kube-apiserver-client-kubelet",
        (
            "sign certificates.k8s.io signers=kubernetes.io/kube-apiserver-client,kubernetes.io/kube-apiserver-client-kubelet,"
            "kubernetes.io/kubelet-serving,kubernetes.io/legacy-unknown"
        ),
        "create authorization.k8s.io subjectaccessreviews",
        _EVENTS,
    ),
    "clusterrole-aggregation-controller": ("escalate,get,list,patch,update,watch rbac.authorization.k8s.io clusterroles",),
    "cronjob-controller": (
        "get,list,update,watch batch cronjobs",
        "create,delete,get,list,patch,update,watch batch jobs",
        "update batch cronjobs/status",
        "update batch cronjobs/finalizers",
        "delete,list,watch core pods",
        _EVENTS,
    ),
    "daemon-set-controller": (
        "get,list,watch apps,extensions daemonsets",
        "update apps,extensions daemonsets/status",
        "update apps,extensions daemonsets/finalizers",
        "list,watch core nodes",
        "create,delete,list,patch,watch core pods",
        "create core pods/binding",
        "create,delete,get,list,patch,update,watch apps controllerrevisions",
        _EVENTS,
    ),
    "deployment-controller": (
        "get,list,update,watch apps,extensions deployments",
        "update apps,extensions deployments/status",
        "update apps,extensions deployments/finalizers",
        "create,delete,get,list,patch,update,watch apps,extensions replicasets",
        "get,list,update,watch core pods",
        _EVENTS,
    ),
    "device-taint-eviction-controller": (
        "delete,get,list,watch core pods",
        "patch,update core pods/status",
        "get,list,watch resource.k8s.io resourceclaims",
        "get,list,watch resource.k8s.io resourceslices",
        "get,list,watch resource.k8s.io deviceclasses",
        _EVENTS,
    ),
    "disruption-controller": (
        "get,list,watch apps,extensions deployments",
        "get,list,watch apps,extensions replicasets",
        "get,list,watch core replicationcontrollers",
        "get,list,watch policy poddisruptionbudgets",
        "get,list,watch apps statefulsets",
        "update policy poddisruptionbudgets/status",
        "patch,update core pods/status",
        "get * */scale",
        _EVENTS,
    ),
    "endpoint-controller": (
        "get,list,watch core pods,services",
        "create,delete,get,list,update,watch core endpoints",
        "create core endpoints/restricted",
        _EVENTS,
    ),
    "endpointslice-controller": (
        "get,list,watch core nodes,pods,services",
        "update core services/finalizers",
        "create,delete,get,list,update,watch discovery.k8s.io endpointslices",
        _EVENTS,
    ),
    "endpointslicemirroring-controller": (
        "get,list,watch core endpoints,services",
        "update core services/finalizers",
        "update core endpoints/finalizers",
        "create,delete,get,list,update,watch discovery.k8s.io endpointslices",
        _EVENTS,
    ),
    "ephemeral-volume-controller": (
        "get,list,watch core pods",
        "update core pods/finalizers",
        "create,get,list,watch core persistentvolumeclaims",
        _EVENTS,
    ),
    "expand-controller": (
        "get,list,patch,update,watch core persistentvolumes",
        "patch,update core persistentvolumeclaims/status",
        "get,list,watch core persistentvolumeclaims",
        _EVENTS,
    ),
    "generic-garbage-collector": ("delete,get,list,patch,update,watch * *", _EVENTS),
    "horizontal-pod-autoscaler": (
        "get,list,watch autoscaling horizontalpodautoscalers",
        "update autoscaling horizontalpodautoscalers/status",
        "get,update * */scale",
        "list,watch core pods",
        "list,watch metrics.k8s.io pods",
        "get,list,watch custom.metrics.k8s.io *",
        "get,list,watch external.metrics.k8s.io *",
        _EVENTS,
    ),
    "job-controller": (
        "get,list,patch,update,watch batch jobs",
        "update batch jobs/status",
        "update batch jobs/finalizers",
        "create,delete,list,patch,watch core pods",
        _EVENTS,
    ),
    "legacy-service-account-token-cleaner": (
        "get core configmaps=kube-apiserver-legacy-service-account-token-tracking",
        "delete,patch core secrets",
    ),
    "namespace-controller": (
        "delete,get,list,watch core namespaces",
        "update core namespaces/finalize,namespaces/status",
        "delete,deletecollection,get,list,watch * *",
    ),
    "node-controller": (
        "delete,get,list,patch,update,watch core nodes",
        "patch,update core nodes/status",
        "patch,update core pods/status",
        "delete,get,list,watch core pods",
        _EVENTS,
    ),
    "persistent-volume-binder": (
        "create,delete,get,list,update,watch core persistentvolumes",
        "update core persistentvolumes/status",
        "get,list,update,watch core persistentvolumeclaims",
        "update core persistentvolumeclaims/status",
        "create,delete,get,list,watch core pods",
        "get,list,watch storage.k8s.io storageclasses",
        "list,watch core nodes",
        _EVENTS,
        "watch core events",
    ),
    "pod-garbage-collector": ("delete,list,watch core pods", "get,list,watch core nodes", "patch core pods/status"),
    "pv-protection-controller": ("get,list,update,watch core persistentvolumes", _EVENTS),
    "pvc-protection-controller": (
        "get,list,update,watch core persistentvolumeclaims",
        "update core persistentvolumeclaims/status",
        "get,list,watch core pods",
        _EVENTS,
    ),
    "replicaset-controller": (
        "get,list,update,watch apps,extensions replicasets",
        "update apps,extensions replicasets/status",
        "update apps,extensions replicasets/finalizers",
        "create,delete,list,patch,watch core pods",
        _EVENTS,
    ),
    "replication-controller": (
        "get,list,update,watch core replicationcontrollers",
        "update core replicationcontrollers/status",
        "update core replicationcontrollers/finalizers",
        "create,delete,list,patch,watch core pods",
        _EVENTS,
    ),
    "resource-claim-controller": (
        "get,list,watch core pods",
        "update core pods/finalizers",
        "create,delete,get,list,watch resource.k8s.io resourceclaims",
        "patch,update resource.k8s.io resourceclaims,resourceclaims/status",
        "patch,update core pods/status",
        _EVENTS,
        "patch,update resource.k8s.io resourceclaims/binding",
    ),
    "resourcequota-controller": ("list,watch * *", "update core resourcequotas/status", _EVENTS),
    "root-ca-cert-publisher": ("create,update core configmaps", _EVENTS),
    "route-controller": ("list,watch core nodes", "patch core nodes/status", _EVENTS),
    "selinux-warning-controller": (
        _EVENTS,
        "get,list,watch core persistentvolumes",
        "get,list,watch core persistentvolumeclaims",
        "get,list,watch core pods",
        "get,list,watch storage.k8s.io csidrivers",
    ),
    "service-account-controller": ("create core serviceaccounts", _EVENTS),
    "service-cidrs-controller": (
        "get,list,patch,update,watch networking.k8s.io servicecidrs",
        "patch,update networking.k8s.io servicecidrs/finalizers",
        "patch,update networking.k8s.io servicecidrs/status",
        "get,list,watch networking.k8s.io ipaddresses",
        _EVENTS,
    ),
    "service-controller": ("get,list,watch core services", "patch,update core services/status", "list,watch core nodes", _EVENTS),
    "statefulset-controller": (
        "list,watch core pods",
        "get,list,watch apps statefulsets",
        "update apps statefulsets/status",
        "update apps statefulsets/finalizers",
        "create,delete,get,patch,update core pods",
        "create,delete,get,list,patch,update,watch apps controllerrevisions",
        "create,get,list,watch core persistentvolumeclaims",
        "delete,update core persistentvolumeclaims",
        "update core pods/finalizers",
        _EVENTS,
    ),
    "ttl-after-finished-controller": ("delete,get,list,watch batch jobs", _EVENTS),
    "ttl-controller": ("list,patch,update,watch core nodes", _EVENTS),
    "validatingadmissionpolicy-status-controller": (
        "get,list,watch admissionregistration.k8s.io validatingadmissionpolicies",
        "get,patch,update admissionregistration.k8s.io validatingadmissionpolicies/status",
        _EVENTS,
    ),
    "volumeattributesclass-protection-controller": (
        "get,list,watch core persistentvolumeclaims",
        "get,list,watch core persistentvolumes",
        "get,list,update,watch storage.k8s.io volumeattributesclasses",
        _EVENTS,
    ),
}
_MANAGER_RULES = (
    _EVENTS,
    "create coordination.k8s.io leases",
    "get,update coordination.k8s.io leases=kube-controller-manager",
    "create core secrets,serviceaccounts",
    "delete core secrets",
    "get core configmaps,namespaces,secrets,serviceaccounts",
    "update core secrets,serviceaccounts",
    "create authentication.k8s.io tokenreviews",
    "create authorization.k8s.io subjectaccessreviews",
    "list,watch * *",
    "create core serviceaccounts/token",
)


def objects(meta: Data) -> Iterator[tuple[str, Data]]:
    """Return every role with its binding, each with the plural of its kind; `meta` is what all roles of the start carry."""
    for controller, rules in _RULES.items():
        subject = {"kind": "ServiceAccount", "name": controller, "namespace": "kube-system"}
        yield from _role(PREFIX + controller, rules, subject, meta)
    yield from _role(MANAGER, _MANAGER_RULES, {"kind": "User", "apiGroup": _RBAC, "name": MANAGER}, meta)


def _role(name: str, rules: tuple[str, ...], subject: Data, meta: Data) -> Iterator[tuple[str, Data]]:
    role: Data = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name, **meta}}
    yield "clusterroles", {**role, "rules": [_rule(text) for text in rules]}
    binding = {**role, "kind": "ClusterRoleBinding", "metadata": {"name": name, **meta}, "subjects": [subject]}
    yield "clusterrolebindings", {**binding, "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name}}


def _rule(text: str) -> Data:
    verbs, *rest = text.split(" ")
    if len(rest) == 1:
        return {"verbs": verbs.split(","), "nonResourceURLs": rest[0].split(",")}
    groups, resources = rest
    kinds, _, names = resources.partition("=")
    found: Data = {
        "apiGroups": ["" if each == "core" else each for each in groups.split(",")],
        "resources": kinds.split(","),
        "verbs": verbs.split(","),
    }
    return {**found, "resourceNames": names.split(",")} if names else found
