"""KubeVirt's programs as workloads of the namespace of the KubeVirt object: Deployments and a DaemonSet, as clients look for them. Pure.

One process does the work of all of them, and its state is in the conditions of that object.
"""

from collections.abc import Iterator
from uuid import UUID, uuid5

from paddock.base.jsondata import Data
from paddock.kubernetes.meta.wire import from_data
from paddock.kubevirt.kinds.kubevirt_cr import KubeVirt
from paddock.kubevirt.plan.views.launchers import IMAGE

DEPLOYMENTS, DAEMON_SETS = ("virt-api", "virt-controller", "virt-operator"), ("virt-handler",)
_UIDS = UUID("7c3a4a0e-6c4f-4b43-9f64-0f5f0a4f9b52")
_ROLLING_DEPLOYMENT = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
_ROLLING_DAEMON_SET = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}


def deployments(data: Data) -> Iterator[Data]:
    """Yield the Deployments of an installation."""
    installation: KubeVirt = from_data(data, KubeVirt)
    is_ready, since = _availability(installation)
    counts: Data = {"readyReplicas": 1, "availableReplicas": 1} if is_ready else {"unavailableReplicas": 1}
    status: Data = {
        "observedGeneration": 1,
        "replicas": 1,
        "updatedReplicas": 1,
        **counts,
        "conditions": _conditions(since, is_ready=is_ready),
    }
    more = {"replicas": 1, "strategy": _ROLLING_DEPLOYMENT, "progressDeadlineSeconds": 600}
    for name in DEPLOYMENTS:
        yield _workload(installation, ("Deployment", name), more, status)


def daemon_sets(data: Data) -> Iterator[Data]:
    """Yield the DaemonSet of an installation."""
    installation: KubeVirt = from_data(data, KubeVirt)
    is_ready, _ = _availability(installation)
    counts = {"numberReady": 1, "numberAvailable": 1} if is_ready else {"numberReady": 0, "numberUnavailable": 1}
    scheduled = dict.fromkeys(("currentNumberScheduled", "desiredNumberScheduled", "updatedNumberScheduled"), 1)
    status: Data = {"observedGeneration": 1, **scheduled, "numberMisscheduled": 0, **counts}
    for name in DAEMON_SETS:
        yield _workload(installation, ("DaemonSet", name), {"updateStrategy": _ROLLING_DAEMON_SET}, status)


def explanation(data: Data) -> str:
    """Return why such a workload cannot be changed."""
    return (
        f"it shows a part of Paddock, which runs while the server does; configure {data['metadata']['name']} of the kind KubeVirt instead"
    )


def _availability(installation: KubeVirt) -> tuple[bool, str]:
    """Return whether the programs run, and since when it is so."""
    status = installation.status
    said = next((each for each in (status.conditions if status is not None else None) or () if each.type == "Available"), None)
    is_ready = said is not None and said.status == "True"
    return is_ready, (said.lastTransitionTime if said is not None else None) or installation.metadata.creationTimestamp or ""


def _conditions(since: str, *, is_ready: bool) -> list[Data]:
    available = (
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        if is_ready
        else ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    )
    said = (("Available", *available), ("Progressing", "True", "NewReplicaSetAvailable", "The program is the server itself."))
    return [
        {"type": aspect, "status": status, "reason": reason, "message": text, "lastUpdateTime": since, "lastTransitionTime": since}
        for aspect, status, reason, text in said
    ]


def _workload(installation: KubeVirt, place: tuple[str, str], more: Data, status: Data) -> Data:
    kind, name = place
    meta, version = installation.metadata, installation.status.observedKubeVirtVersion if installation.status is not None else None
    labels = {
        "app.kubernetes.io/component": "kubevirt",
        "app.kubernetes.io/managed-by": "virt-operator",
        **({"app.kubernetes.io/version": version} if version else {}),
        "kubevirt.io": name,
    }
    container = {
        "name": name,
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    pod = {
        "containers": [container],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": meta.namespace or "",
            "uid": str(uuid5(_UIDS, f"{meta.uid}/{name}")),
            "creationTimestamp": meta.creationTimestamp,
            "generation": 1,
            "labels": labels,
        },
        "spec": {
            "selector": {"matchLabels": {"kubevirt.io": name}},
            "template": {"metadata": {"labels": labels}, "spec": pod},
            "revisionHistoryLimit": 10,
            **more,
        },
        "status": status,
    }
