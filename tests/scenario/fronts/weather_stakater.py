"""The moves of users with Stakater's machines, for trials."""

from paddock.dialects.stakater.controllers import controller
from paddock.dialects.stakater.controllers.settings import StakaterSettings
from tests.scenario.fronts.trial import SWEEP_SECONDS, Dialect, merge, put, remove

_FRONTS = "/apis/infrastructure.stakater.com/v1/namespaces/default/virtualmachines"
_VM = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines/web"
_SECRETS, _SERVICES = "/api/v1/namespaces/default/secrets", "/api/v1/namespaces/default/services"
_SOURCES = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datasources"
_NETWORKS = "/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions"
_SOURCE = {
    "apiVersion": "cdi.kubevirt.io/v1beta1",
    "kind": "DataSource",
    "metadata": {"name": "linux"},
    "spec": {"source": {"pvc": {"namespace": "default", "name": "image"}}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}
_SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"key": "ssh-ed25519 AAAA a@b"}}
_NETWORK = {
    "apiVersion": "k8s.cni.cncf.io/v1",
    "kind": "NetworkAttachmentDefinition",
    "metadata": {"name": "lan"},
    "spec": {"config": '{"type": "bridge", "bridge": "br1"}'},
}
_FRONT = {
    "apiVersion": "infrastructure.stakater.com/v1",
    "kind": "VirtualMachine",
    "metadata": {"name": "web"},
    "spec": {
        "parameters": {
            "dataSource": {"name": "linux", "namespace": "default"},
            "storage": {"size": "10Gi"},
            "additionalDisks": [{"name": "data", "size": "1Gi"}],
            "networks": [{"name": "pod", "type": "pod", "bindingName": "masquerade"}, {"name": "lan", "multus": {"networkName": "lan"}}],
            "cloudInit": {"password": "secret"},
            "sshPublicKey": {"secretName": "keys"},
            "runStrategy": "Always",
            "service": {"enabled": True},
        }
    },
}


def _parameters(**changes: object) -> dict[str, object]:
    return {"spec": {"parameters": changes}}


STAKATER = Dialect(
    wire=lambda front, back, _: controller.wire(front, StakaterSettings(resync_seconds=SWEEP_SECONDS)),
    setting=(put(_SOURCES, _SOURCE), put(_SECRETS, _SECRET), put(_NETWORKS, _NETWORK), put(_FRONTS, _FRONT)),
    moves=(
        put(_FRONTS, {**_FRONT, "metadata": {"name": "other"}}),
        remove(f"{_FRONTS}/web"),
        put(_FRONTS, _FRONT),
        merge(f"{_FRONTS}/web", _parameters(cpu={"cores": 4})),
        merge(f"{_FRONTS}/web", _parameters(runStrategy="Halted")),
        merge(f"{_FRONTS}/web", _parameters(runStrategy="Always")),
        merge(f"{_FRONTS}/web", _parameters(service={"enabled": False})),
        merge(f"{_FRONTS}/web", _parameters(service={"enabled": True, "port": 2200})),
        merge(f"{_FRONTS}/web", _parameters(storage={"size": "12Gi"})),
        merge(f"{_FRONTS}/web", _parameters(additionalLabels={"team": "a"})),
        merge(f"{_FRONTS}/web", _parameters(additionalLabels=None)),
        merge(f"{_FRONTS}/web", _parameters(cloudInit={"password": "another"})),
        merge(f"{_FRONTS}/web", _parameters(cloudInit={"password": None})),
        merge(f"{_FRONTS}/web", {"metadata": {"annotations": {"crossplane.io/paused": "true"}}}),
        remove(f"{_SECRETS}/keys"),
        remove(f"{_NETWORKS}/lan"),
        remove(f"{_SOURCES}/linux"),
        remove(_VM),
        remove(f"{_SECRETS}/web-cloudinit"),
        remove(f"{_SERVICES}/web-lb"),
        merge(_VM, {"spec": {"template": {"spec": {"domain": {"cpu": {"cores": 7}}}}}}),
        merge(_VM, {"metadata": {"labels": {"infrastructure.stakater.com/virtual-machine": "changed"}}}),
        merge(f"{_SERVICES}/web-lb", {"spec": {"ports": [{"name": "access", "port": 1, "protocol": "TCP"}]}}),
    ),
    mending=(
        put(_SOURCES, _SOURCE),
        put(_SECRETS, _SECRET),
        put(_NETWORKS, _NETWORK),
        merge(f"{_FRONTS}/web", {"metadata": {"annotations": {"crossplane.io/paused": None}}}),
    ),
    kinds=("/apis/infrastructure.stakater.com/v1/virtualmachines",),
)
