"""Features of the hardware that can be switched, Hyper-V's among them, and the clock with its timers."""

from typing import Annotated

from paddock.kubernetes.schema.field import Field, Object


class FeatureState(Object):
    """A feature that is on unless it says otherwise."""

    enabled: Annotated[bool | None, Field("Whether the feature is on; default: true.")] = None


class APIC(Object):
    """The interrupt controller."""

    enabled: Annotated[bool | None, Field("Whether the feature is on; default: true.")] = None
    endOfInterrupt: Annotated[bool | None, Field("Tell the guest about the end of interrupts.")] = None


class Spinlocks(Object):
    """Retries before the guest tells the hypervisor that it waits for a lock."""

    enabled: Annotated[bool | None, Field("Whether the feature is on; default: true.")] = None
    spinlocks: Annotated[int | None, Field("Number of retries; default: 4096.", ge=0, le=4294967295)] = None


class VendorID(Object):
    """The name the hypervisor gives itself."""

    enabled: Annotated[bool | None, Field("Whether the feature is on; default: true.")] = None
    vendorid: Annotated[str | None, Field("The name, at most twelve characters.", max_length=12)] = None


class SyNICTimer(Object):
    """Timers of the synthetic interrupt controller."""

    enabled: Annotated[bool | None, Field("Whether the feature is on; default: true.")] = None
    direct: Annotated[FeatureState | None, Field("Direct timers.")] = None


class TLBFlush(Object):
    """Flushes of the translation buffer with the hypervisor's help."""

    enabled: Annotated[bool | None, Field("Whether the feature is on; default: true.")] = None
    direct: Annotated[FeatureState | None, Field("Flush commands go to the lowest hypervisor directly.")] = None
    extended: Annotated[FeatureState | None, Field("Partial flushes.")] = None


class HyperV(Object):
    """Enlightenments for Windows."""

    relaxed: Annotated[FeatureState | None, Field("The guest switches its watchdog time-outs off.")] = None
    vapic: Annotated[FeatureState | None, Field("Faster handling of interrupts.")] = None
    spinlocks: Annotated[Spinlocks | None, Field("Retries on spinlocks.")] = None
    vpindex: Annotated[FeatureState | None, Field("Index of virtual processors.")] = None
    runtime: Annotated[FeatureState | None, Field("Better accounting of time.")] = None
    synic: Annotated[FeatureState | None, Field("Synthetic interrupt controller; switches vpindex on.")] = None
    synictimer: Annotated[SyNICTimer | None, Field("Timers of the synthetic interrupt controller; switches synic on.")] = None
    reset: Annotated[FeatureState | None, Field("Reset by the guest through Hyper-V.")] = None
    vendorid: Annotated[VendorID | None, Field("Name of the hypervisor.")] = None
    frequencies: Annotated[FeatureState | None, Field("Frequencies of the clock sources.")] = None
    reenlightenment: Annotated[FeatureState | None, Field("Notification when the clock's frequency changes.")] = None
    tlbflush: Annotated[TLBFlush | None, Field("Translation buffer flushes; switches vpindex on.")] = None
    ipi: Annotated[FeatureState | None, Field("Inter-processor interrupts; switches vpindex on.")] = None
    evmcs: Annotated[FeatureState | None, Field("Faster nested virtualization; switches vapic on.")] = None


class HyperVPassthrough(Object):
    """Every enlightenment the host has."""

    enabled: Annotated[bool | None, Field("Whether the feature is on; default: true.")] = None


class KVM(Object):
    """The guest's view of KVM."""

    hidden: Annotated[bool | None, Field("Hide KVM from the guest.")] = None


class Features(Object):
    """Features of the hardware that can be switched."""

    acpi: Annotated[FeatureState | None, Field("ACPI; without it there is no graceful stop.")] = None
    apic: Annotated[APIC | None, Field("Interrupt controller.")] = None
    smm: Annotated[FeatureState | None, Field("System Management Mode, which Secure Boot needs.")] = None
    hyperv: Annotated[HyperV | None, Field("Enlightenments for Windows.")] = None
    hypervPassthrough: Annotated[HyperVPassthrough | None, Field("Every enlightenment the host has.")] = None
    kvm: Annotated[KVM | None, Field("How the guest sees KVM.")] = None
    pvspinlock: Annotated[FeatureState | None, Field("Paravirtual spinlocks.")] = None


TIMEZONE = Field(
    "The clock starts with the time of this zone, such as Europe/Oslo.",
    max_length=255,
    pattern=r"^[A-Za-z0-9][A-Za-z0-9_+-]*(/[A-Za-z0-9][A-Za-z0-9_+-]*)*$",
    message="must be the name of a time zone such as Europe/Oslo or UTC",
    empty_is_unset=True,
)


class ClockUTC(Object):
    """The clock starts with UTC."""

    offsetSeconds: Annotated[int | None, Field("Offset from UTC in seconds; with it the guest's own changes are kept.")] = None


class RTCTimer(Object):
    """The real-time clock."""

    tickPolicy: Annotated[str | None, Field("What becomes of missed ticks.", enum=("delay", "catchup"))] = None
    present: Annotated[bool | None, Field("Whether the timer is there; default: true.")] = None
    track: Annotated[str | None, Field("Whose time it follows.", enum=("guest", "wall"))] = None


class HPETTimer(Object):
    """The high precision event timer."""

    tickPolicy: Annotated[str | None, Field("What becomes of missed ticks.", enum=("delay", "catchup", "merge", "discard"))] = None
    present: Annotated[bool | None, Field("Whether the timer is there; default: true.")] = None


class PITTimer(Object):
    """The programmable interval timer."""

    tickPolicy: Annotated[str | None, Field("What becomes of missed ticks.", enum=("delay", "catchup", "discard"))] = None
    present: Annotated[bool | None, Field("Whether the timer is there; default: true.")] = None


class PresentTimer(Object):
    """A timer that can only be there or not."""

    present: Annotated[bool | None, Field("Whether the timer is there; default: true.")] = None


class Timer(Object):
    """The timers of the machine."""

    hpet: Annotated[HPETTimer | None, Field("High precision event timer.")] = None
    kvm: Annotated[PresentTimer | None, Field("KVM's clock.")] = None
    pit: Annotated[PITTimer | None, Field("Programmable interval timer.")] = None
    rtc: Annotated[RTCTimer | None, Field("Real-time clock.")] = None
    hyperv: Annotated[PresentTimer | None, Field("Hyper-V's clock.")] = None


class GuestClock(Object):
    """The guest's clock."""

    utc: Annotated[ClockUTC | None, Field("The clock starts with UTC.")] = None
    timezone: Annotated[str | None, TIMEZONE] = None
    timer: Annotated[Timer | None, Field("The timers.")] = None
