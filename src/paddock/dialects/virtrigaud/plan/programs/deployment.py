"""The Deployment, the Service and the certificates of a Provider in a cluster (docs/spec/virtrigaud.md 3.8)."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from paddock.base import names
from paddock.base.jsondata import Data
from paddock.contract import tls
from paddock.contract.issuing import ManagedCertificates
from paddock.dialects.virtrigaud.kinds.provider import Provider, ProviderService
from paddock.dialects.virtrigaud.plan.programs import environment
from paddock.dialects.virtrigaud.plan.programs.transport import TransportChoice
from paddock.kubernetes.meta.fieldview import whole
from paddock.kubernetes.meta.world import namespace_of

MANAGED_BY = "virtrigaud"
HEALTH_PORT = 8080
STAGING_LABEL = "virtrigaud.io/component=migration-storage"
_CREDENTIALS, _TLS, _STAGING = "/etc/virtrigaud/credentials", "/etc/virtrigaud/tls", "/mnt/migration-storage"
_USER = 65532
_LONGEST_LABEL = 63
_FILES = ("tls.crt", "tls.key", "ca.crt")
_CLAIM_VOLUME = "migration-"


class ClusterWish(msgspec.Struct, frozen=True):
    """The inputs of a Provider's objects, besides its spec."""

    transport: TransportChoice
    # the Secret with the certificates; empty: plain text
    tls_secret: str
    # the name that the manager's certificate has
    manager: str
    # the staging claims of the namespace
    claims: tuple[str, ...] = ()
    # the Secrets as they are: other ones roll the Pods
    revisions: Mapping[str, str] = {}


def name(provider: Provider) -> str:
    """The name of the Deployment and the Service."""
    return tls.service_name(namespace_of(provider), provider.metadata.name or "")


def host(provider: Provider) -> str:
    """The host of the Service, which is the name in the provider's certificate."""
    return tls.server_name(namespace_of(provider), provider.metadata.name or "")


def port(provider: Provider) -> int:
    """The port of the Service."""
    return (provider.spec.runtime.service or ProviderService()).port


def objects(provider: Provider, wish: ClusterWish) -> tuple[Data, Data]:
    """Return the Service and the Deployment."""
    labels, selector = _labels(provider), _selector(provider)
    runtime = provider.spec.runtime
    service = _object("v1", "Service", provider, labels) | {
        "spec": {
            "type": "ClusterIP",
            "selector": selector,
            "ports": [
                {"name": "grpc", "port": port(provider), "targetPort": port(provider), "protocol": "TCP"},
                {"name": "metrics", "port": HEALTH_PORT, "targetPort": HEALTH_PORT, "protocol": "TCP"},
            ],
        }
    }
    annotations = {f"virtrigaud.io/{each}-revision": revision for each, revision in sorted(wish.revisions.items())}
    template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": _pod(provider, wish)}
    spec = {"replicas": runtime.replicas, "selector": {"matchLabels": selector}, "template": template}
    return service, _object("apps/v1", "Deployment", provider, labels) | {"spec": spec}


def certificates(provider: Provider, data: Mapping[str, str]) -> Data:
    """Return the Secret with managed certificates. `data` is base64."""
    found = _object("v1", "Secret", provider, _labels(provider)) | {"type": "kubernetes.io/tls", "data": dict(data)}
    found["metadata"]["name"] = certificates_name(provider)
    return found


def certificates_name(provider: Provider) -> str:
    """The name of the Secret with managed certificates."""
    return f"{name(provider)}-tls"


def certificate_data(made: ManagedCertificates) -> dict[str, str]:
    """The values of that Secret. The manager's own are not mounted into the Pods."""
    values = {
        "tls.crt": made.provider.certificate,
        "tls.key": made.provider.key,
        "ca.crt": made.provider.authority,
        "manager.crt": made.manager.certificate,
        "manager.key": made.manager.key,
    }
    return {each: base64.b64encode(value).decode() for each, value in values.items()}


def claims(deployment: Data) -> frozenset[str]:
    """The staging claims that all Pods of a Deployment have mounted; none while it rolls."""
    spec, status = deployment.get("spec") or {}, deployment.get("status") or {}
    wanted = spec.get("replicas", 1)
    counts = [status.get(each) or 0 for each in ("replicas", "updatedReplicas", "readyReplicas")]
    if status.get("observedGeneration") != deployment["metadata"].get("generation") or counts != [wanted] * 3:
        return frozenset()
    volumes = ((spec.get("template") or {}).get("spec") or {}).get("volumes") or ()
    found = ((each.get("name", ""), (each.get("persistentVolumeClaim") or {}).get("claimName")) for each in volumes)
    return frozenset(claim for each, claim in found if claim and each.startswith(_CLAIM_VOLUME))


