"""The moves of users with Machines, for trials."""

from paddock.dialects.vitistack.controllers import controller
from paddock.dialects.vitistack.controllers.settings import VitistackSettings
from tests.scenario.fronts.trial import SWEEP_SECONDS, Dialect, merge, put, remove

_V = "/apis/vitistack.io/v1alpha1/namespaces/default"
_MACHINES, _NETWORKS = f"{_V}/machines", f"{_V}/networkconfigurations"
_VM = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines/web"
_SECRETS = "/api/v1/namespaces/default/secrets"
_API = {"apiVersion": "vitistack.io/v1alpha1"}
_CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "example.com/disks",
    "allowVolumeExpansion": True,
}
_NETWORK = {**_API, "kind": "NetworkConfiguration", "metadata": {"name": "lan"}, "spec": {"vlan": 100, "bridge": "br1"}}
_SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "told"}, "stringData": {"init": "#cloud-config\nhostname: web\n"}}
_MACHINE = {
    **_API,
    "kind": "Machine",
    "metadata": {"name": "web"},
    "spec": {
        "template": "small",
        "disks": [{"name": "data", "size": "10Gi"}],
        "networks": [{"name": "eth0", "networkName": "lan"}],
        "cloudInit": {"secretRef": {"name": "told", "key": "init"}},
    },
}

VITISTACK = Dialect(
    wire=lambda front, back, _: controller.wire(front, VitistackSettings(resync_seconds=SWEEP_SECONDS)),
    setting=(
        put("/apis/storage.k8s.io/v1/storageclasses", _CLASS),
        put(_NETWORKS, _NETWORK),
        put(_SECRETS, _SECRET),
        put(_MACHINES, _MACHINE),
    ),
    moves=(
        put(_MACHINES, _MACHINE),
        put(_MACHINES, {**_MACHINE, "metadata": {"name": "other"}}),
        remove(f"{_MACHINES}/web"),
        merge(f"{_MACHINES}/web", {"spec": {"cpu": {"cores": 3}}}),
        merge(f"{_MACHINES}/web", {"spec": {"template": "medium"}}),
        merge(f"{_MACHINES}/web", {"spec": {"template": "huge"}}),
        merge(f"{_MACHINES}/web", {"spec": {"networks": None}}),
        merge(f"{_MACHINES}/web", {"spec": {"disks": [{"name": "data", "size": "20Gi"}, {"name": "more", "size": "1Gi"}]}}),
        merge(f"{_MACHINES}/web", {"metadata": {"annotations": {"vitistack.io/power-state": "stopped"}}}),
        merge(f"{_MACHINES}/web", {"metadata": {"annotations": {"vitistack.io/power-state": "running"}}}),
        merge(f"{_SECRETS}/told", {"stringData": {"init": "#cloud-config\nhostname: another\n"}}),
        remove(f"{_SECRETS}/told"),
        put(_SECRETS, _SECRET),
        remove(f"{_NETWORKS}/lan"),
        put(_NETWORKS, _NETWORK),
        merge(f"{_NETWORKS}/lan", {"spec": {"vlan": 200}}),
        remove(_VM),
        merge(_VM, {"spec": {"template": {"spec": {"domain": {"cpu": {"cores": 7}}}}}}),
        merge(_VM, {"metadata": {"labels": {"vitistack.io/machine": "changed"}}}),
    ),
    mending=(
        put(_SECRETS, _SECRET),
        put(_NETWORKS, _NETWORK),
        merge(f"{_MACHINES}/web", {"spec": {"template": "medium"}, "metadata": {"annotations": {"vitistack.io/power-state": "running"}}}),
    ),
    kinds=("/apis/vitistack.io/v1alpha1/machines", "/apis/vitistack.io/v1alpha1/networkconfigurations"),
)
