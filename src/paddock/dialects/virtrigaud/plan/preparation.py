"""Preparation of images at providers (docs/spec/virtrigaud.md 2.3): what an image needs at each, what holds machines, and its status.

reference (template, path)  nothing is prepared
onMissing Fail, Wait        machines are held until somebody makes the image available
onMissing Import            task --> available
                            failed --> again, as often as `retries` says --> Failed, and again after a long pause
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from paddock.base import duration
from paddock.contract import specs
from paddock.contract.specs import HTTPImageSource, ImagePrepare, VMImageSpec
from paddock.dialects.virtrigaud.kinds.vmimage import ProviderImage, VMImage, VMImageStatus
from paddock.dialects.virtrigaud.plan import reasons, removal
from paddock.dialects.virtrigaud.plan.conditions import READY, AspectValue, false, settled, true
from paddock.kubernetes.meta.world import namespace_of

IMPORTING = "Importing"
PENDING, PHASE_IMPORTING, PHASE_READY, FAILED = "Pending", "Importing", "Ready", "Failed"
# After the last retry.
EXHAUSTED_SECONDS = 600.0
RETRY_SECONDS = 10.0
# An image of a few megabytes takes a second.
FIRST_POLL_SECONDS, POLL_SECONDS = 1.0, 5.0


class ImageUse(msgspec.Struct, frozen=True):
    """A provider that needs an image. `imports` is what it reports; None: nothing is known."""

    provider: str
    type: str
    imports: bool | None = None


class ImageState(msgspec.Struct, frozen=True):
    """How an image stands at one provider."""

    use: ImageUse
    # reference, unprepared (the provider does not prepare), ready, importing, waiting, missing, failed, due, unserved (nobody answers)
    state: str
    message: str = ""
    # the reason code of a failure
    code: str = ""


def importing(use: ImageUse, entry: ProviderImage) -> ImageState:
    """Return the state of an image that a provider prepares."""
    return ImageState(use, "importing", f"Provider {use.provider} prepares the image{removal.last_problem(entry)}")


class ImageBlocker(msgspec.Struct, frozen=True):
    """The reason why a machine is not made yet because of its image."""

    reason: str
    message: str
    # the image is on its way
    importing: bool = False


def provider_key(image_namespace: str, namespace: str, name: str) -> str:
    """The name of a Provider in an image's status; one of another namespace has it before its own."""
    return name if namespace == image_namespace else f"{namespace}/{name}"


def place_of(name: str, image_namespace: str) -> tuple[str, str]:
    """The namespace and the name of a Provider, from its name in an image's status."""
    namespace, slash, rest = name.partition("/")
    return (namespace, rest) if slash else (image_namespace, name)


def target_name(image: VMImage) -> str:
    """The name of the image at a provider; images of two namespaces do not collide."""
    return f"{namespace_of(image)}.{image.metadata.name}"


def timeout_seconds(spec: VMImageSpec) -> float:
    """How long a preparation may take: as `prepare` says, and a download as `http` says, if that is not its default."""
    seconds, http = duration.parse((spec.prepare or ImagePrepare()).timeout) / duration.SECOND, spec.source.http
    if http is None or http.timeout == HTTPImageSource().timeout:
        return seconds
    return min(seconds, duration.parse(http.timeout) / duration.SECOND)


def needs_import(spec: VMImageSpec, provider_type: str) -> bool:
    """Return whether the source has to be brought to the provider; a mere reference is there already."""
    if spec.prepare is not None and spec.prepare.force:
        return True
    source = spec.source
    name = specs.image_block(source, provider_type)
    if name == "libvirt" and source.libvirt is not None:
        return not source.libvirt.path or bool(source.libvirt.url)
    if name == "vsphere" and source.vsphere is not None:
        return not (source.vsphere.templateName or source.vsphere.contentLibrary) or bool(source.vsphere.ovaURL)
    if name == "proxmox" and source.proxmox is not None:
        return source.proxmox.templateID is None and not source.proxmox.templateName
    return name is not None


def is_current(image: VMImage) -> bool:
    """Return whether the status is about the image as it is now. Its deletion counts as a change, and changes nothing of its source."""
    status, deleted = image.status, image.metadata.deletionTimestamp is not None
    if status is None or status.observedGeneration is None:
        return False
    return status.observedGeneration in (image.metadata.generation, (image.metadata.generation or 0) - deleted)


def prepared(image: VMImage, provider: str) -> ProviderImage | None:
    """The image at a provider, as far as its status is about the present spec."""
    if not is_current(image) or image.status is None:
        return None
    return (image.status.providerStatus or {}).get(provider)


