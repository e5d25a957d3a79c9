"""One node of a cluster in which KubeVirt itself works: the scheduler's, kubelet's and virt-handler's parts, and CDI's."""

from typing import Any

import orjson

from paddock.base.clock import SystemClock
from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Conflict, NotFound
from paddock.kubernetes.client.options import DeletionOptions, WriteOptions, merge_patch
from paddock.kubernetes.client.target import Key, plain
from paddock.kubernetes.meta.ages import timestamp
from paddock.kubernetes.runtime.controller import DONE, Controller, Outcome, again
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from tests.reference.operators.upstream import NODE
from tests.scenario.fronts.player import INSTANCES, Surroundings

PODS = plain("", "v1", "pods", "Pod")
ADDRESS = "10.0.2.2"
_STATUS = WriteOptions(subresource="status")
_UP = ("Scheduled", "Running")
_PAUSE_SECONDS = 0.1


class Node(Surroundings):
    """Runs every launcher at once."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        informers = self.program.informers
        self._pods, self._instances = informers.of(PODS), informers.of(INSTANCES)
        self.program.add(Controller("pods", self._pods, self._pod, machinery=self.machinery))

    async def _pod(self, key: Key) -> Outcome:
        seen = self._pods.cache.get(key)
        if seen is None:
            return DONE
        pod = orjson.loads(seen.raw)
        if seen.meta.deleting:
            if self._is_up(key.namespace, pod):
                return again(_PAUSE_SECONDS)
            await self._ended(key, seen.meta.uid)
        elif "nodeName" not in pod["spec"]:
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": key.name}, "target": {"kind": "Node", "name": NODE}}
            path = f"{PODS.path(key.namespace, key.name)}/binding"
            await self._client.request("POST", path, (), orjson.dumps(body))
        elif pod["status"].get("phase") == "Pending":
            await self._client.patch(PODS, key, merge_patch({"status": _running(pod)}), _STATUS)
        return DONE

    def _is_up(self, namespace: str, launcher: Data) -> bool:
        """Return whether its guest is still there: a launcher goes when it has shut down."""
        seen = self._instances.cache.get(Key(namespace, launcher["metadata"]["annotations"].get("kubevirt.io/domain", "")))
        return seen is not None and orjson.loads(seen.raw).get("status", {}).get("phase") in _UP

    async def _ended(self, key: Key, uid: str) -> None:
        try:
            await self._client.delete(PODS, key, DeletionOptions(uid=uid, grace_seconds=0))
        except (NotFound, Conflict):
            return


class Handler:
    """virt-handler's part: a machine whose launcher runs is up at once, and one that is to go shuts down at once."""

    def __init__(self, client: Client) -> None:
        machinery = Machinery()
        self._client = client
        self.program = ControllerManager(client, component="handler", instance="handler", machinery=machinery)
        self._instances = self.program.informers.of(INSTANCES)
        self.program.add(Controller("instances", self._instances, self._instance, machinery=machinery))

    async def _instance(self, key: Key) -> Outcome:
        seen = self._instances.cache.get(key)
        if seen is None:
            return DONE
        instance = orjson.loads(seen.raw)
        phase = instance.get("status", {}).get("phase")
        if seen.meta.deleting and phase in _UP:
            await self._client.update(INSTANCES, _in(instance, "Succeeded"))
        elif phase == "Scheduled":
            running = _in(instance, "Running")
            running["status"]["interfaces"] = _interfaces(instance)
            await self._client.update(INSTANCES, running)
        return DONE


def _in(instance: Data, phase: str) -> Data:
    """A machine in another phase. One that never ran is taken for one that could not start, so it is said when it came there."""
    status = instance["status"]
    since = {"phase": phase, "phaseTransitionTimestamp": timestamp(SystemClock().seconds())}
    return {
        **instance,
        "status": {**status, "phase": phase, "phaseTransitionTimestamps": [*status.get("phaseTransitionTimestamps", ()), since]},
    }


async def run_node(client: Client) -> None:
    """Until cancelled."""
    await Node(client).program.run()


async def run_handler(client: Client) -> None:
    """Until cancelled."""
    await Handler(client).program.run()


def _running(pod: Data) -> Data:
    """All its containers are."""

    def state(container: Data) -> Data:
        running: Any = {"running": {"startedAt": "2027-01-15T08:00:00Z"}}
        return {"name": container["name"], "image": container["image"], "imageID": "", "ready": True, "restartCount": 0, "state": running}

    ready = [{"type": each, "status": "True"} for each in ("Ready", "ContainersReady", "PodScheduled")]
    states = [state(each) for each in pod["spec"]["containers"]]
    return {"phase": "Running", "podIP": ADDRESS, "podIPs": [{"ip": ADDRESS}], "conditions": ready, "containerStatuses": states}


def _interfaces(instance: Data) -> list[Data]:
    cards = instance["spec"]["domain"]["devices"].get("interfaces") or ()
    return [
        {
            "name": each["name"],
            "ipAddress": ADDRESS,
            "ipAddresses": [ADDRESS],
            **({"mac": each["macAddress"]} if "macAddress" in each else {}),
        }
        for each in cards
    ]
