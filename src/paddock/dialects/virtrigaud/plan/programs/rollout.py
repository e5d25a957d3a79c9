"""The state of a Provider's Deployment, as the Provider reports it (docs/spec/virtrigaud.md 1.5 and 2.4)."""

import msgspec

from paddock.base.jsondata import Data
from paddock.dialects.virtrigaud.plan.health import ProviderRuntimeFacts


def facts(deployment: Data | None, known: ProviderRuntimeFacts) -> ProviderRuntimeFacts:
    """The facts of a program whose Deployment this is; `known` has what does not depend on it."""
    status: Data = (deployment or {}).get("status") or {}
    wanted = ((deployment or {}).get("spec") or {}).get("replicas", 1)
    ready, available = int(status.get("readyReplicas") or 0), int(status.get("availableReplicas") or 0)
    phase, reason, message = "Pending", "DeploymentNotReady", "the Deployment has no Pods yet"
    if ready:
        phase, reason, message = "Running", "DeploymentReady", f"{ready} of {wanted} Pods are ready"
    elif problem := _problem(status):
        phase, message = "Failed", problem
    elif status.get("replicas"):
        phase, message = "Starting", f"none of {status['replicas']} Pods is ready"
    return msgspec.structs.replace(known, phase=phase, reason=reason, message=message, ready=ready, available=available)


def _problem(status: Data) -> str:
    """Return the reason why the Pods do not become ready, in the words of the cluster."""
    conditions: dict[str, Data] = {each.get("type", ""): each for each in status.get("conditions") or ()}
    failure, progress = conditions.get("ReplicaFailure", {}), conditions.get("Progressing", {})
    if failure.get("status") == "True":
        return f"the Pods cannot be made: {failure.get('message') or failure.get('reason')}"
    if progress.get("status") == "False":
        return f"the Deployment does not progress: {progress.get('message') or progress.get('reason')}"
    return ""
