"""The choice of a place: each constraint has a case that it allows and one that it does not."""

from typing import Any

import pytest

from paddock.contract import messages as m
from paddock.contract.extensionmessages import DatastoreInfo
from paddock.dialects.virtrigaud.kinds.machine import ProviderPlacement
from paddock.dialects.virtrigaud.kinds.provider import ProviderDefaults
from paddock.dialects.virtrigaud.kinds.vmplacementpolicy import VMPlacementPolicy
from paddock.dialects.virtrigaud.plan.placement import choice, inventory
from paddock.dialects.virtrigaud.plan.placement.checks import PlacementSubject
from paddock.dialects.virtrigaud.plan.placement.choice import PlacementOutcome, PlacementRequest
from paddock.dialects.virtrigaud.plan.placement.decision import PlacementDecision
from paddock.dialects.virtrigaud.plan.placement.inventory import PlacedMachine, PlacementInventory
from paddock.kubernetes.meta.wire import from_data

Data = dict[str, Any]
GIB = 1 << 30
ZONE, REGION, CLUSTER = inventory.ZONE, inventory.REGION, inventory.CLUSTER
WEB = PlacementSubject("web", "default", {"app": "web"}, cpu=4, memory_mib=4096, disk=40 * GIB)


def host(id: str, zone: str = "", cluster: str = "", memory: int = 65536, **members: Any) -> m.HostInfo:
    labels = {ZONE: zone, REGION: zone[:2], CLUSTER: cluster, **members.pop("labels", {})}
    given = {"allocatable_cpu": 16, "allocatable_mem_mib": memory, "allocatable_storage": 1 << 40, "health": m.HostHealth.READY, **members}
    return m.HostInfo(id=id, address=f"{id}.lab", labels={key: value for key, value in labels.items() if value}, **given)


HOSTS = (
    host("h1", "eu-a", "east", labels={"disk": "ssd", "virtrigaud.io/security-group": "dmz", "virtrigaud.io/trust-level": "trusted"}),
    host(
        "h2",
        "eu-b",
        "west",
        memory=32768,
        cpu_features=("avx512",),
        labels={"feature.virtrigaud.io/tpm": "true", "virtrigaud.io/isolation-level": "strict"},
    ),
    host(
        "h3", "us-a", "west", memory=16384, allocatable_cpu=2, allocatable_storage=GIB, labels={"feature.virtrigaud.io/secure-boot": "true"}
    ),
)
STORES = (
    DatastoreInfo(name="d1", pod="gold", free_bytes=100 * GIB, total_bytes=200 * GIB, accessible=True),
    DatastoreInfo(name="d2", pod="gold", free_bytes=300 * GIB, total_bytes=400 * GIB, accessible=True),
    DatastoreInfo(name="d3", free_bytes=900 * GIB, total_bytes=1000 * GIB, accessible=True),
)


def there(name: str, host: str, **members: Any) -> PlacedMachine:
    return PlacedMachine(name=name, namespace=members.pop("namespace", "default"), host=host, cpu=4, memory_mib=4096, disk=GIB, **members)


def world(*machines: PlacedMachine, hosts: Any = HOSTS, stores: Any = STORES) -> PlacementInventory:
    return PlacementInventory(
        hosts=tuple(inventory.host(each, machines) for each in hosts) if hosts is not None else None,
        datastores=tuple(inventory.datastore(each, machines) for each in stores) if stores is not None else None,
        machines=machines,
        namespaces={"default": {"team": "a"}, "other": {"team": "b"}},
    )


def policy(**spec: Any) -> VMPlacementPolicy:
    return from_data({"metadata": {"name": "p", "namespace": "default", "uid": "uid-p"}, "spec": spec}, VMPlacementPolicy)


def chosen(given: Data | None, around: PlacementInventory | None = None, **members: Any) -> PlacementOutcome:
    request = PlacementRequest(machine=members.pop("machine", WEB), policy=policy(**given) if given is not None else None, **members)
    return choice.choose(request, world() if around is None else around)


