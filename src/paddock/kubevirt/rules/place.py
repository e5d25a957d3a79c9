"""The place of a machine's hardware in an object, and the conversion of its rules into rules of a kind.

A machine's template, a running instance, a pool and a replica set all hold a `VirtualMachineInstanceSpec`, at different
places. A `HardwareContext` has the place; every check reads a place only and knows nothing of kinds.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from paddock.base import quantity
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, CrossFieldRule
from paddock.kubevirt.kinds.volumes import Volume

if TYPE_CHECKING:
    from paddock.kubevirt.kinds.instance import VirtualMachineInstanceSpec
    from paddock.kubevirt.kinds.virtualmachine import VirtualMachineSpec

P = TypeVar("P")
T = TypeVar("T")


class HardwareContext(msgspec.Struct, frozen=True, kw_only=True):
    """The hardware of one machine, and what its surroundings say of it."""

    spec: "VirtualMachineInstanceSpec"
    # of the spec, and of the metadata that the running machine gets
    path: Path
    metadata: Path = ("metadata",)
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    settings: AdmissionSettings = AdmissionSettings()
    # an instancetype says how large the machine is, a preference fills what is open
    sized: bool = False
    preferred: bool = False
    # a running machine itself, not a template of one
    running: bool = False
    # the object is stored already
    stored: bool = False

    def at(self, *parts: str | int) -> Path:
        """A place below the spec."""
        return (*self.path, *parts)

    @property
    def architecture(self) -> str:
        """The architecture of the guest."""
        return self.spec.architecture or self.settings.architecture

    @property
    def foreign_architecture(self) -> str | None:
        """The architecture of the guest, if it is another than that of the installation."""
        said = self.spec.architecture
        return said if said and said != self.settings.architecture else None

    def request(self, resource: str) -> int | None:
        """Return the machine's request, in billionths."""
        return self._amount("requests", resource)

    def limit(self, resource: str) -> int | None:
        """Return the machine's limit, in billionths."""
        return self._amount("limits", resource)

    def written(self, path: Path) -> int | str | None:
        """An amount as the document has it. The path ends with `requests` or `limits`, and the resource."""
        resources = self.spec.domain.resources
        amounts: dict[str, int | str] | None = getattr(resources, str(path[-2])) if resources else None
        return (amounts or {}).get(str(path[-1]))

    def _amount(self, kind: str, resource: str) -> int | None:
        amount = self.written((kind, resource))
        return None if amount is None else quantity.parse(amount)

    def volumes(self) -> dict[str, Volume]:
        return {volume.name: volume for volume in self.spec.volumes or ()}


class MachinePlace(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that may be stopped: what is around its hardware."""

    spec: "VirtualMachineSpec"
    path: Path
    namespace: str | None = None
    settings: AdmissionSettings = AdmissionSettings()
    # where a pool in the flat form has the hardware, and the metadata of the running machine
    hardware_path: Path | None = None
    metadata_path: Path | None = None

    def at(self, *parts: str | int) -> Path:
        """A place below the spec."""
        return (*self.path, *parts)

    @property
    def hardware(self) -> HardwareContext:
        """The hardware of the machine."""
        template = self.spec.template
        metadata = template.metadata
        return HardwareContext(
            spec=template.spec,
            path=self.hardware_path or self.at("template", "spec"),
            metadata=self.metadata_path or self.at("template", "metadata"),
            labels=(metadata.labels if metadata is not None else None) or {},
            annotations=(metadata.annotations if metadata is not None else None) or {},
            settings=self.settings,
            sized=self.spec.instancetype is not None,
            preferred=self.spec.preference is not None,
        )


def once(judge: Callable[[P], Iterator[T]]) -> Callable[[P], tuple[T, ...]]:
    """Remember the last result of a function: twenty checks of one place need its disks."""
    of: P | None = None
    found: tuple[T, ...] = ()

    def remembered(subject: P) -> tuple[T, ...]:
        nonlocal of, found
        if of is not subject:
            of, found = subject, tuple(judge(subject))
        return found

    return remembered


class Check(msgspec.Struct, Generic[P], frozen=True):
    """A rule about something that stands at some place of some kind. The places of its CEL forms are relative to that."""

    id: str
    text: str
    judge: Callable[[P], Iterator[Finding]]
    cel: tuple[Cel, ...] = ()
    warns: bool = False
    given: tuple[str, ...] = ()

    def __call__(self, subject: P) -> Iterator[Finding]:
        return self.judge(subject)


def check(id: str, *cel: Cel, warns: bool = False, given: Iterable[str] = ()) -> Callable[[Callable[[P], Iterator[Finding]]], Check[P]]:
    """Make a function a `Check`; its docstring is the text of the rule. `given` is that of `CrossFieldRule`."""
    return lambda judge: Check(id, " ".join((judge.__doc__ or "").split()), judge, cel, warns, tuple(given))


def rules_of(checks: tuple[Check[P], ...], place_of: Callable[[Any, AdmissionSettings], P], at: str) -> tuple[CrossFieldRule, ...]:
    """The checks as rules of a kind. `place_of` finds the place in an object of the kind, `at` is it in the schema."""
    found = _remembering(place_of)
    return tuple(
        CrossFieldRule(
            each.id, each.text, _on(each.judge, found), placed(each.cel, at), found, each.judge, warns=each.warns, given=each.given
        )
        for each in checks
    )


def _remembering(place_of: Callable[[Any, AdmissionSettings], P]) -> Callable[[Any, AdmissionSettings], P]:
    """All rules are asked about one object before any is asked about the next: its place is found once, not once per rule."""
    last: tuple[Any, AdmissionSettings | None, P | None] = (None, None, None)

    def remembered(value: Any, settings: AdmissionSettings) -> P:
        nonlocal last
        of, under, place = last
        if place is None or of is not value or under is not settings:
            place = place_of(value, settings)
            last = (value, settings, place)
        return place

    return remembered


def _on(
    judge: Callable[[P], Iterator[Finding]], place_of: Callable[[Any, AdmissionSettings], P]
) -> Callable[[Any, AdmissionSettings], Iterator[Finding]]:
    return lambda value, settings: judge(place_of(value, settings))


def placed(cel: tuple[Cel, ...], at: str) -> tuple[Cel, ...]:
    """CEL forms at their place in the schema of a kind."""
    return tuple(msgspec.structs.replace(each, at=f"{at}.{each.at}" if each.at else at) for each in cel)


def standing(finding: Finding, at: Path) -> Finding:
    """A finding whose field is called otherwise than the document has it, with the place in the document."""
    return msgspec.structs.replace(finding, at=at)
