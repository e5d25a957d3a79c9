"""Rules of memory: V6 and V20 to V26 (docs/spec/kubevirt.md section 2.11)."""

from collections.abc import Iterator

from paddock.base import quantity
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Quantity
from paddock.kubernetes.schema.finding import Finding
from paddock.kubevirt.rules.place import HardwareContext, check, standing

# Memory that is plugged into a running machine comes in blocks of this size.
_BLOCK = quantity.parse("2Mi")
_LEAST_BYTES = 1_000_000
_REQUEST = ("domain", "resources", "requests", "memory")
_LIMIT = ("domain", "resources", "limits", "memory")


@check("kubevirt/V6", given=("spec.domain.memory.maxGuest",))
def memory_can_grow(hardware: HardwareContext) -> Iterator[Finding]:
    """Memory that shall grow while the machine runs is aligned, large enough, and on hardware that can do it."""
    memory = hardware.spec.domain.memory
    # KubeVirt looks at templates only. A running instance that cannot grow keeps its memory, and says so.
    if memory is None or memory.maxGuest is None or hardware.running or not hardware.settings.live_update:
        return
    path = hardware.at("domain", "memory", "guest")
    for why, at in _cannot_grow(hardware, memory.maxGuest):
        yield standing(finding.invalid(path, memory.guest, why, "kubevirt/V6"), hardware.at("domain", *at))


def _cannot_grow(hardware: HardwareContext, max_guest: Quantity) -> Iterator[tuple[str, tuple[str, ...]]]:
    domain = hardware.spec.domain
    cpu, most = domain.cpu, quantity.parse(max_guest)
    guest = _guest(hardware)
    if guest is None:
        if not hardware.sized:
            yield "must be given when maxGuest is", ("memory", "maxGuest")
    elif guest > most:
        yield f"is greater than maxGuest ({max_guest})", ("memory", "guest")
    elif guest % _BLOCK:
        yield "must be a multiple of 2Mi when maxGuest is given", ("memory", "guest")
    elif guest < quantity.parse("1Gi"):
        yield "must be at least 1Gi when maxGuest is given", ("memory", "guest")
    if most % _BLOCK:
        yield "maxGuest must be a multiple of 2Mi", ("memory", "maxGuest")
    if hardware.architecture != "amd64":
        yield "memory can grow on amd64 only; leave maxGuest out", ("memory", "maxGuest")
    if cpu is not None and cpu.realtime is not None:
        yield "memory cannot grow with cpu.realtime; leave maxGuest out", ("cpu", "realtime")
    if cpu is not None and cpu.numa is not None and cpu.numa.guestMappingPassthrough is not None:
        yield "memory cannot grow with cpu.numa.guestMappingPassthrough; leave maxGuest out", ("cpu", "numa", "guestMappingPassthrough")
    if domain.launchSecurity is not None:
        yield "memory cannot grow with launchSecurity; leave maxGuest out", ("launchSecurity",)


def _guest(hardware: HardwareContext) -> int | None:
    """Return the memory that the guest will have, in billionths: what it asks for, where it is not given."""
    memory = hardware.spec.domain.memory
    if memory is not None and memory.guest is not None:
        return quantity.parse(memory.guest)
    asked = hardware.request("memory") or hardware.limit("memory")
    if asked:
        return asked
    page = memory.hugepages.pageSize if memory is not None and memory.hugepages is not None else None
    return _page(page) if page else None


@check("kubevirt/V20", given=("spec.domain.resources.requests", "spec.domain.resources.limits"))
def memory_is_not_negative(hardware: HardwareContext) -> Iterator[Finding]:
    """Requests and limits of memory are not negative."""
    for path, amount in ((_REQUEST, hardware.request("memory")), (_LIMIT, hardware.limit("memory"))):
        if amount is not None and amount < 0:
            yield finding.invalid(hardware.at(*path), hardware.written(path), "must be greater than or equal to 0", "kubevirt/V20")


@check("kubevirt/V21", given=("spec.domain.resources.requests",))
def memory_request_is_not_tiny(hardware: HardwareContext) -> Iterator[Finding]:
    """A request of memory is at least 1M."""
    request = hardware.request("memory")
    if request is not None and 0 < request < quantity.parse("1M"):
        yield finding.invalid(hardware.at(*_REQUEST), hardware.written(_REQUEST), "must be greater than or equal to 1M", "kubevirt/V21")


@check("kubevirt/tiny-memory", warns=True, given=("spec.domain.memory.guest", "spec.domain.resources.limits"))
def memory_holds_a_guest(hardware: HardwareContext) -> Iterator[Finding]:
    """A guest has at least a megabyte, the least that its firmware is in; a bare number is one of bytes. A template is warned of."""
    memory = hardware.spec.domain.memory
    guest = memory.guest if memory is not None else None
    path: tuple[str, ...]
    path, written = ("domain", "memory", "guest"), guest
    if guest is None and hardware.request("memory") is None:
        path, written = _LIMIT, hardware.written(_LIMIT)
    # A limit of none is no limit; memory of none is none.
    if written is None or (size := quantity.whole(written)) >= _LEAST_BYTES or (path == _LIMIT and size <= 0):
        return
    unit = f"; {written}Mi is {size} megabytes" if str(written).isdecimal() and size else ""
    why = f"is {size} bytes; a guest needs at least 1M{unit}"
    if hardware.running:
        yield finding.invalid(hardware.at(*path), written, why, "kubevirt/tiny-memory")
    else:
        text = f"{finding.show(written)} {why}: the machine cannot start until it has more"
        yield finding.warning(hardware.at(*path), text, "kubevirt/tiny-memory")


