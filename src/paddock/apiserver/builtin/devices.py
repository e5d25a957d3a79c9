"""Devices that a driver offers and that somebody claims (`resource.k8s.io/v1`). Stored for controllers that come from outside.

Nothing here allocates a device: a machine gets its host devices by KubeVirt's fields.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from paddock.apiserver.builtin.tables import Cells, age_of, column, name_of
from paddock.apiserver.resources.strategy import CustomStrategy, Data, Strategy, WriteContext
from paddock.meta.conditions import Condition
from paddock.meta.objects import Resource
from paddock.meta.storage import Quantities
from paddock.schema import finding
from paddock.schema.field import Field, Freeform, Object, Time
from paddock.schema.finding import Finding, Path
from paddock.schema.kind import AGE, Column, Kind

GROUP = "resource.k8s.io"
_RULE = "core/device"
_MODES = ("All", "ExactCount")
_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
Driver = Annotated[str, Field("Name of the driver.", required=True, min_length=1, max_length=63)]
Label = Annotated[str, Field("Its name.", required=True, min_length=1, max_length=63, format="dns1123-label")]


class CELSelector(Object):
    """A condition on devices."""

    expression: Annotated[str, Field("The condition, in CEL.", required=True, min_length=1, max_length=10240)] = ""


class Selector(Object):
    """A CEL expression that selects devices."""

    cel: Annotated[CELSelector | None, Field("A condition in CEL.")] = None


Selectors = Annotated[list[Selector] | None, Field("Conditions, all of which a device meets.", max_items=32)]


class Opaque(Object):
    """Parameters that one driver reads."""

    driver: Driver = ""
    parameters: Annotated[Freeform | None, Field("The parameters.")] = None


class Configuration(Object):
    """Parameters for drivers."""

    opaque: Annotated[Opaque | None, Field("Parameters that one driver reads.")] = None


class ClaimConfiguration(Configuration):
    """Parameters for the devices of some requests."""

    requests: Annotated[list[str] | None, Field("The requests; default: all.", max_items=32)] = None


class AllocationConfiguration(ClaimConfiguration):
    """Parameters of an allocation."""

    source: Annotated[str, Field("Where they come from.", required=True, enum=("FromClass", "FromClaim"))] = ""


class ClassSpec(Object):
    """Devices of a class, and their configuration."""

    selectors: Selectors = None
    config: Annotated[list[Configuration] | None, Field("Parameters.", max_items=32)] = None
    extendedResourceName: Annotated[str | None, Field("A resource of pods that the class stands for.")] = None


class DeviceClass(Resource):
    """A kind of device."""

    spec: Annotated[ClassSpec, Field("Which devices.", required=True)] = ClassSpec()


class Capacity(Object):
    """An amount of a device's capacity."""

    requests: Annotated[Quantities | None, Field("Amounts.")] = None


class ExactRequest(Object):
    """Devices of one class."""

    deviceClassName: Annotated[str, Field("The class.", required=True, min_length=1)] = ""
    selectors: Selectors = None
    allocationMode: Annotated[str | None, Field("How many devices are meant.", enum=_MODES)] = None
    count: Annotated[int | None, Field("How many.")] = None
    adminAccess: Annotated[bool | None, Field("Whether devices in use are given, too.")] = None
    tolerations: Annotated[list[Freeform] | None, Field("Taints that do not matter.", max_items=16)] = None
    capacity: Annotated[Capacity | None, Field("How much of a device.")] = None


class SubRequest(Object):
    """One alternative."""

    name: Label = ""
    deviceClassName: Annotated[str, Field("The class.", required=True, min_length=1)] = ""
    selectors: Selectors = None
    allocationMode: Annotated[str | None, Field("How many devices are meant.", enum=_MODES)] = None
    count: Annotated[int | None, Field("How many.")] = None
    tolerations: Annotated[list[Freeform] | None, Field("Taints that do not matter.", max_items=16)] = None
    capacity: Annotated[Capacity | None, Field("How much of a device.")] = None


class Request(Object):
    """Devices that are needed."""

    name: Label = ""
    exactly: Annotated[ExactRequest | None, Field("Devices of one class.")] = None
    firstAvailable: Annotated[list[SubRequest] | None, Field("Alternatives, the best first.", max_items=8)] = None


class Constraint(Object):
    """A constraint that several devices satisfy together."""

    requests: Annotated[list[str] | None, Field("The requests; default: all.", max_items=32)] = None
    matchAttribute: Annotated[str | None, Field("An attribute that is equal.")] = None
    distinctAttribute: Annotated[str | None, Field("An attribute that differs.")] = None


class DeviceClaim(Object):
    """Devices that belong together."""

    requests: Annotated[list[Request] | None, Field("Devices that are needed.", max_items=32)] = None
    constraints: Annotated[list[Constraint] | None, Field("What they have in common.", max_items=32)] = None
    config: Annotated[list[ClaimConfiguration] | None, Field("Parameters.", max_items=32)] = None


class ClaimSpec(Object):
    """Requests for devices."""

    devices: Annotated[DeviceClaim, Field("Devices.")] = DeviceClaim()


