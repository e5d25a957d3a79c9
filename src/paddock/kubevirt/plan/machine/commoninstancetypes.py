"""The instancetypes that are there from the start, under the names that guides and `virtctl create vm` use. Data.

u1  universal: ordinary machines         o1  overcommitted: like u1, with half of the memory reserved
cx1 compute: processors of their own     m1  memory: four times as much for each processor, in huge pages
n1  network: processors of their own     rt1 real time
"""

from collections.abc import Iterator

from paddock.base.jsondata import Data

GROUP = "instancetype.kubevirt.io"
API_VERSION = f"{GROUP}/v1beta1"
VERSION = "1"
_UNIVERSAL = (
    ("nano", 1, "512Mi"),
    ("micro", 1, "1Gi"),
    ("small", 1, "2Gi"),
    ("medium", 1, "4Gi"),
    ("2xmedium", 2, "4Gi"),
    ("large", 2, "8Gi"),
    ("xlarge", 4, "16Gi"),
    ("2xlarge", 8, "32Gi"),
    ("4xlarge", 16, "64Gi"),
    ("8xlarge", 32, "128Gi"),
)
_COMPUTE = (
    ("medium", 1, "2Gi"),
    ("large", 2, "4Gi"),
    ("xlarge", 4, "8Gi"),
    ("2xlarge", 8, "16Gi"),
    ("4xlarge", 16, "32Gi"),
    ("8xlarge", 32, "64Gi"),
)
_MEMORY = (("large", 2, "16Gi"), ("xlarge", 4, "32Gi"), ("2xlarge", 8, "64Gi"), ("4xlarge", 16, "128Gi"), ("8xlarge", 32, "256Gi"))
_NETWORK = (
    ("medium", 4, "4Gi"),
    ("large", 4, "8Gi"),
    ("xlarge", 4, "16Gi"),
    ("2xlarge", 8, "32Gi"),
    ("4xlarge", 16, "64Gi"),
    ("8xlarge", 32, "128Gi"),
)
_REAL_TIME = tuple(row for row in _UNIVERSAL if row[0] not in ("nano", "2xmedium"))
_OWN_CPU: Data = {"dedicatedCPUPlacement": True, "isolateEmulatorThread": True}
_NUMA: Data = {"numa": {"guestMappingPassthrough": {}}}
# The names of those with the larger pages end with these letters.
_LARGER_PAGES = "1gi"
_TITLES = {
    "u1": "general.purpose",
    "o1": "overcommitted",
    "cx1": "compute.exclusive",
    "m1": "memory.intensive",
    "n1": "network",
    "rt1": "realtime",
}


def instancetypes() -> Iterator[Data]:
    """All of them, of cluster scope."""
    for size, cpus, memory in _UNIVERSAL:
        yield _made("u1", size, {"cpu": {"guest": cpus}, "memory": {"guest": memory}})
        if size != "2xmedium":
            yield _made("o1", size, {"cpu": {"guest": cpus}, "memory": {"guest": memory, "overcommitPercent": 50}})
    for pages in ("2Mi", "1Gi"):
        suffix = _LARGER_PAGES if pages == "1Gi" else ""
        huge = {"hugepages": {"pageSize": pages}}
        for size, cpus, memory in _COMPUTE:
            spec = {"cpu": {"guest": cpus, **_OWN_CPU, **_NUMA}, "memory": {"guest": memory, **huge}, "ioThreadsPolicy": "auto"}
            yield _made("cx1", size + suffix, spec)
        for size, cpus, memory in _MEMORY:
            yield _made("m1", size + suffix, {"cpu": {"guest": cpus}, "memory": {"guest": memory, **huge}})
    huge = {"hugepages": {"pageSize": "1Gi"}}
    for size, cpus, memory in _NETWORK:
        yield _made("n1", size, {"cpu": {"guest": cpus, **_OWN_CPU}, "memory": {"guest": memory, **huge}, "ioThreadsPolicy": "auto"})
    for size, cpus, memory in _REAL_TIME:
        cpu = {"guest": cpus, **_OWN_CPU, **_NUMA, "realtime": {}}
        yield _made("rt1", size, {"cpu": cpu, "memory": {"guest": memory, **huge}})


def _made(series: str, size: str, spec: Data) -> Data:
    facts = {
        "class": _TITLES[series],
        "cpu": str(spec["cpu"]["guest"]),
        "memory": spec["memory"]["guest"],
        "size": size,
        "common-instancetypes-version": VERSION,
    }
    metadata = {"name": f"{series}.{size}", "labels": {f"{GROUP}/{key}": value for key, value in facts.items()}}
    return {"apiVersion": API_VERSION, "kind": "VirtualMachineClusterInstancetype", "metadata": metadata, "spec": spec}
