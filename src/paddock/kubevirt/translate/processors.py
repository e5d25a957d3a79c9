"""Processors, memory and clock of an instance."""

from collections.abc import Iterator

from paddock.base import quantity
from paddock.engine.machine.config import ClockConfig, CpuConfig, MemoryConfig
from paddock.kubevirt.kinds.domain import CPU, CPUFeature
from paddock.kubevirt.kinds.domain import Memory as MemorySpec
from paddock.kubevirt.kinds.features import Features, HyperV, SyNICTimer, Timer, TLBFlush
from paddock.kubevirt.kinds.features import GuestClock as ClockSpec
from paddock.kubevirt.translate.context import TranslationContext
from paddock.kubevirt.translate.limits import Code

_CPU = ("spec", "domain", "cpu")
_FEATURES = ("spec", "domain", "features")
_TIMER = ("spec", "domain", "clock", "timer")
# Memory that is plugged into a running machine comes in blocks of this size, and into no smaller machine.
_MEMORY_BLOCK, _LEAST_GROWING = 2 * 1024**2, 1024**3
_DAY = 86_400
# More than these have addresses that only KVM's interrupt controller knows.
_MOST_EMULATED = 255
_WITHOUT_APIC = ("486", "486-v1", "base")
# Hyper-V's features that are only there or not, by the member of the API.
_SIMPLE = {
    "relaxed": "hv-relaxed",
    "vapic": "hv-vapic",
    "vpindex": "hv-vpindex",
    "runtime": "hv-runtime",
    "synic": "hv-synic",
    "reset": "hv-reset",
    "frequencies": "hv-frequencies",
    "reenlightenment": "hv-reenlightenment",
    "ipi": "hv-ipi",
    "evmcs": "hv-evmcs",
}
DEFAULT_SPINLOCKS = 4096


def is_on(feature: object) -> bool:
    """Return whether a feature is named and not switched off."""
    return feature is not None and getattr(feature, "enabled", None) is not False


def cpu(translation: TranslationContext) -> CpuConfig:
    given = translation.domain.cpu or CPU()
    sockets = given.sockets or 1
    hotplug = translation.domain.devices.disableHotplug is not True
    features = tuple(_cpu_features(translation, given))
    _refuse_placement(translation, given)
    kvm = translation.domain.features.kvm if translation.domain.features else None
    hidden = bool(kvm and kvm.hidden)
    if hidden and not translation.kvm:
        translation.limits.add(Code.FEATURE_NEEDS_KVM, *_FEATURES, "kvm", "hidden")
    return CpuConfig(
        sockets=sockets,
        cores=given.cores or 1,
        threads=given.threads or 1,
        max_sockets=_max_sockets(translation, given, sockets) if hotplug else sockets,
        model=_model(translation, given),
        features=(*features, *_switches(translation)),
        enforce=any(_policy(feature) == "require" for feature in given.features or ()),
        hyperv=_hyperv(translation),
        kvm_hidden=hidden,
        pinned=translation.resolved.vcpus,
        emulator_pinned=translation.resolved.emulator,
    )