class DeviceAllocation(Object):
    """Devices that were given."""

    results: Annotated[list[Freeform] | None, Field("The devices.", max_items=32)] = None
    config: Annotated[list[AllocationConfiguration] | None, Field("Parameters.", max_items=64)] = None


class Allocation(Object):
    """Devices allocated to a claim."""

    devices: Annotated[DeviceAllocation, Field("Devices.")] = DeviceAllocation()
    nodeSelector: Annotated[Freeform | None, Field("Nodes that reach them.")] = None
    allocationTimestamp: Annotated[Time | None, Field("When.")] = None


class Consumer(Object):
    """Somebody who may use the claim."""

    apiGroup: Annotated[str | None, Field("Its group.")] = None
    resource: Annotated[str, Field("Its resource.", required=True, min_length=1)] = ""
    name: Annotated[str, Field("Its name.", required=True, min_length=1)] = ""
    uid: Annotated[str, Field("Its UID.", required=True, min_length=1)] = ""


class DeviceStatus(Object):
    """The state of a device, as its driver reports it."""

    driver: Driver = ""
    pool: Annotated[str, Field("Its pool.", required=True, min_length=1)] = ""
    device: Annotated[str, Field("Its name.", required=True, min_length=1)] = ""
    shareID: Annotated[str | None, Field("Which part of it.")] = None
    conditions: Annotated[list[Condition] | None, Field("Conditions.", max_items=8, keys=("type",))] = None
    data: Annotated[Freeform | None, Field("What the driver reports.")] = None
    networkData: Annotated[Freeform | None, Field("Addresses of a network device.")] = None


class ClaimStatus(Object):
    """The allocation of a claim, and its consumers."""

    allocation: Annotated[Allocation | None, Field("What was given.")] = None
    reservedFor: Annotated[list[Consumer] | None, Field("Who may use it.", max_items=256, keys=("uid",))] = None
    devices: Annotated[list[DeviceStatus] | None, Field("What drivers report.", keys=("driver", "device", "pool"))] = None


class ResourceClaim(Resource):
    """Devices that somebody needs."""

    spec: Annotated[ClaimSpec, Field("What is claimed.", required=True)] = ClaimSpec()
    status: Annotated[ClaimStatus | None, Field("What was given.")] = None


class TemplateSpec(Object):
    """The metadata and spec of the claims of a template."""

    metadata: Annotated[Freeform | None, Field("Labels and annotations of the claims.")] = None
    spec: Annotated[ClaimSpec, Field("What they claim.", required=True)] = ClaimSpec()


class ResourceClaimTemplate(Resource):
    """A template for the claims of pods. No pod runs here, so no claim comes of it."""

    spec: Annotated[TemplateSpec, Field("What they are made of.", required=True)] = TemplateSpec()


class Pool(Object):
    """Devices of a driver that belong together."""

    name: Annotated[str, Field("Its name.", required=True, min_length=1, max_length=253)] = ""
    generation: Annotated[int, Field("Which edition of the pool this is.", zero=True, ge=0)] = 0
    resourceSliceCount: Annotated[int, Field("How many slices the edition has.", required=True, ge=1)] = 0


class Device(Object):
    """A device. Attributes and capacity are kept as they come."""

    OPEN = True

    name: Label = ""


class SliceSpec(Object):
    """Devices of one driver."""

    driver: Driver = ""
    pool: Annotated[Pool, Field("The pool that they belong to.", required=True)] = Pool()
    nodeName: Annotated[str | None, Field("The node that has them.")] = None
    nodeSelector: Annotated[Freeform | None, Field("Nodes that reach them.")] = None
    allNodes: Annotated[bool | None, Field("Whether every node reaches them.")] = None
    perDeviceNodeSelection: Annotated[bool | None, Field("Whether each device says who reaches it.")] = None
    devices: Annotated[list[Device] | None, Field("The devices.", max_items=128)] = None
    sharedCounters: Annotated[list[Freeform] | None, Field("Amounts that devices share.", max_items=8)] = None


class ResourceSlice(Resource):
    """Devices that a driver offers."""

    spec: Annotated[SliceSpec, Field("The devices.", required=True)] = SliceSpec()


def _complete(spec: Data) -> None:
    """One device, unless a request says otherwise."""
    for request in (spec.get("devices") or {}).get("requests") or ():
        for each in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if isinstance(each, dict):
                mode = each.setdefault("allocationMode", "ExactCount")
                if mode == "ExactCount" and not each.get("count"):
                    each["count"] = 1


def _repeated(listed: Sequence[Data], place: Path) -> Iterator[Finding]:
    seen = set()
    for index, each in enumerate(listed):
        name = each.get("name") or ""
        if name in seen:
            yield finding.duplicate((*place, index), name, _RULE)
        seen.add(name)


