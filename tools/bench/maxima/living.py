"""A server whose machines run, with simulated guests. After each batch one more machine is used as people use theirs."""

import itertools
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import uvloop

from tools.bench import simulated
from tools.bench.client import LoadFailed, Target, call, connect, drive, fetch
from tools.bench.maxima.stages import Limit, Stage, first_break
from tools.bench.programs import Paddock, permit

Say = Callable[[str], None]
_NAMESPACE, _LIMITED = "living", "limited"
_KUBEVIRT = f"/apis/kubevirt.io/v1/namespaces/{_NAMESPACE}"
_ACTIONS = f"/apis/subresources.kubevirt.io/v1/namespaces/{_NAMESPACE}"
_SNAPSHOTS = f"/apis/snapshot.kubevirt.io/v1beta1/namespaces/{_NAMESPACE}/virtualmachinesnapshots"
_POOLS = f"/apis/pool.kubevirt.io/v1beta1/namespaces/{_NAMESPACE}/virtualmachinepools"
_AT_ONCE, _POOL, _IDLE_SECONDS = 16, 20, 20.0
# A batch gets so much time, and one trial so much.
_BATCH_SECONDS, _TRIAL_SECONDS = 3600.0, 60.0
_PAUSE = 0.005
LIMITS = {
    "a machine of the batch": Limit("ms of CPU", 100.0),
    "batch until all run": Limit("s", _BATCH_SECONDS),
    "create until it runs": Limit("s", 5.0, 0.05),
    "pause": Limit("s", 5.0),
    "unpause": Limit("s", 5.0),
    "snapshot until it is ready": Limit("s", 10.0),
    "stop until it is off": Limit("s", 5.0),
    "start until it runs": Limit("s", 5.0),
    "delete until it is gone": Limit("s", 5.0),
    f"pool of {_POOL} until all run": Limit("s", 20.0),
    "quota refuses": Limit("s", 1.0),
    "list of all instances": Limit("s", 20.0),
    "idle": Limit("% of a core", 50.0),
    "memory": Limit("MB", 12_000.0, 1_200.0),
    "start": Limit("s", 60.0, 5.0),
}
_RUNNING = re.compile(rb'"name":"(m-\d+)"')


