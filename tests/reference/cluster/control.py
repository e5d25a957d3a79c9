"""Kubernetes on the node: etcd, the control plane, containerd, the kubelet and kube-proxy, all as processes of one machine."""

import json
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from paddock.server.security.pki import Authority, write_private
from tests.reference.cluster import forward
from tests.reference.cluster.namespace import ADDRESS, HOSTNAME, Machine, NodeFailed
from tests.reference.server import Access, write_kubeconfig

PAUSE = "registry.invalid/pause:1"
URL = f"https://{ADDRESS}:6443"
_SERVICES, _PODS, DNS = "10.96.0.0/16", "10.244.0.0/24", "10.96.0.10"
_START_SECONDS = 600.0
# name, user and groups of the users that the API server knows by token
_USERS = {
    "admin": ("admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
    "kubelet": (f"system:node:{HOSTNAME}", "system:nodes"),
    "proxy": ("system:kube-proxy", "system:node-proxier"),
}
_CONTAINERD = f"""version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri"]
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE}"
[plugins."io.containerd.cri.v1.runtime"]
disable_apparmor = true
restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/usr/lib/cni"]
conf_dir = "/etc/cni/net.d"
"""
_NETWORK = {
    "cniVersion": "1.0.0",
    "name": "pods",
    "plugins": [
        {
            "type": "bridge",
            "bridge": "pods0",
            "isGateway": True,
            "ipMasq": True,
            "hairpinMode": True,
            "ipam": {"type": "host-local", "ranges": [[{"subnet": _PODS}]], "routes": [{"dst": "0.0.0.0/0"}]},
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ],
}
_KUBELET = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    # The node is seen by its own pods only.
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "cgroupDriver": "cgroupfs",
    "failCgroupV1": False,
    "failSwapOn": False,
    "clusterDNS": [DNS],
    "clusterDomain": "cluster.local",
    "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
    "resolvConf": "/etc/resolv.conf",
    # The disk is the host's, and its being full is no matter of this cluster.
    "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
    "imageGCHighThresholdPercent": 100,
    "staticPodPath": "/etc/kubernetes/manifests",
    "registerNode": True,
}
_PROXY = {
    "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
    "kind": "KubeProxyConfiguration",
    "mode": "nftables",
    "hostnameOverride": HOSTNAME,
    "clusterCIDR": _PODS,
    "clientConnection": {"kubeconfig": "/cluster/proxy.kubeconfig"},
    # These are settings of the whole machine.
    "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
}
_APISERVER = (
    *("kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", f"--advertise-address={ADDRESS}", "--secure-port=6443"),
    *("--cert-dir=/cluster/certificates", "--token-auth-file=/cluster/tokens.csv", "--authorization-mode=Node,RBAC"),
    *("--allow-privileged=true", f"--service-cluster-ip-range={_SERVICES}", "--profiling=false"),
    *("--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=/cluster/certificates/apiserver.key"),
    "--service-account-signing-key-file=/cluster/certificates/apiserver.key",
    *("--requestheader-client-ca-file=/cluster/pki/ca.crt", "--requestheader-extra-headers-prefix=X-Remote-Extra-"),
    *("--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group"),
    *("--proxy-client-cert-file=/cluster/front.crt", "--proxy-client-key-file=/cluster/front.key"),
    *("--kubelet-preferred-address-types=InternalIP", "--enable-aggregator-routing=true"),
)
_ETCD = ("etcd", "--data-dir=/var/lib/etcd", "--unsafe-no-fsync", "--log-level=warn")
_MANAGER = (
    *("kube-controller-manager", "--kubeconfig=/cluster/controller-manager.kubeconfig", "--use-service-account-credentials=true"),
    *("--service-account-private-key-file=/cluster/certificates/apiserver.key", "--root-ca-file=/cluster/certificates/apiserver.crt"),
    *("--leader-elect=false", f"--cluster-cidr={_PODS}", "--allocate-node-cidrs=false", "--authorization-always-allow-paths=/healthz"),
)
_SCHEDULER = ("kube-scheduler", "--kubeconfig=/cluster/scheduler.kubeconfig", "--leader-elect=false")


def kubernetes(machine: Machine) -> None:
    """Start Kubernetes on a node; returns when the node is ready."""
    _write_files(machine)
    machine.start("containerd", "containerd", "--config", "/cluster/containerd.toml")
    machine.start("etcd", *_ETCD)
    start_api(machine)
    wait("containerd", lambda: bool(machine.run("ctr", "version")))
    machine.start("kube-controller-manager", *_MANAGER)
    machine.start("kube-scheduler", *_SCHEDULER)
    kubelet = ("kubelet", "--config=/cluster/kubelet.json", "--kubeconfig=/cluster/kubelet.kubeconfig", f"--node-ip={ADDRESS}")
    machine.start("kubelet", *kubelet, f"--hostname-override={HOSTNAME}")
    machine.start("kube-proxy", "kube-proxy", "--config=/cluster/proxy.json")
    wait("the node", lambda: "True" in kubectl(machine, "get", "node", HOSTNAME, "-o", _READY))
    # The controller manager makes it a moment later, and no pod is admitted before.
    wait("the ServiceAccount of pods", lambda: bool(kubectl(machine, "get", "serviceaccount", "default", "-o", "name")))
    # virt-operator and what it installs insist on a node of the control plane.
    kubectl(machine, "label", "node", HOSTNAME, "node-role.kubernetes.io/control-plane=")


def start_api(machine: Machine) -> None:
    """Start the API server, also again after it was killed; returns when it is ready."""
    machine.start("kube-apiserver", *_APISERVER)
    authority = machine.directory / "files" / "certificates" / "apiserver.crt"
    wait("the API server", lambda: authority.exists() and kubectl(machine, "get", "--raw", "/readyz") == "ok")


def access(machine: Machine) -> Access:
    """Return the administrator's access from the host; the first call opens the port for it."""
    files, kubeconfig = machine.directory / "files", machine.directory / "kubeconfig"
    authority = files / "certificates" / "apiserver.crt"
    if not kubeconfig.exists():
        lines = [line.split(",") for line in (files / "tokens.csv").read_text().splitlines()]
        token = next(token for token, user, *_ in lines if user == "admin")
        # The certificate that the API server makes for itself has this name.
        write_kubeconfig(kubeconfig, f"https://localhost:{forward.open_port(machine)}", token, authority)
    written = json.loads(kubeconfig.read_text())
    return Access(written["clusters"][0]["cluster"]["server"], written["users"][0]["user"]["token"], authority, kubeconfig)


_READY = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'


def kubectl(machine: Machine, *words: str, given: str = "") -> str:
    """Run kubectl on the node as the administrator."""
    return machine.run("kubectl", "--kubeconfig=/cluster/admin.kubeconfig", *words, given=given.encode())


def apply(machine: Machine, *objects: Mapping[str, Any]) -> None:
    """Apply objects as an administrator does."""
    text = "\n".join(json.dumps(each) for each in objects)
    kubectl(machine, "apply", "--server-side", "--force-conflicts", "-f", "-", given=text)


def wait(what: str, ready: Callable[[], bool], seconds: float = _START_SECONDS) -> float:
    """Wait until something is true and return the seconds it took; what it raises meanwhile is a no."""
    began, last = time.monotonic(), ""
    while time.monotonic() < began + seconds:
        try:
            if ready():
                return time.monotonic() - began
        except NodeFailed as problem:
            last = str(problem)
        time.sleep(0.5)
    raise NodeFailed(f"{what} was not ready after {seconds:.0f} seconds", why=last, fix="read the logs in the directory of the cluster")


def _write_files(machine: Machine) -> None:
    files = machine.directory / "files"
    certificate, key = Authority(files / "pki").client("front-proxy-client")
    (files / "front.crt").write_bytes(certificate)
    write_private(files / "front.key", key)
    tokens = {name: secrets.token_hex(16) for name in _USERS}
    lines = [f'{tokens[name]},{user},{user},"{group}"' for name, (user, group) in _USERS.items()]
    write_private(files / "tokens.csv", "\n".join([*lines, ""]).encode())
    (files / "containerd.toml").write_text(_CONTAINERD)
    for name, document in {"kubelet": _KUBELET, "proxy": _PROXY}.items():
        (files / f"{name}.json").write_text(json.dumps(document))
    machine.run("mkdir", "-p", "/etc/cni/net.d", "/etc/kubernetes/manifests")
    machine.run("tee", "/etc/cni/net.d/10-pods.conflist", given=json.dumps(_NETWORK).encode())
    machine.run("tee", "/etc/resolv.conf", given=f"nameserver {DNS}\n".encode())
    machine.run("tee", "/etc/hosts", given=f"127.0.0.1 localhost\n{ADDRESS} {HOSTNAME}\n".encode())
    for line in lines:
        token, user, *_ = line.split(",")
        name = next(name for name in _USERS if _USERS[name][0] == user)
        write_kubeconfig(files / f"{name}.kubeconfig", URL, token, Path("/cluster/certificates/apiserver.crt"))