def _wrong_requests(spec: Data, place: Path) -> Iterator[Finding]:
    requests = (spec.get("devices") or {}).get("requests") or ()
    yield from _repeated(requests, (*place, "devices", "requests"))
    for index, request in enumerate(requests):
        path = (*place, "devices", "requests", index)
        yield from _repeated(request.get("firstAvailable") or (), (*path, "firstAvailable"))
        forms = [name for name in ("exactly", "firstAvailable") if request.get(name)]
        why = "exactly one of `exactly` or `firstAvailable` is required"
        if not forms:
            yield finding.required(path, _RULE, why)
        elif len(forms) > 1:
            yield finding.invalid(path, None, f"{why}, but multiple fields are set", _RULE)
        alternatives = enumerate(request.get("firstAvailable") or ())
        for at, each in (((*path, "exactly"), request.get("exactly")), *(((*path, "firstAvailable", i), each) for i, each in alternatives)):
            count = (each or {}).get("count") or 0
            if each and each.get("allocationMode") == "All" and count:
                yield finding.invalid((*at, "count"), count, "must not be specified when allocationMode is 'All'", _RULE)
            elif each and each.get("allocationMode") == "ExactCount" and count < 0:
                yield finding.invalid((*at, "count"), count, "must be greater than zero", _RULE)


class ClaimStrategy(Strategy):
    """Keeps the spec of a claim as it is."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """Nothing was given. Patches of the status find it there."""
        new["status"] = {}
        return new

    def returns_deleted(self) -> bool:
        return True

    def complete(self, new: Data) -> None:
        """One device of each class."""
        _complete(new.get("spec") or {})

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Requests, and no changes."""
        if old is None:
            yield from _wrong_requests(new.get("spec") or {}, ("spec",))
        elif new.get("spec") != old.get("spec"):
            yield finding.invalid(("spec",), new.get("spec"), "field is immutable", _RULE)


class ClaimTemplateStrategy(ClaimStrategy):
    """As the claims that would be made of it."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        return new

    def complete(self, new: Data) -> None:
        _complete((new.get("spec") or {}).get("spec") or {})

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        if old is None:
            yield from _wrong_requests((new.get("spec") or {}).get("spec") or {}, ("spec", "spec"))
        else:
            yield from super().validate(new, old, context)


class ClassStrategy(CustomStrategy):
    """Its generation is counted."""

    def returns_deleted(self) -> bool:
        return True


class SliceStrategy(ClassStrategy):
    """A slice says in one way which nodes reach its devices, and stays with its driver."""

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        spec, before = new.get("spec") or {}, (old or {}).get("spec") or {}
        given = [f"`{name}`" for name in _PLACES if spec.get(name)]
        why = f"exactly one of {', '.join(f'`{name}`' for name in _PLACES)} is required"
        if not given:
            yield finding.required(("spec",), _RULE, why)
        elif len(given) > 1:
            yield finding.invalid(("spec",), f"{{{', '.join(given)}}}", f"{why}, but multiple fields are set", _RULE)
        yield from _repeated(spec.get("devices") or (), ("spec", "devices"))
        for path in (("driver",), ("nodeName",), ("pool", "name")) if old is not None else ():
            value, known = spec, before
            for part in path:
                value, known = (value or {}).get(part), (known or {}).get(part)
            if value != known:
                yield finding.invalid(("spec", *path), value, "field is immutable", _RULE)


def _claim_cells(data: Data, now: float) -> list[Any]:
    status, going = data.get("status") or {}, bool(data["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if going else []
    if status.get("allocation") is not None:
        states += ["allocated", *(["reserved"] if status.get("reservedFor") else [])]
    elif not going:
        states.append("pending")
    return [name_of(data), ",".join(states), age_of(data, now)]


def _slice_cells(data: Data, now: float) -> list[Any]:
    spec = data.get("spec") or {}
    pool = (spec.get("pool") or {}).get("name", "")
    return [name_of(data), spec.get("nodeName") or "", spec.get("driver", ""), pool, age_of(data, now)]


def _kind(cls: type[Resource], plural: str, *, namespaced: bool = False, status: bool = False) -> Kind:
    return Kind(group=GROUP, kind=cls.__name__, plural=plural, cls=cls, dialect="core", namespaced=namespaced, status=status, builtin=True)


TABLES: dict[tuple[str, str], tuple[tuple[Column, ...], Cells]] = {
    (GROUP, "ResourceClaim"): ((column("State"), AGE), _claim_cells),
    (GROUP, "ResourceSlice"): ((*(column(name) for name in ("Node", "Driver", "Pool")), AGE), _slice_cells),
}
KINDS = (
    _kind(DeviceClass, "deviceclasses"),
    _kind(ResourceClaim, "resourceclaims", namespaced=True, status=True),
    _kind(ResourceClaimTemplate, "resourceclaimtemplates", namespaced=True),
    _kind(ResourceSlice, "resourceslices"),
)
STRATEGIES: dict[tuple[str, str], Strategy] = {
    (GROUP, "DeviceClass"): ClassStrategy(),
    (GROUP, "ResourceClaim"): ClaimStrategy(),
    (GROUP, "ResourceClaimTemplate"): ClaimTemplateStrategy(),
    (GROUP, "ResourceSlice"): SliceStrategy(),
}
