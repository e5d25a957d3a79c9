"""KubeVirt's own virt-api and virt-controller in a cluster, with what virt-operator installs for them: definitions, rights, webhooks.

They run as processes beside the cluster, with the rights of their own ServiceAccounts. What they lack is played (`node.py`): CDI,
the scheduler, kubelet and virt-handler of one node. virt-operator's place is taken by `installation`, a program of ours that prints
what virt-operator's own code generates.
"""

import base64
import json
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from paddock.server.security.pki import Authority, write_private
from tests.reference.client import MERGE_PATCH, Api, Json
from tests.reference.crds import Crd
from tests.reference.server import Rules, free_ports, launched, wait_ready, write_kubeconfig

NAMESPACE = "kubevirt"
NODE = "node"
HOST = "127.0.0.1"
# The Service of virt-api, and the name that the certificate behind it has to have.
_SERVICE = "virt-api"
_SERVICE_NAME = f"{_SERVICE}.{NAMESPACE}.svc"
_SUBRESOURCES = "subresources.kubevirt.io"
_ACCOUNTS = {"virt-api": "kubevirt-apiserver", "virt-controller": "kubevirt-controller", "virt-handler": "kubevirt-handler"}
_PATHS = {
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "ValidatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "MutatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
}
_WEBHOOKS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


@dataclass(frozen=True)
class Upstream:
    """KubeVirt before it runs: its programs and certificates, and its requirements for a cluster."""

    programs: Path
    directory: Path
    version: str
    authority: Authority
    objects: Sequence[Json]

    @property
    def definitions(self) -> Sequence[Crd]:
        """Its kinds."""
        return [Crd(f"KubeVirt {self.version}", each) for each in self.objects if each["kind"] == "CustomResourceDefinition"]

    @property
    def rules(self) -> Rules:
        """The settings of an API server that show virt-api the user of a request."""
        headers = {"username": "X-Remote-User", "group": "X-Remote-Group"}
        front = [self.directory / f"front-proxy.{each}" for each in ("crt", "key")]
        for path, content in zip(front, self.authority.client("front-proxy"), strict=True):
            write_private(path, content)
        flags = [
            f"--requestheader-client-ca-file={self.authority.certificate_file}",
            f"--proxy-client-cert-file={front[0]}",
            f"--proxy-client-key-file={front[1]}",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            *(f"--requestheader-{name}-headers={header}" for name, header in headers.items()),
        ]
        return Rules(flags=tuple(flags))


def prepared(programs: Path, version: str, directory: Path) -> Upstream:
    """Everything but the cluster."""
    directory.mkdir()
    said = subprocess.run([programs / "installation"], capture_output=True, check=True).stdout
    objects = [json.loads(line) for line in said.splitlines()]
    return Upstream(programs, directory, version, Authority(directory / "pki"), objects)


def way_in(upstream: Upstream, api: Api, name: str) -> Path:
    """The kubeconfig of one of its programs, as its pod has it: the token says on which node it is."""
    node = api.request("GET", f"/api/v1/nodes/{NODE}").body["metadata"]
    bound = {"kind": "Node", "apiVersion": "v1", "name": NODE, "uid": node["uid"]}
    path = f"{_PATHS['ServiceAccount'].format(NAMESPACE)}/{_ACCOUNTS[name]}/token"
    made = _ok(api, path, {"spec": {"audiences": [], "boundObjectRef": bound}})
    return write_kubeconfig(upstream.directory / name, api.access.url, made["status"]["token"], api.access.authority)


def unknown_to_cdi(upstream: Upstream, objects: Sequence[Json]) -> list[str]:
    """Return the fields of DataVolumes and DataSources that CDI's own types do not know, one text an object; empty for a good one."""
    lines = "\n".join(json.dumps(each) for each in objects)
    said = subprocess.run([upstream.programs / "installation", "read"], input=lines, capture_output=True, check=True, text=True).stdout
    return [json.loads(line) for line in said.splitlines()]


@contextmanager
def kubevirt(upstream: Upstream, api: Api, configuration: Json) -> Iterator[None]:
    """KubeVirt, at work in a cluster that has its definitions; of older releases there is virt-api alone."""
    _install(upstream, api, configuration)
    with ExitStack() as programs:
        port = _start(upstream, api, "virt-api", programs)
        _serve_subresources(upstream, api, port)
        # Its webhooks fail closed, so they come when it is there.
        for each in upstream.objects:
            if each["kind"] in _WEBHOOKS:
                _create(api, _on_loopback(each, port, upstream.authority))
        if (upstream.programs / "virt-controller").exists():
            _start(upstream, api, "virt-controller", programs)
        yield


