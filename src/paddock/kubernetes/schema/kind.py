"""A kind: everything the API, the generators and the commands need to know of it besides its fields."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import msgspec

from paddock.kubernetes.schema.field import Object
from paddock.kubernetes.schema.finding import Finding


class Column(msgspec.Struct, frozen=True):
    """A column of `kubectl get`. `path` is a JSONPath without braces; wide columns show with `-o wide` only."""

    name: str
    path: str
    type: str = "string"
    text: str = ""
    wide: bool = False
    # how clients may show the value, as OpenAPI calls it
    format: str = ""


AGE = Column("Age", ".metadata.creationTimestamp", "date")


class Scale(msgspec.Struct, frozen=True):
    """The paths of the numbers of the scale subresource."""

    replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str = ".status.labelSelector"


class Version(msgspec.Struct, frozen=True):
    """A served version. All versions of a kind have one schema; one is stored."""

    name: str
    storage: bool = True
    deprecated: str = ""


class Cel(msgspec.Struct, frozen=True):
    """The form of a rule that a kube-apiserver enforces by itself.

    `at` is the place in the schema (`spec.parameters.networks[]`, list items as `[]`), `field` the place below it that the
    answer names (`.multus.networkName`).
    """

    at: str
    rule: str
    message: str
    field: str = ""
    reason: str = "FieldValueInvalid"


class AdmissionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of admission by an operator of Paddock. The defaults are the product's."""

    # "embedded": objects run on Paddock's own engine; "cluster": on KubeVirt and CDI, which accept less.
    target: str = "embedded"
    max_vcpus: int = 512
    # of the machines, where an object does not say it
    architecture: str = "amd64"
    # Kubermatic: a DataVolume may name an `Image` as its source.
    image_source_ref: bool = False
    # KubeVirt feature gates that are turned on and off, and for clusters the minor of the release 1.x; 0: the newest.
    gates: frozenset[str] = frozenset()
    gates_off: frozenset[str] = frozenset()
    kubevirt_release: int = 0
    # Directories of the host that a hostDisk may live in.
    host_disk_paths: tuple[str, ...] = ()
    # KubeVirt: whether changes of a template reach a running machine where they can (vmRolloutStrategy LiveUpdate).
    live_update: bool = True
    # Whether Paddock's controllers carry out what is stored. Without them nobody would take off a finalizer or write a status for them.
    controllers: bool = True
    # "refused": Pods and what is made of Pods cannot be created, with the reason; "stored": they are kept, and nothing runs them.
    workloads: str = "refused"
    # The writer is one of Paddock's own controllers: what KubeVirt reserves for itself is theirs.
    trusted: bool = False


class CrossFieldRule(msgspec.Struct, frozen=True):
    """A rule across fields of one object: a pure function from the object to what is wrong with it.

    Objects with other errors are passed too: a rule skips what is empty, because the schema has already said so.
    """

    id: str
    text: str
    check: Callable[[Any, AdmissionSettings], Iterable[Finding]]
    cel: tuple[Cel, ...] = ()
    # Of a rule about one place in an object: the way to the place, and the check there; `check` does both. Whoever asks
    # all rules of a kind finds the place once.
    place_of: Callable[[Any, AdmissionSettings], Any] | None = None
    judge: Callable[[Any], Iterable[Finding]] | None = None
    # It looks at the status, too; the others need not be asked when nothing but the status is written.
    of_status: bool = False
    # It warns, and users read that again at each change; the others need not be asked when their place is as it was.
    warns: bool = False
    # Ways from the place, or from the object (`ruling`). The rule runs only if one of them leads to a value; without ways, it always runs.
    given: tuple[str, ...] = ()


class Transition(msgspec.Struct, frozen=True):
    """A rule about a change: a pure function from the old and the new object to what is wrong with the change."""

    id: str
    text: str
    check: Callable[[Any, Any, AdmissionSettings], Iterable[Finding]]
    cel: tuple[Cel, ...] = ()


def rule(
    id: str, *cel: Cel, of_status: bool = False, given: Iterable[str] = ()
) -> Callable[[Callable[[Any, AdmissionSettings], Iterable[Finding]]], CrossFieldRule]:
    """Make a function a `CrossFieldRule`; its docstring is the text of the rule."""
    return lambda check: CrossFieldRule(id, _text(check), check, cel, of_status=of_status, given=tuple(given))


def transition(id: str, *cel: Cel) -> Callable[[Callable[[Any, Any, AdmissionSettings], Iterable[Finding]]], Transition]:
    """Make a function a `Transition`; its docstring is the text of the rule."""
    return lambda check: Transition(id, _text(check), check, cel)


def _text(function: Callable[..., Any]) -> str:
    return " ".join((function.__doc__ or "").split())


class KindFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The names of one kind of one group, and how it is served."""

    group: str
    kind: str
    plural: str
    dialect: str
    versions: tuple[Version, ...] = (Version("v1"),)
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    columns: tuple[Column, ...] = (AGE,)
    status: bool = True
    scale: Scale | None = None
    # A kind that a Kubernetes API server has built in gets no CRD.
    builtin: bool = False
    # Only created, never stored (UploadTokenRequest).
    stored: bool = True
    # A webhook of KubeVirt decodes the spec and writes it anew, before a schema looks at it.
    rewritten: bool = False
    # Another (group, kind) whose objects these are, in another form.
    alias_of: tuple[str, str] | None = None

    LIST_SUFFIX: ClassVar[str] = "List"

    @property
    def storage_version(self) -> str:
        """The version objects are stored in."""
        return next(version.name for version in self.versions if version.storage)

    @property
    def takes_fractions(self) -> bool:
        """Return whether a JSON number with a fraction is a quantity: to Kubernetes' decoder it is, to the schema of a CRD it is not."""
        return self.builtin or self.rewritten

    @property
    def api_version(self) -> str:
        """Group and storage version as a manifest writes them."""
        return f"{self.group}/{self.storage_version}" if self.group else self.storage_version


class Kind(KindFacts, frozen=True, kw_only=True, dict=True):
    """The declaration of a kind: its facts, its fields and its rules."""

    cls: type[Object]
    rules: tuple[CrossFieldRule, ...] = ()
    transitions: tuple[Transition, ...] = ()

    @property
    def text(self) -> str:
        """The description of the kind."""
        return " ".join((self.cls.__doc__ or "").split())
