"""One script for both backends: every example is made, applied again, tampered with, changed and deleted, all side by side.

Each example lives in a namespace of its own. After each step everything settles, and what there is then is kept without what is
another in every run: identities, revisions, times.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import yaml

from paddock.kubernetes.client.target import Target
from paddock.kubernetes.meta.patch import apply_merge_patch
from tests.reference.client import MERGE_PATCH, Api, Json, Kubectl
from tests.reference.operators.others import CONFIGURATIONS, GENERATED, STAKATER, VITISTACK
from tests.scenario.fronts.player import INSTANCES

# Nothing has moved for so long: everything has settled. Longer than the operator's interval, so that a sweep is in it.
QUIET_SECONDS = 3.0
INTERVAL = "1s"
_PATIENCE = 600.0
_FLEETING = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
# Addresses and ports are given out as they come; whether an ingress has a mode depends on the release of Kubernetes.
_TIMES = ("lastTransitionTime", "lastUpdated", "resourceVersion", "observedGeneration", "clusterIP", "clusterIPs", "nodePort", "ipMode")
_GENERATED_MAC = re.compile(r"02:12(:[0-9a-f]{2}){4}")
# What kubectl notes, and what the embedded server notes of who made a DataVolume.
_NOTES = ("kubectl.kubernetes.io/last-applied-configuration", "paddock.dev/made-by")
# Kinds without a namespace.
_WIDE = ("MachineClass",)
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Example:
    """A user's manifest, and a later change of it."""

    name: str
    front: Target[Any]
    dialect: str
    file: str
    change: Json
    manager: str
    more: Sequence[Json] = ()

    def documents(self) -> list[Json]:
        """The documents, those with a namespace in the example's own."""
        text = (files(f"paddock.dialects.{self.dialect}") / "examples" / f"{self.file}.yaml").read_text()
        found = [*self.more, *yaml.safe_load_all(text)]
        return [each if each["kind"] in _WIDE else {**each, "metadata": {**each["metadata"], "namespace": self.name}} for each in found]

    def machine(self) -> str:
        """The name of the front object."""
        return str(next(each["metadata"]["name"] for each in self.documents() if each["kind"] == self.front.kind))


def _vitistack(file: str, change: Json, *more: Json) -> Example:
    return Example(f"v-{file}", VITISTACK, "vitistack", file, change, "paddock-vitistack", more)


def _stakater(file: str, change: Json) -> Example:
    return Example(f"s-{file}", STAKATER, "stakater", file, change, "paddock-stakater")


EXAMPLES = (
    _vitistack("basic", {"spec": {"resources": {"cpu": {"cores": 3}}}}),
    _vitistack("overrides", {"spec": {"resources": {"memory": {"size": "12Gi"}}}}),
    _vitistack("networked", {"spec": {"bootOrder": ["network", "disk"]}}),
    _vitistack("cloud-init", {"spec": {"cloudInit": {"userData": "#cloud-config\npackages: [curl]\n"}}}),
    _vitistack("own-form", {"spec": {"cpu": {"cores": 2, "threadsPerCore": 1}}}),
    _stakater("minimal", {"spec": {"parameters": {"additionalLabels": {"team": "a"}}}}),
    _stakater("full", {"spec": {"parameters": {"service": {"enabled": False}}}}),
)


def setting() -> list[Json]:
    """Return the objects that the examples expect of a cluster."""

    def storage_class(name: str, annotations: Mapping[str, str] = {}) -> Json:
        return {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name, "annotations": dict(annotations)},
            "provisioner": "example.com/none",
            "allowVolumeExpansion": True,
        }

    images = "openshift-virtualization-os-images"
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "rhel9", "namespace": images},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}, "storageClassName": "usual"},
    }
    source = {
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "DataSource",
        "metadata": {"name": "rhel9", "namespace": images},
        "spec": {"source": {"pvc": {"name": "rhel9", "namespace": images}}},
    }
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": each}} for each in (images, *(e.name for e in EXAMPLES))]
    usual = storage_class("usual", {"storageclass.kubernetes.io/is-default-class": "true"})
    # The embedded server has this plug-in; a cluster says so.
    installation = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "KubeVirt",
        "metadata": {"name": "kubevirt", "namespace": images},
        "spec": {"configuration": {"network": {"binding": {"l2bridge": {"domainAttachmentType": "managedTap"}}}}},
    }
    classes = [usual, storage_class("fast-ssd"), storage_class("ocs-storagecluster-ceph-rbd")]
    return [*namespaces, *classes, claim, source, installation, *_cloning(images)]