def _install(upstream: Upstream, api: Api, configuration: Json) -> None:
    labels = {"kubevirt.io/schedulable": "true", "kubernetes.io/hostname": NODE}
    _ok(api, "/api/v1/nodes", {"metadata": {"name": NODE, "labels": labels}})
    _ok(api, "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for each in upstream.objects:
        if each["kind"] in _PATHS and each["kind"] not in _WEBHOOKS:
            _create(api, each)
    path = f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}/kubevirts"
    _ok(api, path, {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt"}, "spec": configuration})
    # What virt-operator says when it is done.
    status = {"status": {"phase": "Deployed", "defaultArchitecture": "amd64", "observedKubeVirtVersion": upstream.version}}
    assert api.request("PATCH", f"{path}/kubevirt/status", status, headers=MERGE_PATCH).ok


def _serve_subresources(upstream: Upstream, api: Api, port: int) -> None:
    """Have the API server hand on the subresources, as in a cluster. Its own certificate names the Service and not the host."""
    service = {"metadata": {"name": _SERVICE}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    _ok(api, f"/api/v1/namespaces/{NAMESPACE}/services", service)
    bundle = base64.b64encode(upstream.authority.certificate).decode()
    for version in ("v1", "v1alpha3"):
        served = {
            "group": _SUBRESOURCES,
            "version": version,
            "service": {"namespace": NAMESPACE, "name": _SERVICE, "port": port},
            "caBundle": bundle,
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
        }
        _ok(api, "/apis/apiregistration.k8s.io/v1/apiservices", {"metadata": {"name": f"{version}.{_SUBRESOURCES}"}, "spec": served})


def _create(api: Api, thing: Json) -> None:
    path = _PATHS[thing["kind"]].format(thing["metadata"].get("namespace", ""))
    # Not all of them say of which group they are; virt-operator's typed clients need not know.
    version = "v1" if path.startswith("/api/") else "/".join(path.split("/")[2:4])
    _ok(api, path, {**thing, "apiVersion": version})


def _ok(api: Api, path: str, thing: Json) -> Json:
    answer = api.request("POST", path, thing)
    assert answer.ok, answer.message
    return answer.body


def _on_loopback(webhooks: Json, port: int, authority: Authority) -> Json:
    """Nobody resolves Services here."""
    bundle = base64.b64encode(authority.certificate).decode()
    changed = [
        {**each, "clientConfig": {"url": f"https://{HOST}:{port}{each['clientConfig']['service']['path']}", "caBundle": bundle}}
        for each in webhooks["webhooks"]
    ]
    return {**webhooks, "webhooks": changed}


def _start(upstream: Upstream, api: Api, name: str, programs: ExitStack) -> int:
    """One program, ready; the port on which it listens."""
    directory = upstream.directory
    certificate, key = upstream.authority.server((HOST, _SERVICE_NAME))
    (port,) = free_ports(1)
    kubeconfig = way_in(upstream, api, name)
    command = [str(upstream.programs / name), f"--kubeconfig={kubeconfig}", f"--listen={HOST}", f"--port={port}"]
    if name == "virt-api":
        command += [f"--{kind}-{what}-file={file}" for kind in ("tls", "handler") for what, file in (("cert", certificate), ("key", key))]
    else:
        command += [f"--prom-cert-file={certificate}", f"--prom-key-file={key}"]
    log = directory / f"{name}.log"
    process = programs.enter_context(launched(command, log))
    path = "/healthz" if name == "virt-controller" else "/apis/subresources.kubevirt.io/v1/healthz"
    wait_ready(name, process, log, lambda: _asked(upstream, f"https://{HOST}:{port}{path}"))
    return port


def _asked(upstream: Upstream, url: str) -> bool:
    """Return whether it answers; every other outcome is an `OSError`."""
    trust = ssl.create_default_context(cafile=str(upstream.authority.certificate_file))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust))
    with opener.open(url, timeout=5) as answer:
        return int(answer.status) == 200