@check("kubevirt/V22", given=("spec.domain.resources.limits",))
def memory_request_fits_its_limit(hardware: HardwareContext) -> Iterator[Finding]:
    """A request of memory does not exceed the limit."""
    request, limit = hardware.request("memory"), hardware.limit("memory")
    if request is not None and limit is not None and request > limit > 0:
        why = f"is greater than limits.memory ({hardware.written(_LIMIT)})"
        yield finding.invalid(hardware.at(*_REQUEST), hardware.written(_REQUEST), why, "kubevirt/V22")


_NO_MEMORY = "no memory requested: give memory.guest, memory.hugepages or resources.requests.memory"


@check("kubevirt/V23", warns=True)
def memory_is_requested(hardware: HardwareContext) -> Iterator[Finding]:
    """A running machine has memory, and so has a pinned one. Another template without any is taken with a warning: it cannot start yet."""
    memory = hardware.spec.domain.memory
    given = memory is not None and (memory.guest is not None or memory.hugepages is not None)
    if given or hardware.sized or hardware.request("memory") or hardware.limit("memory"):
        return
    at = hardware.at("domain", "memory") if memory is not None else hardware.at("domain")
    cpu = hardware.spec.domain.cpu
    if cpu is not None and cpu.dedicatedCpuPlacement:
        why = f"Invalid value: dedicatedCpuPlacement needs memory, and there is {_NO_MEMORY}"
        yield standing(Finding(path=hardware.at(*_LIMIT), message=why, rule="kubevirt/V23"), at)
    if hardware.running:
        yield standing(finding.required(hardware.at("domain", "memory"), "kubevirt/V23", _NO_MEMORY), at)
    elif not (cpu is not None and cpu.dedicatedCpuPlacement):
        text = f"{_NO_MEMORY}; the machine cannot start without"
        yield standing(finding.warning(hardware.at("domain", "memory"), text, "kubevirt/V23"), at)


@check("kubevirt/V24", given=("spec.domain.resources.limits",))
def guest_fits_the_limit(hardware: HardwareContext) -> Iterator[Finding]:
    """Without live updates, the guest's memory fits into the limit."""
    memory, limit = hardware.spec.domain.memory, hardware.limit("memory")
    if hardware.settings.live_update or memory is None or memory.guest is None or not limit:
        return
    if quantity.parse(memory.guest) > limit:
        why = f"must be equal to or less than limits.memory ({hardware.written(_LIMIT)})"
        yield finding.invalid(hardware.at("domain", "memory", "guest"), memory.guest, why, "kubevirt/V24")


@check("kubevirt/V25", given=("spec.domain.memory.hugepages",))
def page_size_is_a_quantity(hardware: HardwareContext) -> Iterator[Finding]:
    """The size of huge pages is a quantity."""
    memory = hardware.spec.domain.memory
    size = memory.hugepages.pageSize if memory is not None and memory.hugepages is not None else None
    if size is None and memory is not None and memory.hugepages is not None:
        yield finding.required(hardware.at("domain", "memory", "hugepages", "pageSize"), "kubevirt/V25")
    elif size is not None and _page(size) is None:
        path = hardware.at("domain", "memory", "hugepages", "pageSize")
        yield finding.invalid(path, size, "not a Kubernetes quantity such as 2Mi or 1Gi", "kubevirt/V25")


@check("kubevirt/V26", given=("spec.domain.memory.hugepages",))
def memory_fills_pages(hardware: HardwareContext) -> Iterator[Finding]:
    """Memory in huge pages is a multiple of the page size."""
    memory = hardware.spec.domain.memory
    if memory is None or memory.hugepages is None or memory.hugepages.pageSize is None:
        return
    page = _page(memory.hugepages.pageSize)
    request = hardware.request("memory")
    if request is None and memory.guest is not None:
        request = quantity.parse(memory.guest)
    if page is None or request is None or request % page == 0:
        return
    written = hardware.written(_REQUEST)
    at = hardware.at(*_REQUEST) if written is not None else hardware.at("domain", "memory", "guest")
    why = "must be equal to or larger than" if request < page else "must be a multiple of"
    text = f"{why} the page size ({memory.hugepages.pageSize})"
    yield standing(finding.invalid(hardware.at(*_REQUEST), written or memory.guest, text, "kubevirt/V26"), at)


def _page(text: str) -> int | None:
    try:
        size = quantity.parse(text)
    except quantity.NotAQuantity:
        return None
    return size if size > 0 else None


CHECKS = (
    memory_can_grow,
    memory_is_not_negative,
    memory_request_is_not_tiny,
    memory_holds_a_guest,
    memory_request_fits_its_limit,
    memory_is_requested,
    guest_fits_the_limit,
    page_size_is_a_quantity,
    memory_fills_pages,
)