def _cloning(namespace: str) -> Iterator[Json]:
    """The machines' ServiceAccounts may copy the images, and nobody else, as a cluster's administrator grants it."""
    metadata = {"name": "cloning", "namespace": namespace}
    rules = [{"apiGroups": ["cdi.kubevirt.io"], "resources": ["datavolumes/source"], "verbs": ["create"]}]
    subjects = [{"kind": "ServiceAccount", "name": "default", "namespace": each.name} for each in EXAMPLES]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "cloning"}
    yield {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": rules}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata}
    yield {**binding, "roleRef": role, "subjects": subjects}


READY_SOURCE = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": ""}]}}


@dataclass
class Script:
    """The script on one backend."""

    api: Api
    kubectl: Kubectl
    examples: Sequence[Example]
    # step -> what there is when it has settled
    steps: dict[str, dict[str, Json]] = field(default_factory=dict)
    _changed: bool = False

    # --- what users do ----------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Create the objects that the examples expect."""
        self.kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(setting()))
        path = "/apis/cdi.kubevirt.io/v1beta1/namespaces/openshift-virtualization-os-images/datasources/rhel9"
        for each in (f"{path}/status", path):
            if self.api.request("PATCH", each, READY_SOURCE, headers=MERGE_PATCH).ok:
                return

    def apply(self) -> None:
        """Apply every manifest, as it is by now."""
        for each in self.examples:
            self.kubectl.ok("apply", "-f", "-", stdin=self._manifest(each))

    def _manifest(self, example: Example) -> str:
        documents = example.documents()
        if self._changed:
            documents = [apply_merge_patch(each, example.change) if each["kind"] == example.front.kind else each for each in documents]
        return yaml.safe_dump_all(documents)

    def differs(self) -> dict[str, str]:
        """Return the `kubectl diff` of every manifest."""
        found = {}
        for each in self.examples:
            ran = self.kubectl.run("diff", "-f", "-", stdin=self._manifest(each))
            if ran.code:
                found[each.name] = ran.output + ran.errors
        return found

    def tamper(self) -> None:
        """Somebody takes labels that are ours off every generated object, and deletes every machine of KubeVirt."""
        for target, thing in self._generated():
            # A network that nobody manages would be the user's own.
            labels = [name for name in thing["metadata"].get("labels") or () if not name.endswith("/managed-by")]
            path = target.path(thing["metadata"]["namespace"], thing["metadata"]["name"])
            answer = self.api.request("PATCH", path, {"metadata": {"labels": dict.fromkeys(labels)}}, headers=MERGE_PATCH)
            assert answer.ok, answer.body
            if target.plural == "virtualmachines":
                assert self.api.request("DELETE", path).ok

    def change(self) -> None:
        """Users change what they want."""
        self._changed = True
        self.apply()

    def delete(self) -> None:
        """Users delete their machines, and nothing else."""
        for each in self.examples:
            self.kubectl.ok("delete", f"{each.front.plural}.{each.front.group}", each.machine(), "-n", each.name, "--wait=false")

    # --- what there is ----------------------------------------------------------------------------------------------------

    def settled(self, step: str) -> None:
        """Wait until nothing moves any more, and keep what there is."""
        self.steps[step] = {f"{kind} {namespace}/{name}": lasting(thing) for (kind, namespace, name), thing in self.rest().items()}

    def rest(self) -> dict[Key, Json]:
        """Everything there is when nothing moves any more."""
        end, since, last = time.monotonic() + _PATIENCE, time.monotonic(), self.everything()
        while time.monotonic() < since + QUIET_SECONDS:
            assert time.monotonic() < end, "it never comes to rest"
            time.sleep(0.3)
            now = self.everything()
            if now != last:
                since, last = time.monotonic(), now
        return last

    def everything(self) -> dict[Key, Json]:
        """Everything in the namespaces of the examples."""
        ours, found = {each.name for each in self.examples}, {}
        for target in (STAKATER, VITISTACK, CONFIGURATIONS, INSTANCES, *GENERATED):
            for thing in self.api.request("GET", target.path()).body.get("items", ()):
                metadata = thing["metadata"]
                if metadata["namespace"] in ours and metadata["name"] != "kube-root-ca.crt":
                    # Lists need not say it of each of their members.
                    named = {**thing, "apiVersion": target.api_version, "kind": target.kind}
                    found[target.qualified, metadata["namespace"], metadata["name"]] = named
        return found

    def revisions(self) -> dict[Key, str]:
        """The revision of everything."""
        return {key: thing["metadata"]["resourceVersion"] for key, thing in self.everything().items()}

    def _generated(self) -> Iterator[tuple[Target[Any], Json]]:
        """Yield the objects that operators applied."""
        managers, targets = {each.manager for each in self.examples}, {each.qualified: each for each in GENERATED}
        for (kind, _, _), thing in self.everything().items():
            applied = {each["manager"] for each in thing["metadata"].get("managedFields", ()) if each["operation"] == "Apply"}
            if kind in targets and applied & managers:
                yield targets[kind], thing

    def applied(self) -> dict[str, Any]:
        """Of every generated object, which fields each manager owns."""
        found = {}
        for target, thing in self._generated():
            metadata = thing["metadata"]
            owned = {
                (each["manager"], each["operation"], each.get("subresource", "")): _roughly(each["fieldsV1"])
                for each in metadata["managedFields"]
            }
            found[f"{target.qualified} {metadata['namespace']}/{metadata['name']}"] = owned
        return found


def lasting(value: Any, *, meta: bool = False) -> Any:
    """An object without what is another in every run."""
    if isinstance(value, dict):
        left_out, nested = (*_FLEETING, *_NOTES) if meta else _TIMES, ("metadata", "annotations", "ownerReferences")
        found = {key: lasting(each, meta=key in nested) for key, each in value.items() if key not in left_out}
        return {key: each for key, each in found.items() if key != "annotations" or each}
    if isinstance(value, list):
        return [lasting(each, meta=meta) for each in value]
    return _GENERATED_MAC.sub("02:12:generated", value) if isinstance(value, str) else value


def unlike(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Yield the places where two values differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys(), key=str):
            yield from unlike(one.get(key, "nothing"), other.get(key, "nothing"), f"{path} > {key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (this, that) in enumerate(zip(one, other, strict=True)):
            yield from unlike(this, that, f"{path} > {index}")
    elif one != other:
        yield f"{path}: {one!r} and {other!r}"


def _roughly(owned: Any) -> Any:
    """What is owned, without what depends on how a schema is written: lists as wholes or by item, maps beside their members."""
    if not isinstance(owned, dict) or any(key.startswith("k:{") for key in owned):
        return {}
    return {key: _roughly(each) for key, each in owned.items() if key != "."}