def _max_sockets(translation: TranslationContext, cpu: CPU, sockets: int) -> int:
    """The sockets there may be one day: what was asked for, as far as QEMU can."""
    most, each = _most_processors(translation), (cpu.cores or 1) * (cpu.threads or 1)
    # CPUs of a machine's own are given to it when it starts.
    wanted = sockets if cpu.dedicatedCpuPlacement else max(cpu.maxSockets or 0, sockets)
    if not most or wanted * each <= most:
        return wanted
    if sockets * each > most:
        asked = max(translation.asked("cpu") or 0, (translation.limit("cpu") or 0) // 1000)
        code = Code.INSUFFICIENT_CPUS if asked >= sockets * each else Code.PROCESSORS_TOO_MANY
        translation.limits.add(code, *_CPU, detail=f"{sockets * each}, and {most} are possible")
        return sockets
    translation.limits.add(Code.SOCKETS_CUT, *_CPU, "maxSockets", detail=f"{most // each} sockets instead of {wanted}")
    return most // each


def _most_processors(translation: TranslationContext) -> int:
    """The processors that QEMU can give to a machine of this type; 0: not known."""
    machine = translation.domain.machine.type if translation.domain.machine is not None else ""
    most = translation.host.processors.get(translation.host.machine_types.get(machine or "q35", ""), 0)
    return most if translation.kvm or not translation.amd64 else min(most, _MOST_EMULATED)


def _model(translation: TranslationContext, cpu: CPU) -> str:
    model = cpu.model or "host-model"
    if model in ("host-model", "host-passthrough"):
        return "host"
    known = translation.host.cpu_models
    if known and model not in known:
        translation.limits.add(Code.CPU_MODEL_UNKNOWN, *_CPU, "model", detail=model)
    elif model in _WITHOUT_APIC:
        translation.limits.add(Code.CPU_MODEL_TOO_OLD, *_CPU, "model", detail=model)
    return model


def _policy(feature: CPUFeature) -> str:
    return feature.policy or "require"


def _cpu_features(translation: TranslationContext, cpu: CPU) -> Iterator[tuple[str, bool]]:
    host_model = _is_host(cpu)
    for index, feature in enumerate(cpu.features or ()):
        policy = _policy(feature)
        _refuse_feature(translation, feature, (*_CPU, "features", index))
        if policy in ("disable", "forbid"):
            yield feature.name, False
        elif policy in ("force", "require"):
            yield feature.name, True
        elif not host_model and translation.kvm and feature.name in translation.host.cpu_flags:
            # The host's own model brings along whatever there is.
            yield feature.name, True


def _refuse_feature(translation: TranslationContext, feature: CPUFeature, path: tuple[str | int, ...]) -> None:
    """Features are known by several spellings: sse4_2 is sse4-2, too."""
    known, policy = translation.host.cpu_features, _policy(feature)
    if not known or policy == "optional":
        return
    emulated = known.get(feature.name, known.get(feature.name.replace("_", "-")))
    if emulated is None:
        translation.limits.add(Code.CPU_FEATURE_UNKNOWN, *path, "name", detail=feature.name)
    elif policy == "require" and not emulated and not translation.kvm:
        translation.limits.add(Code.CPU_FEATURE_MISSING, *path, "name", detail=feature.name)


def _is_host(cpu: CPU) -> bool:
    return (cpu.model or "host-model") in ("host-model", "host-passthrough", "max")


def _refuse_placement(translation: TranslationContext, cpu: CPU) -> None:
    if cpu.realtime is not None:
        translation.limits.add(Code.REALTIME_MISSING, *_CPU, "realtime")
    if cpu.numa is not None and cpu.numa.guestMappingPassthrough is not None and translation.host.numa_nodes > 1:
        translation.limits.add(Code.NUMA_MISSING, *_CPU, "numa", "guestMappingPassthrough")
    if cpu.dedicatedCpuPlacement and len(translation.resolved.vcpus) < translation.vcpus:
        translation.limits.add(Code.CPUS_MISSING, *_CPU, "dedicatedCpuPlacement")
    elif cpu.isolateEmulatorThread and not translation.resolved.emulator:
        translation.limits.add(Code.CPUS_MISSING, *_CPU, "isolateEmulatorThread")


def _switches(translation: TranslationContext) -> Iterator[tuple[str, bool]]:
    """Features of the machine that are bits of the processor."""
    features = translation.domain.features or Features()
    if features.apic is not None and features.apic.enabled is False:
        yield "apic", False
    kvm_only: list[tuple[tuple[str, ...], str, bool]] = []
    if features.apic is not None and features.apic.endOfInterrupt is not None:
        kvm_only.append((("apic", "endOfInterrupt"), "kvm-pv-eoi", features.apic.endOfInterrupt))
    if features.pvspinlock is not None:
        kvm_only.append((("pvspinlock",), "kvm-pv-unhalt", is_on(features.pvspinlock)))
    for path, name, on in kvm_only:
        if translation.kvm:
            yield name, on
        else:
            translation.limits.add(Code.FEATURE_NEEDS_KVM, *_FEATURES, *path)


def _hyperv(translation: TranslationContext) -> tuple[tuple[str, str], ...]:
    features = translation.domain.features or Features()
    found = list(_enlightenments(features.hyperv)) if features.hyperv is not None else []
    if is_on(features.hypervPassthrough):
        found.append(("hv-passthrough", "on"))
    if any(device.model == "hyperv" for device in translation.domain.devices.panicDevices or ()):
        found.append(("hv-crash", "on"))
    if found and not (translation.kvm and translation.amd64):
        names = ", ".join(name for name, _ in found)
        translation.limits.add(Code.HYPERV_NEEDS_KVM, *_FEATURES, "hyperv", detail=names)
        return ()
    return tuple(found)


def _enlightenments(hyperv: HyperV) -> Iterator[tuple[str, str]]:
    for member, name in _SIMPLE.items():
        if is_on(getattr(hyperv, member)):
            yield name, "on"
    if hyperv.spinlocks is not None and is_on(hyperv.spinlocks):
        retries = hyperv.spinlocks.spinlocks
        yield "hv-spinlocks", f"{DEFAULT_SPINLOCKS if retries is None else retries:#x}"
    if hyperv.vendorid is not None and is_on(hyperv.vendorid) and hyperv.vendorid.vendorid:
        yield "hv-vendor-id", hyperv.vendorid.vendorid
    yield from _timers_and_flushes(hyperv.synictimer, hyperv.tlbflush)


def _timers_and_flushes(timer: SyNICTimer | None, flush: TLBFlush | None) -> Iterator[tuple[str, str]]:
    if timer is not None and is_on(timer):
        yield "hv-stimer", "on"
        if is_on(timer.direct):
            yield "hv-stimer-direct", "on"
    if flush is not None and is_on(flush):
        yield "hv-tlbflush", "on"
        if is_on(flush.direct):
            yield "hv-tlbflush-direct", "on"
        if is_on(flush.extended):
            yield "hv-tlbflush-ext", "on"


def memory(translation: TranslationContext) -> MemoryConfig:
    """The memory, in whole bytes."""
    given = translation.domain.memory or MemorySpec()
    size = quantity.whole(given.guest) if given.guest is not None else translation.asked("memory") or 0
    most = quantity.whole(given.maxGuest) if given.maxGuest is not None else size
    page = given.hugepages.pageSize if given.hugepages is not None else None
    shared = bool(translation.domain.devices.filesystems)
    hotplug = translation.domain.devices.disableHotplug is not True
    if most > size and not _memory_can_grow(translation, size, most):
        translation.limits.add(Code.MEMORY_FIXED, "spec", "domain", "memory", "maxGuest")
        most = size
    return MemoryConfig(
        size=size,
        max_size=max(most, size) if hotplug else size,
        hugepage=quantity.whole(page) if page is not None else None,
        shared=shared,
    )


def _memory_can_grow(translation: TranslationContext, size: int, most: int) -> bool:
    """Return whether memory can be plugged in, by the rules of V6: they are asked of templates only."""
    cpu = translation.domain.cpu or CPU()
    fixed = cpu.realtime is not None or (cpu.numa is not None and cpu.numa.guestMappingPassthrough is not None)
    aligned = size % _MEMORY_BLOCK == 0 and most % _MEMORY_BLOCK == 0
    return translation.amd64 and aligned and size >= _LEAST_GROWING and not fixed and translation.domain.launchSecurity is None


def clock(translation: TranslationContext) -> ClockConfig:
    """The clock and its timers."""
    given = translation.domain.clock or ClockSpec()
    offset = (given.utc.offsetSeconds or 0) if given.utc is not None else 0
    if abs(offset) >= _DAY:
        translation.limits.add(Code.OFFSET_TOO_LARGE, "spec", "domain", "clock", "utc", "offsetSeconds", detail=str(offset))
    if given.timezone and not translation.host.has_timezone(given.timezone):
        translation.limits.add(Code.TIMEZONE_UNKNOWN, "spec", "domain", "clock", "timezone", detail=given.timezone)
    timers = given.timer or Timer()
    _refuse_timers(translation, timers)
    pit, rtc = timers.pit, timers.rtc
    policy = pit.tickPolicy if pit is not None and pit.tickPolicy else "delay"
    return ClockConfig(
        base=given.timezone or "utc",
        offset_seconds=offset,
        hpet=timers.hpet is not None and timers.hpet.present is not False,
        pit_policy="catchup" if policy == "catchup" else "discard" if policy == "discard" else "delay",
        rtc_policy="" if rtc is not None and rtc.tickPolicy == "delay" else "catchup",
        rtc_clock="vm" if rtc is not None and rtc.track == "guest" else "host",
        pit=pit is None or pit.present is not False,
        kvm=timers.kvm is None or timers.kvm.present is not False,
        hyperv=_hyperv_clock(translation, timers),
    )


def _hyperv_clock(translation: TranslationContext, timers: Timer) -> bool:
    wanted = timers.hyperv is not None and timers.hyperv.present is not False
    if wanted and not translation.kvm:
        translation.limits.add(Code.HYPERV_NEEDS_KVM, *_TIMER, "hyperv", detail="hv-time")
    return wanted


def _refuse_timers(translation: TranslationContext, timers: Timer) -> None:
    if timers.hpet is not None and timers.hpet.tickPolicy is not None:
        translation.limits.add(Code.TIMER_UNCHANGED, *_TIMER, "hpet", "tickPolicy", detail="QEMU's HPET has one policy")
    if timers.rtc is not None and timers.rtc.present is False:
        translation.limits.add(Code.TIMER_UNCHANGED, *_TIMER, "rtc", "present", detail="every machine has a real-time clock")
    if timers.kvm is not None and timers.kvm.present is False and not translation.kvm:
        translation.limits.add(Code.FEATURE_NEEDS_KVM, *_TIMER, "kvm")
    if timers.pit is not None and timers.pit.tickPolicy is not None and not translation.kvm:
        translation.limits.add(Code.FEATURE_NEEDS_KVM, *_TIMER, "pit", "tickPolicy")
