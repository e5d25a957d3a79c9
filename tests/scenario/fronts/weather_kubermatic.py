"""The moves of users with Kubermatic's forms in front of a cluster, for trials."""

from paddock.dialects.kubermatic.controllers import controller
from paddock.dialects.kubermatic.controllers.settings import KubermaticSettings
from tests.scenario.fronts.trial import SWEEP_SECONDS, Dialect, below, merge, put, remove

_MACHINES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
_SOURCES = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datasources"
_POOLS = "/apis/pool.kubevirt.io/v1beta1/namespaces/default/virtualmachinepools"
_SECRETS = "/api/v1/namespaces/default/secrets"


def _source(url: str) -> dict[str, object]:
    http = {"url": url, "secretRef": "login"}
    return {
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "DataSource",
        "metadata": {"name": "linux"},
        "spec": {"source": {"http": http}},
    }


_LOGIN = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"accessKeyId": "a", "secretKey": "b"}}


def _template(disk: str) -> dict[str, object]:
    reference = {"kind": "DataSource", "name": "linux", "apiGroup": "cdi.kubevirt.io"}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": disk}, "spec": {"sourceRef": reference, "pvc": claim}}


def _instance(disk: str) -> dict[str, object]:
    return {
        "domain": {"memory": {"guest": "1Gi"}, "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}},
        "volumes": [{"name": "root", "dataVolume": {"name": disk}}],
    }


def _machine(name: str) -> dict[str, object]:
    """One with a disk of its own."""
    disk = f"{name}-disk"
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": {"runStrategy": "Always", "dataVolumeTemplates": [_template(disk)], "template": {"spec": _instance(disk)}},
    }


_POOL = {
    "apiVersion": "pool.kubevirt.io/v1beta1",
    "kind": "VirtualMachinePool",
    "metadata": {"name": "many"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"of": "many"}},
        "virtualMachineTemplate": {
            "metadata": {"labels": {"of": "many"}},
            "spec": {"runStrategy": "Always", "dataVolumeTemplates": [_template("disk")], **_instance("disk")},
        },
    },
}
_URL = "https://images.example.com/linux.qcow2"

KUBERMATIC = Dialect(
    wire=lambda front, back, _: controller.wire(front, back, KubermaticSettings(resync_seconds=SWEEP_SECONDS)),
    setting=(below(put(_SECRETS, _LOGIN)), put(_SOURCES, _source(_URL)), put(_MACHINES, _machine("web")), put(_POOLS, _POOL)),
    moves=(
        put(_MACHINES, _machine("other")),
        remove(f"{_MACHINES}/web"),
        put(_MACHINES, _machine("web")),
        remove(f"{_POOLS}/many"),
        put(_POOLS, _POOL),
        merge(f"{_POOLS}/many", {"spec": {"replicas": 4}}),
        merge(f"{_POOLS}/many", {"spec": {"paused": True}}),
        merge(f"{_MACHINES}/web", {"spec": {"runStrategy": "Halted"}}),
        merge(f"{_MACHINES}/web", {"spec": {"template": {"spec": {"domain": {"cpu": {"cores": 2}}}}}}),
        merge(f"{_MACHINES}/web", {"metadata": {"labels": {"team": "a"}}}),
        below(remove(f"{_SECRETS}/login")),
        below(put(_SECRETS, _LOGIN)),
        below(merge(f"{_SECRETS}/login", {"stringData": {"secretKey": "c"}})),
    ),
    mending=(below(put(_SECRETS, _LOGIN)), put(_SOURCES, _source(_URL)), put(_MACHINES, _machine("web")), put(_POOLS, _POOL)),
    kinds=("/apis/cdi.kubevirt.io/v1beta1/datasources", "/apis/pool.kubevirt.io/v1beta1/virtualmachinepools"),
    apart=True,
)