def serve(folder: Path, nodes: int) -> Paddock:
    """Start a server with simulated guests on so many nodes."""
    server = Paddock(folder, "up", ("--guests", "simulated", "--nodes", str(nodes)))
    server.start()
    permit(server.admin, _NAMESPACE)
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}
    quota["spec"] = {"hard": {"count/virtualmachines.kubevirt.io": "0"}}
    _post(server.target, "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _LIMITED}})
    _post(server.target, f"/api/v1/namespaces/{_LIMITED}/resourcequotas", quota)
    return server


def grow(server: Paddock, sizes: Sequence[int], say: Say) -> list[Stage]:
    """Grow a server that has started, size by size, until something breaks."""
    stages: list[Stage] = []
    for before, size in itertools.pairwise((0, *sizes)):
        stage = Stage(size)
        stages.append(stage)
        try:
            for trial, figure in _stage(server, before, size):
                stage.figures[trial] = figure
                say(f"{size:,} machines: {trial}: {figure:.4g} {LIMITS[trial].unit}")
        except (LoadFailed, OSError) as error:
            stage.failed[next(trial for trial in LIMITS if trial not in stage.figures)] = str(error)[:200]
        if first_break(stages, LIMITS) is not None:
            break
    return stages


def _stage(server: Paddock, before: int, size: int) -> Iterator[tuple[str, float]]:
    """The trials in the order of the limits."""
    target, cpu, began = server.target, server.cpu(), time.monotonic()
    _create(target, before, size)
    yield "a machine of the batch", (server.cpu() - cpu) * 1000 / (size - before)
    yield "batch until all run", time.monotonic() - began
    yield from _one_machine(target, f"probe-{size}")
    yield f"pool of {_POOL} until all run", _pool(target, f"pool-{size}")
    yield "quota refuses", _quota(target)
    with closing(connect(target)) as one:
        seconds, _ = fetch(one, target.request("GET", f"{_KUBEVIRT}/virtualmachineinstances"))
        yield "list of all instances", seconds
    time.sleep(_IDLE_SECONDS / 2)
    cpu = server.cpu()
    time.sleep(_IDLE_SECONDS)
    yield "idle", (server.cpu() - cpu) * 100 / _IDLE_SECONDS
    yield "memory", sum(server.resident().values()) / 1e6
    server.stop()
    yield "start", server.start()


def _create(target: Target, before: int, size: int) -> None:
    """Create machines, and return when all of them run."""
    collection = f"{_KUBEVIRT}/virtualmachines"
    with closing(connect(target)) as watch:
        watch.settimeout(_BATCH_SECONDS)
        selector = f"labelSelector=batch%3D{size}"
        watch.sendall(target.request("GET", f"{_KUBEVIRT}/virtualmachineinstances?watch=true&{selector}"))
        events = watch.makefile("rb")
        # The head of the answer: the watch is there before the first machine is.
        while events.readline().strip():
            pass
        made = (target.request("POST", collection, json.dumps(_machine(f"m-{number}", size)).encode()) for number in range(before, size))
        uvloop.run(drive(target, _AT_ONCE, made)).check(b"201")
        running: set[bytes] = set()
        while len(running) < size - before:
            line = events.readline()
            if not line:
                raise LoadFailed(f"the watch ended when {len(running)} of {size - before} machines ran")
            if b'"phase":"Running"' in line and (found := _RUNNING.search(line)) is not None:
                running.add(found[1])


def _one_machine(target: Target, name: str) -> Iterator[tuple[str, float]]:
    """The life of one machine."""
    vm, vmi = f"{_KUBEVIRT}/virtualmachines/{name}", f"{_KUBEVIRT}/virtualmachineinstances/{name}"

    def runs() -> bool:
        return bool((_get(target, vmi) or {}).get("status", {}).get("phase") == "Running")

    def is_paused() -> bool:
        conditions = (_get(target, vmi) or {}).get("status", {}).get("conditions") or ()
        return any(each["type"] == "Paused" and each["status"] == "True" for each in conditions)

    began = time.monotonic()
    _post(target, f"{_KUBEVIRT}/virtualmachines", _machine(name, 0))
    yield "create until it runs", _until(runs, began)
    yield "pause", _act(target, f"virtualmachineinstances/{name}/pause", is_paused)
    yield "unpause", _act(target, f"virtualmachineinstances/{name}/unpause", lambda: not is_paused())
    snapshot = {"apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineSnapshot", "metadata": {"name": name}}
    snapshot["spec"] = {"source": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": name}}
    began = time.monotonic()
    _post(target, _SNAPSHOTS, snapshot)
    ready = f"{_SNAPSHOTS}/{name}"
    yield "snapshot until it is ready", _until(lambda: bool((_get(target, ready) or {}).get("status", {}).get("readyToUse")), began)
    yield "stop until it is off", _act(target, f"virtualmachines/{name}/stop", lambda: _get(target, vmi) is None)
    yield "start until it runs", _act(target, f"virtualmachines/{name}/start", runs)
    began = time.monotonic()
    call(target, "DELETE", vm)
    yield "delete until it is gone", _until(lambda: _get(target, vm) is None and _get(target, vmi) is None, began)


def _pool(target: Target, name: str) -> float:
    """The seconds until the machines of a new pool run; it is deleted then."""
    labels = {"pool": name}
    template = _machine(name, 0)
    template = {"metadata": {"labels": labels}, "spec": template["spec"]}
    pool = {"apiVersion": "pool.kubevirt.io/v1beta1", "kind": "VirtualMachinePool", "metadata": {"name": name}}
    pool["spec"] = {"replicas": _POOL, "selector": {"matchLabels": labels}, "virtualMachineTemplate": template}
    began = time.monotonic()
    _post(target, _POOLS, pool)
    seconds = _until(lambda: (_get(target, f"{_POOLS}/{name}") or {}).get("status", {}).get("readyReplicas") == _POOL, began)
    call(target, "DELETE", f"{_POOLS}/{name}")
    _until(lambda: _get(target, f"{_POOLS}/{name}") is None, time.monotonic())
    return seconds


def _quota(target: Target) -> float:
    """The seconds until a namespace with a quota of no machine refuses one."""
    began = time.monotonic()
    status, answer = call(
        target, "POST", _KUBEVIRT.replace(_NAMESPACE, _LIMITED) + "/virtualmachines", json.dumps(_machine("no", 0, _LIMITED)).encode()
    )
    if status != 403 or b"exceeded quota" not in answer:
        raise LoadFailed(f"the quota let a machine in: {status} {answer[:200]!r}")
    return time.monotonic() - began


def _machine(name: str, batch: int, namespace: str = _NAMESPACE) -> dict[str, Any]:
    """A small machine that is to run."""
    made = simulated.machine(name, namespace)
    made["spec"]["template"]["metadata"] = {"labels": {"batch": str(batch)}}
    return made


def _act(target: Target, action: str, done: Callable[[], bool]) -> float:
    began = time.monotonic()
    status, answer = call(target, "PUT", f"{_ACTIONS}/{action}", b"{}")
    if status >= 300:
        raise LoadFailed(f"{action} was answered with {status} {answer[:200]!r}")
    return _until(done, began)


def _until(done: Callable[[], bool], began: float) -> float:
    """The seconds since `began` when it is so."""
    while not done():
        if time.monotonic() - began > _TRIAL_SECONDS:
            raise LoadFailed(f"not within {_TRIAL_SECONDS:g} s")
        time.sleep(_PAUSE)
    return time.monotonic() - began


def _get(target: Target, path: str) -> dict[str, Any] | None:
    status, answer = call(target, "GET", path)
    if status == 404:
        return None
    if status != 200:
        raise LoadFailed(f"{path} was answered with {status} {answer[:200]!r}")
    found: dict[str, Any] = json.loads(answer)
    return found


def _post(target: Target, path: str, document: dict[str, Any]) -> None:
    status, answer = call(target, "POST", path, json.dumps(document).encode())
    if status != 201:
        raise LoadFailed(f"{path} was answered with {status} {answer[:200]!r}")
