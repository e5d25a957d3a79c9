"""The form of a machine: the document's, or Vitistack's own, and what the latter needs."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.dialects.vitistack.kinds import ownform
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, format_path
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, rule

if TYPE_CHECKING:
    from paddock.dialects.vitistack.kinds.machine import Machine

_ONE_FORM = "a Machine is written in one form: the document's (template, resources, networks), or Vitistack's own (provider, machineClass)"
_NEEDS_PROVIDER = 'Vitistack\'s own form names who makes the machine; write "provider: kubevirt"'
_NEEDS_SIZE = "in Vitistack's own form each disk has its size in Gi"
_ONE_BOOT = "one disk boots: leave boot out of the others"
_NOT_ENCRYPTED = "disks are not encrypted; leave it out, or encrypt in the guest"
_ONE_DOCUMENT = "user data stands in spec.userData or in spec.cloudInit, not in both"


@rule("vitistack/form", Cel("spec", f"!({ownform.OWN_CEL} && {ownform.DOCUMENT_CEL})", _ONE_FORM))
def one_form_is_used(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """A machine is written in the document's form or in Vitistack's own; members of both are refused by name."""
    own, document = (next(members(machine.spec), None) for members in (ownform.own_members, ownform.document_members))
    if own and document:
        message = f"Invalid value: {_ONE_FORM}; {format_path(document)} is of the first, {format_path(own)} of the second: leave one out"
        yield Finding(path=own, message=message, rule="vitistack/form")


@rule(
    "vitistack/provider",
    Cel("spec", f"!{ownform.OWN_CEL} || {ownform.DOCUMENT_CEL} || has(self.provider)", _NEEDS_PROVIDER, ".provider", "FieldValueRequired"),
)
def provider_is_given(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """Vitistack's own form names the provider."""
    mixed = next(ownform.document_members(machine.spec), None)
    if ownform.is_own(machine.spec) and machine.spec.provider is None and not mixed:
        yield finding.required(("spec", "provider"), "vitistack/provider", _NEEDS_PROVIDER)


@rule(
    "vitistack/own-disks",
    Cel(
        "spec",
        f"!{ownform.OWN_CEL} || self.disks.all(d, has(d.sizeGB) || has(d.size))",
        _NEEDS_SIZE,
        ".disks",
        "FieldValueRequired",
    ),
    Cel("spec", "self.disks.filter(d, has(d.boot) && d.boot).size() <= 1", _ONE_BOOT, ".disks"),
    Cel("spec.disks[]", "!has(self.encrypted) || !self.encrypted", _NOT_ENCRYPTED, ".encrypted"),
)
def own_disks_are_whole(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """In Vitistack's own form each disk has a size, at most one boots, and none is encrypted."""
    own, boots = ownform.is_own(machine.spec), 0
    for index, disk in enumerate(machine.spec.disks):
        path = ("spec", "disks", index)
        boots += disk.boot is True
        if own and disk.sizeGB is None and disk.size is None:
            yield finding.required((*path, "sizeGB"), "vitistack/own-disks", _NEEDS_SIZE)
        if disk.boot and boots > 1:
            yield finding.invalid((*path, "boot"), True, _ONE_BOOT, "vitistack/own-disks")
        if disk.encrypted:
            yield finding.invalid((*path, "encrypted"), True, _NOT_ENCRYPTED, "vitistack/own-disks")


@rule(
    "vitistack/own-user-data",
    Cel(
        "spec",
        "!has(self.userData) || !has(self.cloudInit) || !(has(self.cloudInit.userData) || has(self.cloudInit.userDataBase64) || "
        "has(self.cloudInit.userDataSecretRef) || has(self.cloudInit.userDataConfigMapRef))",
        _ONE_DOCUMENT,
        ".userData",
    ),
)
def user_data_stands_once(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """User data stands beside cloud-init, or in it."""
    given = machine.spec.cloudInit
    sources = (given.userData, given.userDataBase64, given.userDataSecretRef, given.userDataConfigMapRef) if given else ()
    if machine.spec.userData is not None and any(each is not None for each in sources):
        yield Finding(path=("spec", "userData"), message=f"Invalid value: {_ONE_DOCUMENT}", rule="vitistack/own-user-data")


RULES = (one_form_is_used, provider_is_given, own_disks_are_whole, user_data_stands_once)
