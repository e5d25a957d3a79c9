"""Faults as a cluster with KubeVirt and CDI tells of them: objects with the words that its controllers write, and no host of ours."""

from dataclasses import dataclass
from typing import Any

from tests.scenario.why.cluster import condition, made

Data = dict[str, Any]
KUBEVIRT, CDI = "kubevirt.io/v1", "cdi.kubevirt.io/v1beta1"
_WAITS = condition("Ready", "False", "GuestNotRunning", "Guest VM is not reported as running")
_READY = condition("Ready", "True", "")


@dataclass(frozen=True)
class Told:
    """`objects` are the cluster; the first is asked about. `blind` are kinds that may not be looked at."""

    name: str
    objects: tuple[Data, ...]
    cause: str
    of: str
    state: str = "fails"
    blind: tuple[str, ...] = ()


def machine(status: Data, spec: Data | None = None, **template: Any) -> Data:
    """A machine that is wanted to run."""
    return made("VirtualMachine", KUBEVIRT, "web", {"runStrategy": "Always", "template": {"spec": template}, **(spec or {})}, status)


def instance(status: Data, **spec: Any) -> Data:
    """Its instance."""
    return made("VirtualMachineInstance", KUBEVIRT, "web", spec, status)


def launched(status: Data) -> tuple[Data, ...]:
    """A machine that waits for its pod."""
    pod = made("Pod", "v1", "virt-launcher-web-x", {}, status, labels={"kubevirt.io/created-by": "uid-web"})
    starting = {"printableStatus": "Starting", "conditions": [_WAITS]}
    return machine(starting), instance({"phase": "Scheduling", "conditions": [_WAITS]}), pod


def unscheduled(text: str) -> tuple[Data, ...]:
    """A pod that no node takes."""
    return launched({"phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable", text)]})


def waiting(reason: str, message: str) -> tuple[Data, ...]:
    """A pod with a container that waits."""
    return launched(
        {"phase": "Pending", "containerStatuses": [{"name": "disk", "state": {"waiting": {"reason": reason, "message": message}}}]}
    )


def failing(text: str, reason: str = "FailedCreate") -> tuple[Data, ...]:
    """A machine whose controller could not do what it wanted."""
    return (machine({"printableStatus": "Stopped", "conditions": [condition("Failure", "True", reason, text)]}),)


def holding(reason: str, message: str) -> tuple[Data, ...]:
    """A machine whose instance is held back."""
    said = [condition("Synchronized", "False", reason, message)]
    return machine({"printableStatus": "Starting"}), instance({"phase": "Scheduling", "conditions": said})


def importing(text: str) -> tuple[Data, ...]:
    """A disk whose importer says this."""
    said = [condition("Running", "False", "Error", text), condition("Ready", "False", "Error")]
    templates = {"dataVolumeTemplates": [{"metadata": {"name": "web-root"}}]}
    root = made(
        "DataVolume", CDI, "web-root", {"source": {"http": {}}}, {"phase": "ImportInProgress", "conditions": said, "restartCount": 3}
    )
    volumes = [{"name": "root", "dataVolume": {"name": "web-root"}}]
    return machine({"printableStatus": "DataVolumeError"}, templates, volumes=volumes), root


def running(status: Data | None = None, vm: Data | None = None) -> tuple[Data, ...]:
    """A machine that runs."""
    ready = {"printableStatus": "Running", "conditions": [_READY], **(vm or {})}
    return machine(ready), instance({"phase": "Running", "conditions": [_READY], **(status or {})})


def _vitistack(reason: str, message: str) -> Data:
    status = {"phase": "Pending", "conditions": [condition("Ready", "False", reason, message)]}
    return made("Machine", "vitistack.io/v1alpha1", "web", {"template": "small"}, status)


def _stakater(reason: str, message: str) -> Data:
    said = [condition("Synced", "Unknown", reason, message), condition("Ready", "False", reason, message)]
    return made("VirtualMachine", "infrastructure.stakater.com/v1", "web", {"parameters": {}}, {"conditions": said})


def _late() -> Data:
    return {**made("StorageClass", "storage.k8s.io/v1", "late"), "volumeBindingMode": "WaitForFirstConsumer"}