TERM = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "db"}}}
DB1 = there("db", "h1", labels={"app": "db"})
WEB1 = there("web-0", "h1", labels={"app": "web"}, policy="p")
ALONE = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "host"}
FULL = tuple(there(f"vm-{number}", f"h{number}") for number in (1, 2, 3))

# constraint, machines there, the host that it leaves as the best; None: it leaves none
HARD: list[tuple[str, Data, tuple[PlacedMachine, ...], str | None]] = [
    ("hosts", {"hard": {"hosts": ["h2", "h3"]}}, (), "h2"),
    ("hosts", {"hard": {"hosts": ["h1.lab"]}}, (), "h1"),
    ("hosts", {"hard": {"hosts": ["h9"]}}, (), None),
    ("clusters", {"hard": {"clusters": ["west"]}}, (), "h2"),
    ("clusters", {"hard": {"clusters": ["north"]}}, (), None),
    ("zones", {"hard": {"zones": ["us-a"]}}, (), "h3"),
    ("zones", {"hard": {"zones": ["us-z"]}}, (), None),
    ("regions", {"hard": {"regions": ["us"]}}, (), "h3"),
    ("regions", {"hard": {"regions": ["ap"]}}, (), None),
    ("nodeSelector", {"hard": {"nodeSelector": {"disk": "ssd"}}}, (), "h1"),
    ("nodeSelector", {"hard": {"nodeSelector": {"disk": "tape"}}}, (), None),
    ("excludedHosts", {"hard": {"excludedHosts": ["h1"]}}, (), "h2"),
    ("excludedHosts", {"hard": {"excludedHosts": ["h1", "h2", "h3"]}}, (), None),
    ("excludedClusters", {"hard": {"excludedClusters": ["east"]}}, (), "h2"),
    ("excludedClusters", {"hard": {"excludedClusters": ["east", "west"]}}, (), None),
    ("hostAffinity", {"affinity": {"hostAffinity": {"enabled": True, "preferredHosts": ["h3"], "scope": "strict"}}}, (), "h3"),
    ("hostAffinity", {"affinity": {"hostAffinity": {"enabled": True, "preferredHosts": ["h9"], "scope": "strict"}}}, (), None),
    ("clusterAffinity", {"affinity": {"clusterAffinity": {"enabled": True, "preferredClusters": ["west"], "scope": "strict"}}}, (), "h2"),
    ("clusterAffinity", {"affinity": {"clusterAffinity": {"enabled": True, "preferredClusters": ["x"], "scope": "strict"}}}, (), None),
    ("zoneAffinity", {"affinity": {"zoneAffinity": {"enabled": True, "preferredZones": ["eu-b"], "scope": "strict"}}}, (), "h2"),
    ("zoneAffinity", {"affinity": {"zoneAffinity": {"enabled": True, "preferredZones": ["x"], "scope": "strict"}}}, (), None),
    ("vmAffinity", {"affinity": {"vmAffinity": {"requiredDuringScheduling": [TERM]}}}, (there("db", "h3", labels={"app": "db"}),), "h3"),
    ("vmAffinity", {"affinity": {"vmAffinity": {"requiredDuringScheduling": [TERM]}}}, (), None),
    ("vmAffinity", {"affinity": {"vmAffinity": {"requiredDuringScheduling": [ALONE]}}}, (), "h1"),
    (
        "vmAffinity",
        {"affinity": {"vmAffinity": {"requiredDuringScheduling": [{**TERM, "topologyKey": ZONE}]}}},
        (there("db", "h2", labels={"app": "db"}),),
        "h2",
    ),
    ("vmAntiAffinity", {"antiAffinity": {"vmAntiAffinity": {"requiredDuringScheduling": [TERM]}}}, (DB1,), "h2"),
    (
        "vmAntiAffinity",
        {"antiAffinity": {"vmAntiAffinity": {"requiredDuringScheduling": [TERM]}}},
        tuple(there(f"db-{each}", each, labels={"app": "db"}) for each in ("h1", "h2", "h3")),
        None,
    ),
    (
        "vmAntiAffinity",
        {"antiAffinity": {"vmAntiAffinity": {"requiredDuringScheduling": [{**TERM, "topologyKey": "region"}]}}},
        (DB1,),
        "h3",
    ),
    (
        "applicationAffinity",
        {"affinity": {"applicationAffinity": {"enabled": True, "scope": "strict"}}},
        (there("web-0", "h2", labels={"app": "web"}),),
        "h2",
    ),
    (
        "applicationAffinity",
        {"affinity": {"applicationAffinity": {"enabled": True, "scope": "strict"}}},
        (there("web-0", "h9", labels={"app": "web"}),),
        None,
    ),
    ("applicationAntiAffinity", {"antiAffinity": {"applicationAntiAffinity": {"enabled": True, "scope": "strict"}}}, (WEB1,), "h2"),
    (
        "applicationAntiAffinity",
        {"antiAffinity": {"applicationAntiAffinity": {"enabled": True, "scope": "strict"}}},
        tuple(there(f"web-{each}", each, labels={"app": "web"}) for each in ("h1", "h2", "h3")),
        None,
    ),
    ("hostAntiAffinity", {"antiAffinity": {"hostAntiAffinity": {"enabled": True, "maxVMsPerHost": 1, "scope": "strict"}}}, (DB1,), "h2"),
    ("hostAntiAffinity", {"antiAffinity": {"hostAntiAffinity": {"enabled": True, "maxVMsPerHost": 1, "scope": "strict"}}}, FULL, None),
    ("hostAntiAffinity", {"antiAffinity": {"hostAntiAffinity": {"enabled": True, "maxVMsPerHost": 2, "scope": "strict"}}}, FULL, "h1"),
    # Without a number only machines of the same policy count.
    ("hostAntiAffinity", {"antiAffinity": {"hostAntiAffinity": {"enabled": True, "scope": "strict"}}}, FULL, "h1"),
    ("hostAntiAffinity", {"antiAffinity": {"hostAntiAffinity": {"enabled": True, "scope": "strict"}}}, (WEB1,), "h2"),
    (
        "clusterAntiAffinity",
        {"antiAffinity": {"clusterAntiAffinity": {"enabled": True, "maxVMsPerCluster": 1, "scope": "strict"}}},
        (DB1,),
        "h2",
    ),
    (
        "clusterAntiAffinity",
        {"antiAffinity": {"clusterAntiAffinity": {"enabled": True, "maxVMsPerCluster": 1, "scope": "strict"}}},
        FULL,
        None,
    ),
    ("zoneAntiAffinity", {"antiAffinity": {"zoneAntiAffinity": {"enabled": True, "maxVMsPerZone": 1, "scope": "strict"}}}, (DB1,), "h2"),
    ("zoneAntiAffinity", {"antiAffinity": {"zoneAntiAffinity": {"enabled": True, "maxVMsPerZone": 1, "scope": "strict"}}}, FULL, None),
    ("minCPUPerHost", {"resourceConstraints": {"minCPUPerHost": 16}}, (), "h1"),
    ("minCPUPerHost", {"resourceConstraints": {"minCPUPerHost": 17}}, (), None),
    ("minMemoryPerHost", {"resourceConstraints": {"minMemoryPerHost": "64Gi"}}, (), "h1"),
    ("minMemoryPerHost", {"resourceConstraints": {"minMemoryPerHost": "65Gi"}}, (), None),
    ("minDiskSpacePerHost", {"resourceConstraints": {"minDiskSpacePerHost": "1Ti"}}, (), "h1"),
    ("minDiskSpacePerHost", {"resourceConstraints": {"minDiskSpacePerHost": "2Ti"}}, (), None),
    # 4 of 16 processors are used, and 4 come: half of 20 is too little for h3 alone.
    ("maxCPUUtilization", {"resourceConstraints": {"maxCPUUtilization": 40}}, (DB1,), "h1"),
    ("maxCPUUtilization", {"resourceConstraints": {"maxCPUUtilization": 24}}, (), None),
    ("maxMemoryUtilization", {"resourceConstraints": {"maxMemoryUtilization": 7}}, (), "h1"),
    ("maxMemoryUtilization", {"resourceConstraints": {"maxMemoryUtilization": 6}}, (), None),
    ("maxDiskUtilization", {"resourceConstraints": {"maxDiskUtilization": 4}}, (), "h1"),
    ("maxDiskUtilization", {"resourceConstraints": {"maxDiskUtilization": 3}}, (), None),
    ("requiredFeatures", {"resourceConstraints": {"requiredFeatures": ["avx512"]}}, (), "h2"),
    ("requiredFeatures", {"resourceConstraints": {"requiredFeatures": ["avx512", "sgx"]}}, (), None),
    ("requireTPM", {"securityConstraints": {"requireTPM": True}}, (), "h2"),
    ("requireSecureBoot", {"securityConstraints": {"requireSecureBoot": True}}, (), "h3"),
    ("requireEncryptedStorage", {"securityConstraints": {"requireEncryptedStorage": True}}, (), None),
    ("requireNUMATopology", {"securityConstraints": {"requireNUMATopology": True}}, (), None),
    ("allowedSecurityGroups", {"securityConstraints": {"allowedSecurityGroups": ["dmz"]}}, (), "h1"),
    ("allowedSecurityGroups", {"securityConstraints": {"allowedSecurityGroups": ["core"]}}, (), None),
    ("deniedSecurityGroups", {"securityConstraints": {"deniedSecurityGroups": ["dmz"]}}, (), "h2"),
    ("isolationLevel", {"securityConstraints": {"isolationLevel": "basic"}}, (), "h2"),
    ("isolationLevel", {"securityConstraints": {"isolationLevel": "maximum"}}, (), None),
    ("trustLevel", {"securityConstraints": {"trustLevel": "trusted"}}, (), "h1"),
    ("trustLevel", {"securityConstraints": {"trustLevel": "highly-trusted"}}, (), None),
]


