"""The targets of kinds by their names, for objects that are read as plain data."""

from collections.abc import Mapping
from functools import cache

from paddock.base.jsondata import Data
from paddock.kubernetes import catalog
from paddock.kubernetes.client.target import Target, plain
from paddock.kubernetes.schema.dialect import KindId
from paddock.kubernetes.schema.kind import KindFacts

# The kinds of others that no dialect declares: version, plural, and whether their objects lie in namespaces.
_UNDECLARED = {
    ("", "Endpoints"): ("v1", "endpoints", True),
    ("", "LimitRange"): ("v1", "limitranges", True),
    ("", "Node"): ("v1", "nodes", False),
    ("", "PersistentVolume"): ("v1", "persistentvolumes", False),
    ("", "Pod"): ("v1", "pods", True),
    ("", "ResourceQuota"): ("v1", "resourcequotas", True),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): ("v1", "validatingadmissionpolicies", False),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): ("v1", "validatingadmissionpolicybindings", False),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): ("v1", "customresourcedefinitions", False),
    ("apps", "Deployment"): ("v1", "deployments", True),
    ("authorization.k8s.io", "SubjectAccessReview"): ("v1", "subjectaccessreviews", False),
    ("discovery.k8s.io", "EndpointSlice"): ("v1", "endpointslices", True),
    ("networking.k8s.io", "Ingress"): ("v1", "ingresses", True),
    ("networking.k8s.io", "NetworkPolicy"): ("v1", "networkpolicies", True),
    ("rbac.authorization.k8s.io", "Role"): ("v1", "roles", True),
    ("rbac.authorization.k8s.io", "RoleBinding"): ("v1", "rolebindings", True),
    ("route.openshift.io", "Route"): ("v1", "routes", True),
    ("scheduling.k8s.io", "PriorityClass"): ("v1", "priorityclasses", False),
    ("storage.k8s.io", "CSIStorageCapacity"): ("v1", "csistoragecapacities", True),
}


@cache
def kind_target(group: str, kind: str, version: str = "") -> Target[Data]:
    """Return the target of a kind in its stored version, or in another one. A declared kind is not loaded."""
    if (group, kind) in _UNDECLARED:
        known, plural, namespaced = _UNDECLARED[group, kind]
        return plain(group, version or known, plural, kind, namespaced=namespaced)
    facts = _declared()[group, kind]
    return Target(group, version or facts.storage_version, facts.plural, kind, dict, facts.namespaced, facts.status)


@cache
def _declared() -> Mapping[KindId, KindFacts]:
    return {(each.group, each.kind): each for each in catalog.facts()}
