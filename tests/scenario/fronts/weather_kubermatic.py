"""What users do with Kubermatic's forms in front of a cluster, for trials."""

from paddock.controllers.kubermatic import controller
from paddock.controllers.kubermatic.settings import Settings
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
_TEMPLATE = {
    "metadata": {"name": "disk"},
    "spec": {
        "sourceRef": {"kind": "DataSource", "name": "linux", "apiGroup": "cdi.kubevirt.io"},
        "pvc": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    },
}
_INSTANCE = {
    "domain": {"memory": {"guest": "1Gi"}, "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}},
    "volumes": [{"name": "root", "dataVolume": {"name": "disk"}}],
}
_MACHINE = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachine",
    "metadata": {"name": "web"},
    "spec": {"runStrategy": "Always", "dataVolumeTemplates": [_TEMPLATE], "template": {"spec": _INSTANCE}},
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
            "spec": {"runStrategy": "Always", "dataVolumeTemplates": [_TEMPLATE], **_INSTANCE},
        },
    },
}
_URL = "https://images.example.com/linux.qcow2"

KUBERMATIC = Dialect(
    wire=lambda front, back: controller.wire(front, back, Settings(resync_seconds=SWEEP_SECONDS)),
    setting=(below(put(_SECRETS, _LOGIN)), put(_SOURCES, _source(_URL)), put(_MACHINES, _MACHINE), put(_POOLS, _POOL)),
    moves=(
        put(_MACHINES, {**_MACHINE, "metadata": {"name": "other"}}),
        remove(f"{_MACHINES}/web"),
        put(_MACHINES, _MACHINE),
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
    mending=(below(put(_SECRETS, _LOGIN)), put(_SOURCES, _source(_URL)), put(_MACHINES, _MACHINE), put(_POOLS, _POOL)),
    kinds=("/apis/cdi.kubevirt.io/v1beta1/datasources", "/apis/pool.kubevirt.io/v1beta1/virtualmachinepools"),
    apart=True,
)