@pytest.mark.spec("virtrigaud", 95)
@pytest.mark.parametrize(("name", "given", "machines", "expected"), HARD)
def test_a_constraint_on_hosts(name: str, given: Data, machines: tuple[PlacedMachine, ...], expected: str | None) -> None:
    found = chosen(given, world(*machines))
    if expected is None:
        assert found.decision is None and any(name in each for each in found.violations), found
    else:
        assert found.decision is not None and found.decision.host == expected, found


SCOPES = [
    ({"affinity": {"hostAffinity": {"enabled": True, "preferredHosts": ["h3"]}}}, (), "h3"),
    (
        {"affinity": {"hostAffinity": {"enabled": False, "preferredHosts": ["h3"], "scope": "strict"}}, "soft": {"zones": ["eu-a"]}},
        (),
        "h1",
    ),
    ({"affinity": {"zoneAffinity": {"enabled": True, "preferredZones": ["eu-b"]}}}, (), "h2"),
    ({"antiAffinity": {"hostAntiAffinity": {"enabled": True, "maxVMsPerHost": 1}}}, (DB1,), "h2"),
    ({"soft": {"zones": ["us-a"]}}, (), "h3"),
    ({"soft": {"excludedHosts": ["h1"]}}, (), "h2"),
    ({"resourceConstraints": {"preferredFeatures": ["avx512"]}}, (), "h2"),
    # 50 for the zone, against 60 for the neighbor
    (
        {
            "soft": {"zones": ["us-a"]},
            "affinity": {"vmAffinity": {"preferredDuringScheduling": [{"weight": 60, "vmAffinityTerm": TERM}]}},
        },
        (there("db", "h2", labels={"app": "db"}),),
        "h2",
    ),
    (
        {
            "weight": 70,
            "soft": {"zones": ["us-a"]},
            "affinity": {"vmAffinity": {"preferredDuringScheduling": [{"weight": 60, "vmAffinityTerm": TERM}]}},
        },
        (there("db", "h2", labels={"app": "db"}),),
        "h3",
    ),
]