def _object(version: str, kind: str, provider: Provider, labels: Mapping[str, str]) -> Data:
    metadata = {"name": name(provider), "namespace": namespace_of(provider), "labels": dict(labels)}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _selector(provider: Provider) -> dict[str, str]:
    instance = provider.metadata.name or ""
    if len(instance) > _LONGEST_LABEL:
        instance = f"{instance[: _LONGEST_LABEL - 9].rstrip('-.')}-{hashlib.sha256(instance.encode()).hexdigest()[:8]}"
    return {"app.kubernetes.io/name": "virtrigaud-provider", "app.kubernetes.io/instance": instance}


def _labels(provider: Provider) -> dict[str, str]:
    return _selector(provider) | {
        "app.kubernetes.io/component": "provider",
        "app.kubernetes.io/managed-by": MANAGED_BY,
        "virtrigaud.io/provider-type": provider.spec.type,
    }


def _pod(provider: Provider, wish: ClusterWish) -> Data:
    runtime = provider.spec.runtime
    default = {
        "runAsNonRoot": True,
        "runAsUser": _USER,
        "runAsGroup": _USER,
        "fsGroup": _USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    mounts, volumes = _files(provider, wish)
    given: Data = {
        "imagePullSecrets": _plain(runtime.imagePullSecrets),
        "nodeSelector": runtime.nodeSelector,
        "tolerations": _plain(runtime.tolerations),
        "affinity": _plain(runtime.affinity),
    }
    return {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 30,
        "securityContext": _plain(runtime.securityContext) or default,
        "containers": [_container(provider, wish, mounts)],
        "volumes": volumes,
        **{member: value for member, value in given.items() if value},
    }


def _container(provider: Provider, wish: ClusterWish, mounts: Sequence[Data]) -> Data:
    runtime = provider.spec.runtime
    own = environment.variables(provider, wish.transport, wish.manager)
    resources = _plain(runtime.resources) or {
        "requests": {"cpu": "100m", "memory": "128Mi"},
        "limits": {"cpu": "1", "memory": "512Mi"},
    }
    return {
        "name": "provider",
        "image": runtime.image,
        "imagePullPolicy": runtime.imagePullPolicy,
        "args": [f"--port={port(provider)}", f"--health-port={HEALTH_PORT}"],
        "env": [*({"name": each, "value": value} for each, value in own.items()), *(_plain(runtime.env) or ())],
        "ports": [
            {"name": "grpc", "containerPort": port(provider), "protocol": "TCP"},
            {"name": "metrics", "containerPort": HEALTH_PORT, "protocol": "TCP"},
        ],
        "resources": resources,
        "livenessProbe": _plain(runtime.livenessProbe) or _probe(15, 20),
        "readinessProbe": _plain(runtime.readinessProbe) or _probe(5, 10),
        # Calls end before the process, and the Service forgets the Pod before that.
        "lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", "sleep 15"]}}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": list(mounts),
    }


def _volume_of(claim: str) -> str:
    """The volume of a staging claim. A claim's name may be longer than a volume's and have dots, so a sum stands for such a one."""
    name = f"{_CLAIM_VOLUME}{claim}"
    return name if names.is_label(name) else f"{_CLAIM_VOLUME}{hashlib.sha256(claim.encode()).hexdigest()[:16]}"


def _files(provider: Provider, wish: ClusterWish) -> tuple[list[Data], list[Data]]:
    """The mounts and the volumes."""
    found: list[tuple[str, str, bool, Data]] = [
        ("provider-credentials", _CREDENTIALS, True, {"secret": {"secretName": provider.spec.credentialSecretRef.name}}),
    ]
    if wish.tls_secret:
        secret = {"secretName": wish.tls_secret, "items": [{"key": each, "path": each} for each in _FILES]}
        found.append(("provider-tls", _TLS, True, {"secret": secret}))
    found.append(("tmp", "/tmp", False, {"emptyDir": {}}))
    found += [
        (_volume_of(claim), f"{_STAGING}/{claim}", False, {"persistentVolumeClaim": {"claimName": claim}}) for claim in sorted(wish.claims)
    ]
    if provider.spec.type == "libvirt":
        memory = {"emptyDir": {"medium": "Memory", "sizeLimit": "4Mi"}}
        found.append(("libvirt-ssh-key", "/tmp/virtrigaud-libvirt", False, memory))
    mounts = [{"name": each, "mountPath": path, **({"readOnly": True} if fixed else {})} for each, path, fixed, _ in found]
    return mounts, [{"name": each, **source} for each, _, _, source in found]


def _probe(delay: int, period: int) -> Data:
    return {"httpGet": {"path": "/healthz", "port": HEALTH_PORT}, "initialDelaySeconds": delay, "periodSeconds": period}


def _plain(value: Any) -> Any:
    """A declared value as data, without what it does not say."""
    return _said(msgspec.to_builtins(whole(value))) if value else None


def _said(value: Any) -> Any:
    if isinstance(value, dict):
        return {member: _said(each) for member, each in value.items() if each is not None}
    return [_said(each) for each in value] if isinstance(value, list) else value