_UNSURE = condition("Ready", "False", "PodConditionMissing", "the pod does not say")
_SILENT = condition("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
_PLUGGING = {"name": "data", "phase": "Pending", "reason": "VolumePending", "message": "PVC data is not bound yet"}
_POD, _GUEST, _MACHINE, _ROOT = "Pod virt-launcher-web-x", "VirtualMachineInstance web", "VirtualMachine web", "DataVolume web-root"
_WEBHOOK = 'admission webhook "policy.example.com" denied the request: machines need an owner label'
_FORBIDDEN = (
    'virtualmachineinstances.kubevirt.io is forbidden: User "system:serviceaccount:kubevirt:kubevirt-controller" cannot create resource '
    '"virtualmachineinstances" in API group "kubevirt.io" in the namespace "default"'
)
_DENIED = 'admission webhook "virtualmachine-validator.kubevirt.io" denied the request: '
_CONFLICT = "VM field(s) spec.template.spec.domain.cpu.cores conflicts with selected instance type"
_GET = 'Unable to connect to http data source: Get "https://images.example/a.qcow2": '
_SMALL = (
    "Unable to process data: Virtual image size 21474836480 is larger than the reported available storage 1073741824. "
    "A larger PVC is required."
)
TOLD: tuple[Told, ...] = (
    Told("no KVM on any node", unscheduled("0/3 nodes are available: 3 Insufficient devices.kubevirt.io/kvm."), "kvm-missing", _POD),
    Told("no memory", unscheduled("0/3 nodes are available: 3 Insufficient memory. preemption: 0/3"), "no-memory", _POD),
    Told("no CPUs", unscheduled("0/3 nodes are available: 3 Insufficient cpu."), "no-cpus", _POD),
    Told("no GPU", unscheduled("0/3 nodes are available: 3 Insufficient nvidia.com/TU104GL_Tesla_T4."), "device-missing", _POD),
    Told(
        "a volume in another zone",
        unscheduled("0/3 nodes are available: 3 node(s) had volume node affinity conflict."),
        "volume-elsewhere",
        _POD,
    ),
    Told(
        "no such image",
        waiting("ImagePullBackOff", 'Back-off pulling image "quay.io/a/b:1": rpc error: code = NotFound desc = manifest unknown'),
        "image-missing",
        _POD,
    ),
    Told(
        "a private registry",
        waiting("ErrImagePull", "pull access denied, repository does not exist or may require authorization: unauthorized"),
        "image-credentials",
        _POD,
    ),
    Told(
        "a network plug-in that fails",
        holding("FailedCreatePodSandBox", "error adding container to network: no bridge br1"),
        "network-card-failed",
        _GUEST,
    ),
    Told("a webhook that refuses", failing(_WEBHOOK), "webhook-refused", _MACHINE),
    Told("a controller that may not", failing(_FORBIDDEN), "not-allowed", _MACHINE),
    Told("an instancetype that conflicts", failing(_CONFLICT), "instancetype-conflict", _MACHINE),
    Told("a webhook of KubeVirt's that refuses a conflict", failing(f"{_DENIED}{_CONFLICT}"), "instancetype-conflict", _MACHINE),
    Told("a webhook of KubeVirt's that refuses", failing(f"{_DENIED}spec.volumes is odd"), "refused-invalid", _MACHINE),
    Told(
        "a preference that asks for more",
        failing("insufficient CPU resources of 1 vCPU provided by instance type, preference requires 2 vCPU"),
        "instancetype-conflict",
        _MACHINE,
    ),
    Told("a host path", holding("HostDiskNotAllowed", "volume root: /etc/disk is in no directory"), "host-path-forbidden", _GUEST),
    Told("a directory that is not shared", holding("HostPathNotAllowed", "volume src (/etc) cannot be shared"), "share-forbidden", _GUEST),
    Told("a shared directory that is gone", holding("HostPathNotFound", "volume src (/src) cannot be shared"), "share-missing", _GUEST),
    Told("no such host", importing(f"{_GET}dial tcp: lookup images.example on 10.96.0.10:53: no such host"), "image-server-unknown", _ROOT),
    Told(
        "an unknown authority",
        importing(f"{_GET}tls: failed to verify certificate: x509: certificate signed by unknown authority"),
        "image-server-certificate",
        _ROOT,
    ),
    Told(
        "404",
        importing("Unable to connect to http data source: expected status code 200, got 404. Status: 404 Not Found"),
        "image-missing",
        _ROOT,
    ),
    Told("an image that is too large", importing(_SMALL), "image-too-large", _ROOT),
    Told(
        "a host that does not answer",
        (
            *running({"conditions": [_UNSURE], "nodeName": "n1"}, {"conditions": [_UNSURE]}),
            made("Node", "v1", "n1", {}, {"conditions": [_SILENT]}),
        ),
        "host-not-ready",
        "Node n1",
    ),
    Told("nobody looks after it", (machine({}),), "nobody-cares", _MACHINE),
    Told("a volume that is not plugged in", running({"volumeStatus": [_PLUGGING]}), "volume-not-plugged", _GUEST, state="notice"),
    Told(
        "no class is the default",
        (made("PersistentVolumeClaim", "v1", "data", {}, {"phase": "Pending"}), made("StorageClass", "storage.k8s.io/v1", "slow")),
        "storageclass-default-missing",
        "PersistentVolumeClaim data",
    ),
    Told(
        "Vitistack: no class is the default",
        (_vitistack("StorageClassNotFound", "there is no default storage class; make one the default"),),
        "storageclass-missing",
        "Machine web",
    ),
    Told("Vitistack: no KubeVirt", (_vitistack("KubeVirtApiError", "KubeVirt is not installed"),), "api-missing", "Machine web"),
    Told(
        "Stakater: a binding that is not registered",
        (_stakater("BindingUnavailable", "the network binding plugin l2bridge is not registered"),),
        "binding-unknown",
        "Stakater VirtualMachine web",
    ),
    Told(
        "a copy without its source",
        (made("DataVolume", CDI, "copy", {"source": {"pvc": {"name": "base"}}}, {"phase": "CloneScheduled"}),),
        "disk-missing",
        "PersistentVolumeClaim base",
    ),
    Told(
        "a disk that waits for a machine",
        (made("DataVolume", CDI, "disk", {"source": {"blank": {}}}, {"phase": "WaitForFirstConsumer"}),),
        "waits-for-consumer",
        "DataVolume disk",
        state="waits",
    ),
    Told(
        "a claim that waits for a machine",
        (made("PersistentVolumeClaim", "v1", "data", {"storageClassName": "late"}, {"phase": "Pending"}), _late()),
        "waits-for-consumer",
        "PersistentVolumeClaim data",
        state="waits",
    ),
    Told(
        "Vitistack: a network without its definition",
        (made("NetworkConfiguration", "vitistack.io/v1alpha1", "lan", {}, {"ready": False, "connectedMachines": ["default/web"]}),),
        "network-undefined",
        "NetworkConfiguration lan",
    ),
    Told("a disk that may not be looked at", importing("x")[:1], "cannot-look", _MACHINE, blind=("DataVolume", "PersistentVolumeClaim")),
)