@pytest.mark.spec("virtrigaud", 95)
@pytest.mark.parametrize(("given", "machines", "expected"), SCOPES)
def test_what_should_hold_weighs(given: Data, machines: tuple[PlacedMachine, ...], expected: str) -> None:
    found = chosen(given, world(*machines))
    assert found.decision is not None and found.decision.host == expected


def test_a_preference_that_does_not_hold_is_named() -> None:
    found = chosen({"soft": {"zones": ["nowhere"]}})
    assert found.decision is not None and found.unmet == ("soft.zones [nowhere]",)


TAINTED = (host("h1", labels={"virtrigaud.io/taint/gpu": "yes:NoSchedule"}), host("h2", memory=16384))
TOLERATIONS = [
    ({}, "h2"),
    ({"tolerations": [{"key": "gpu", "operator": "Exists"}]}, "h1"),
    ({"tolerations": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}, "h1"),
    ({"tolerations": [{"key": "gpu", "value": "no"}]}, "h2"),
    ({"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}]}, "h2"),
]


@pytest.mark.spec("virtrigaud", 95)
@pytest.mark.parametrize(("given", "expected"), TOLERATIONS)
def test_taints(given: Data, expected: str) -> None:
    found = chosen({"hard": {"excludedHosts": ["h9"], **given}}, world(hosts=TAINTED))
    assert found.decision is not None and found.decision.host == expected


def test_taints_of_all_hosts_leave_no_place() -> None:
    found = chosen({"hard": {"excludedHosts": ["h9"]}}, world(hosts=TAINTED[:1]))
    assert found.violations == ("hard.tolerations rejects 1 of 1 hosts",)


def test_hosts_that_are_not_ready_or_too_small_are_left_out() -> None:
    hosts = (host("h1", health=m.HostHealth.NOT_READY), host("h2", memory=4095), host("h3", memory=4096))
    found = chosen({"hard": {"excludedHosts": ["h9"]}}, world(hosts=hosts))
    assert found.decision is not None and found.decision.host == "h3"
    # A machine that is on its way there takes the rest.
    found = chosen({"hard": {"excludedHosts": ["h9"]}}, world(there("new", "h3", expected=True), hosts=hosts))
    assert found.decision is None and "4096 MiB of free memory" in " ".join(found.violations)


# --- the machine's own placement ----------------------------------------------------------------------------------------------


@pytest.mark.spec("virtrigaud", 47)
def test_the_machines_own_placement_is_a_further_restriction() -> None:
    found = chosen({"hard": {"clusters": ["west"]}}, own=ProviderPlacement(host="h3"))
    assert found.decision is not None and found.decision.host == "h3"
    found = chosen({"hard": {"clusters": ["west"]}}, own=ProviderPlacement(host="h1"))
    assert found.violations == ("placement.host h1 rejects 2 of 3 hosts", "hard.clusters [west] rejects 1 of 3 hosts")
    found = chosen({"hard": {"zones": ["eu-a"]}}, own=ProviderPlacement(cluster="west"))
    assert found.decision is None


@pytest.mark.spec("virtrigaud", 47)
def test_what_nobody_can_check_is_named() -> None:
    blind = world(hosts=None, stores=None)
    hard: Data = {"hard": {"zones": ["eu-a"], "datastores": ["d1"]}, "resourceConstraints": {"minCPUPerHost": 1}}
    found = chosen(hard, blind)
    assert found.violations == (
        "hard.zones [eu-a] cannot be checked because the Provider lists no hosts",
        "resourceConstraints.minCPUPerHost 1 cannot be checked because the Provider lists no hosts",
        "hard.datastores [d1] cannot be checked because the Provider lists no datastores",
    )
    found = chosen({"soft": {"zones": ["eu-a"]}}, blind)
    assert found.decision is not None and found.unchecked == ("soft.zones [eu-a]",)


@pytest.mark.spec("virtrigaud", 47)
def test_a_name_in_the_machines_placement_can_be_judged_without_a_list() -> None:
    blind = world(hosts=None, stores=None)
    given: Data = {"hard": {"hosts": ["h1"], "datastores": ["d1"]}}
    found = chosen(given, blind, own=ProviderPlacement(host="h1", datastore="d1"))
    assert found.decision is not None and (found.decision.host, found.decision.datastore) == ("h1", "d1")
    found = chosen(given, blind, own=ProviderPlacement(host="h2", datastore="d2"))
    assert found.violations == (
        "hard.hosts [h1] rejects the machine's placement",
        "hard.datastores [d1] rejects the machine's placement",
    )


NAMES = [
    ({"folders": ["a", "b"]}, {}, {}, ("a", "")),
    ({"folders": ["a", "b"]}, {"folder": "b"}, {}, ("b", "")),
    ({"folders": ["a", "b"]}, {"folder": "c"}, {}, None),
    # What the Provider has by default needs no decision.
    ({"folders": ["a", "b"]}, {}, {"folder": "b"}, ("", "")),
    ({"folders": ["a", "b"]}, {}, {"folder": "c"}, ("a", "")),
    ({"resourcePools": ["x"]}, {}, {}, ("", "x")),
    ({"resourcePools": ["x"]}, {"resourcePool": "y"}, {}, None),
]


@pytest.mark.spec("virtrigaud", 95)
@pytest.mark.parametrize(("hard", "own", "defaults", "expected"), NAMES)
def test_folders_and_resource_pools(hard: Data, own: Data, defaults: Data, expected: tuple[str, str] | None) -> None:
    found = chosen({"hard": hard}, own=ProviderPlacement(**own), defaults=ProviderDefaults(**defaults))
    if expected is None:
        assert found.decision is None and "rejects placement" in found.violations[0]
    else:
        assert found.decision is not None and (found.decision.folder, found.decision.resource_pool) == expected


@pytest.mark.spec("virtrigaud", 95)
def test_networks() -> None:
    assert chosen({"hard": {"networks": ["lan"]}}, networks=(("lan", "eth0"),)).decision is not None
    found = chosen({"hard": {"networks": ["lan"]}}, networks=(("lan", "eth0"), ("dmz", "eth1")))
    assert found.violations == ("hard.networks [lan] rejects dmz",)


# --- datastores -----------------------------------------------------------------------------------------------------------


STORE_CASES = [
    ({"hard": {"datastores": ["d1", "d2"]}}, (), "d2"),
    ({"hard": {"datastores": ["d9"]}}, (), None),
    ({"hard": {"excludedDatastores": ["d3"]}}, (), "d2"),
    ({"hard": {"excludedDatastores": ["d1", "d2", "d3"]}}, (), None),
    ({"affinity": {"datastoreAffinity": {"enabled": True, "preferredDatastores": ["d1"], "scope": "strict"}}}, (), "d1"),
    ({"affinity": {"datastoreAffinity": {"enabled": True, "preferredDatastores": ["d1"]}}}, (), "d1"),
    ({"affinity": {"datastoreAffinity": {"enabled": True, "preferredDatastores": ["d9"], "scope": "strict"}}}, (), None),
    (
        {"antiAffinity": {"datastoreAntiAffinity": {"enabled": True, "maxVMsPerDatastore": 1, "scope": "strict"}}},
        (there("db", "h1", datastore="d3"),),
        "d2",
    ),
    (
        {"antiAffinity": {"datastoreAntiAffinity": {"enabled": True, "maxVMsPerDatastore": 1, "scope": "strict"}}},
        tuple(there(f"db-{each}", "h1", datastore=each) for each in ("d1", "d2", "d3")),
        None,
    ),
    (
        {"antiAffinity": {"vmAntiAffinity": {"requiredDuringScheduling": [{**TERM, "topologyKey": "datastore"}]}}},
        (there("db", "h1", datastore="d3", labels={"app": "db"}),),
        "d2",
    ),
]


@pytest.mark.spec("virtrigaud", 95)
@pytest.mark.parametrize(("given", "machines", "expected"), STORE_CASES)
def test_a_constraint_on_datastores(given: Data, machines: tuple[PlacedMachine, ...], expected: str | None) -> None:
    found = chosen(given, world(*machines))
    assert (found.decision.datastore if found.decision is not None else None) == expected, found
    if found.decision is not None:
        assert found.decision.host == "", "nothing depends on the host"


def store(name: str, free: int, **members: Any) -> DatastoreInfo:
    return DatastoreInfo(name=name, free_bytes=free * GIB, **{"pod": "gold", "accessible": True, **members})


PODS: list[tuple[tuple[DatastoreInfo, ...], str | None]] = [
    ((store("a", 50), store("b", 90), store("c", 70)), "b"),
    ((store("b", 90), store("a", 90)), "a"),
    ((store("a", 50), store("b", 90, maintenance=True)), "a"),
    ((store("a", 50), store("b", 90, accessible=False)), "a"),
    ((store("a", 50), store("b", 90, pod="silver")), "a"),
    ((store("a", 40),), "a"),
    ((store("a", 39), store("b", 90, maintenance=True), store("c", 99, accessible=False)), None),
    ((), None),
]


@pytest.mark.spec("virtrigaud", 46)
@pytest.mark.parametrize(("stores", "expected"), PODS)
def test_the_member_with_most_free_space(stores: tuple[DatastoreInfo, ...], expected: str | None) -> None:
    found = chosen(None, world(stores=stores), own=ProviderPlacement(storagePod="gold"))
    assert (found.decision.datastore if found.decision is not None else None) == expected
    if found.decision is not None:
        assert found.decision.storage_pod == "gold"


@pytest.mark.spec("virtrigaud", 46)
def test_why_no_member_can_have_the_machine() -> None:
    stores = (store("a", 39), store("b", 90, maintenance=True), store("c", 99, accessible=False))
    found = chosen(None, world(stores=stores), own=ProviderPlacement(storagePod="gold"))
    why = "a has 39 GiB free, and the machine needs 40 GiB, b is in maintenance, c is not accessible"
    assert found.violations == (f"storagePod gold has no datastore for the machine: {why}",)


@pytest.mark.spec("virtrigaud", 46)
def test_a_machine_on_its_way_counts_and_a_choice_stands() -> None:
    stores = (store("a", 100), store("b", 90))
    later = PlacedMachine(name="new", namespace="default", datastore="a", disk=40 * GIB, expected=True)
    found = chosen(None, world(later, stores=stores), own=ProviderPlacement(storagePod="gold"))
    assert found.decision is not None and found.decision.datastore == "b"
    before = PlacementDecision(datastore="b", storage_pod="gold")
    found = chosen(None, world(stores=stores), own=ProviderPlacement(storagePod="gold"), before=before)
    assert found.decision is not None and found.decision.datastore == "b"


def test_a_pod_of_a_provider_without_a_list_is_left_to_the_provider() -> None:
    found = chosen(None, world(hosts=None, stores=None), own=ProviderPlacement(storagePod="gold"))
    assert found.decision == PlacementDecision()


def test_the_levels_of_datastore_and_pod() -> None:
    defaults = ProviderDefaults(storagePod="gold")
    for own, pod in ((ProviderPlacement(), "gold"), (ProviderPlacement(datastore="d"), ""), (ProviderPlacement(storagePod="x"), "x")):
        assert PlacementRequest(machine=WEB, own=own, defaults=defaults).pod == pod


# --- terms ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("term", "namespace", "apart"),
    [
        ({}, "default", True),
        ({}, "other", False),
        ({"namespaces": ["other"]}, "other", True),
        ({"namespaces": ["other"]}, "default", False),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, "other", True),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, "default", False),
        ({"namespaceSelector": {}}, "other", True),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, "default", False),
    ],
)
def test_the_machines_that_a_term_means(term: Data, namespace: str, apart: bool) -> None:
    given: Data = {"antiAffinity": {"vmAntiAffinity": {"requiredDuringScheduling": [{**TERM, **term}]}}}
    found = chosen(given, world(there("db", "h1", namespace=namespace, labels={"app": "db"})))
    assert found.decision is not None and (found.decision.host != "h1") is apart