def blocker(image: VMImage, use: ImageUse, *, begun: bool) -> ImageBlocker | None:
    """The reason why a machine cannot be made from the image at a provider yet.

    One that is deleted waits for the machines whose creation has begun, so these are made from it.
    """
    if not needs_import(image.spec, use.type) or use.imports is False:
        return None
    place = f"VMImage {namespace_of(image)}/{image.metadata.name}"
    found = prepared(image, use.provider)
    there = found is not None and found.available
    if image.metadata.deletionTimestamp is not None and not (begun and there):
        return ImageBlocker(reasons.WAITING, f"{place} is being deleted")
    if there:
        return None
    missing = (image.spec.prepare or ImagePrepare()).onMissing
    if missing == "Fail":
        return ImageBlocker(reasons.MISSING_ON_PROVIDER, f"{place} is not at Provider {use.provider}, and its onMissing is Fail")
    if missing == "Wait":
        return ImageBlocker(reasons.WAITING_FOR_IMAGE, f"waiting until {place} is at Provider {use.provider}; its onMissing is Wait")
    if use.imports is None:
        return ImageBlocker(reasons.WAITING, f"Provider {use.provider} has not reported its capabilities yet")
    if found is None or use.provider in tasks_of(image.status):
        text = f"{place} is being prepared at Provider {use.provider}{removal.last_problem(found)}"
        return ImageBlocker(reasons.IN_PROGRESS, text, importing=True)
    return ImageBlocker(found.reason or reasons.PREPARATION_FAILED, f"{place}: {found.message or 'it could not be prepared'}")


# --- the status of the image ------------------------------------------------------------------------------------------------


def tasks_of(status: VMImageStatus | None) -> dict[str, str]:
    """The tasks that are under way, by provider; the status has one field for all of them."""
    text = status.prepareTaskRef if status is not None else None
    if not text:
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, str])
    except msgspec.MsgspecError:
        return {}


def tasks_text(tasks: Mapping[str, str]) -> str | None:
    """The tasks as the status keeps them."""
    return msgspec.json.encode(dict(sorted(tasks.items()))).decode() if tasks else None


def status(
    image: VMImage, entries: Mapping[str, ProviderImage], states: Iterable[ImageState], tasks: Mapping[str, str], now: str
) -> VMImageStatus:
    """The status of an image from how it stands at each provider that needs it."""
    before = image.status or VMImageStatus()
    found = tuple(states)
    available = sorted(name for name, each in entries.items() if each.available)
    phase, reason, message = _summary(found, available)
    is_ready = phase == PHASE_READY
    importing = any(each.state == "importing" for each in found)
    values: list[AspectValue] = [
        true(READY, reason, message) if is_ready else false(READY, reason, message),
        true(IMPORTING, reasons.IMPORTING, message) if importing else false(IMPORTING, reason, message),
    ]
    return msgspec.structs.replace(
        before,
        ready=is_ready,
        phase=phase,
        message=message,
        availableOn=available or None,
        conditions=settled(before.conditions, values, now, image.metadata.generation),
        observedGeneration=image.metadata.generation,
        prepareTaskRef=tasks_text(tasks),
        providerStatus=dict(entries) or None,
    )


_USABLE = ("reference", "unprepared", "ready")
_ORDER = ("failed", "missing", "waiting", "importing", "due", "unserved")
_PHASES = {
    "failed": (FAILED, reasons.PREPARATION_FAILED),
    "missing": (FAILED, reasons.MISSING_ON_PROVIDER),
    "waiting": (PENDING, reasons.WAITING_FOR_IMAGE),
    "importing": (PHASE_IMPORTING, reasons.IMPORTING),
    "due": (PHASE_IMPORTING, reasons.IMPORTING),
    "unserved": (PENDING, reasons.WAITING),
}


def _summary(image_states: tuple[ImageState, ...], available: Sequence[str]) -> tuple[str, str, str]:
    """Phase, reason and message: the worst state counts. A Provider that nobody serves holds only its own machines."""
    usable = sorted(each.use.provider for each in image_states if each.state in _USABLE)
    others = sorted((each for each in image_states if each.state in _ORDER), key=lambda each: (_ORDER.index(each.state), each.use.provider))
    if others and not (usable and others[0].state == "unserved"):
        phase, reason = _PHASES[others[0].state]
        there = f"; it is ready for {len(usable)} of {len(image_states)} Providers: {', '.join(usable)}" if usable else ""
        return phase, others[0].code or reason, others[0].message + there
    if not image_states and available:
        return PHASE_READY, reasons.PREPARED, f"prepared for {', '.join(available)}"
    if not image_states:
        return PENDING, reasons.WAITING, "no machine needs the image yet; it is prepared for the first that does"
    names = ", ".join(usable)
    left = f"; not for {len(others)} of {len(image_states)} Providers: {', '.join(each.message for each in others)}" if others else ""
    if any(each.state == "ready" for each in image_states):
        return PHASE_READY, reasons.PREPARED, f"prepared for {names}{left}"
    return PHASE_READY, reasons.SUCCESS, f"nothing has to be prepared for {names}{left}"
