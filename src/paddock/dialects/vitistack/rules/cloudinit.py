import base64
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from paddock.kubernetes.meta import cloudconfig
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, rule

if TYPE_CHECKING:
    from paddock.dialects.vitistack.kinds.machine import Machine
    from paddock.dialects.vitistack.kinds.machinespec import MachineSpec

_OWN_SECRET = "the machine's own Secret has this name, and only its key userdata can be referred to"


@rule("vitistack/cloud-init")
def documents_are_readable(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """User data that says it is cloud-config is a YAML mapping; network data has a version cloud-init knows (a warning)."""
    for path, text in _documents(machine.spec, "userData"):
        problem = cloudconfig.problem(text)
        if problem:
            yield finding.secret_invalid(path, f"not valid cloud-config: {problem}", "vitistack/cloud-init")
        else:
            for each in cloudconfig.user_data_problems(text):
                yield finding.warning(path, each, "vitistack/cloud-init")
    for path, text in _documents(machine.spec, "networkData"):
        problem = cloudconfig.network_problem(text)
        if problem:
            yield finding.warning(path, f"cloud-init may ignore it: {problem}", "vitistack/cloud-init")


def _documents(spec: "MachineSpec", member: str) -> Iterator[tuple[Path, str]]:
    """Yield the documents of a kind that stand in the machine, those in base64 as far as they are text."""
    if member == "userData" and spec.userData:
        yield ("spec", "userData"), spec.userData
    if spec.cloudInit is None:
        return
    text, encoded = getattr(spec.cloudInit, member), getattr(spec.cloudInit, f"{member}Base64")
    if text:
        yield ("spec", "cloudInit", member), text
    with suppress(ValueError):
        if encoded:
            yield ("spec", "cloudInit", f"{member}Base64"), base64.b64decode(encoded, validate=True).decode()


@rule("vitistack/cloud-init-base64")
def base64_is_base64(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """Documents in base64 are base64."""
    for member in ("userDataBase64", "networkDataBase64"):
        try:
            base64.b64decode(getattr(machine.spec.cloudInit, member, None) or "", validate=True)
        except ValueError:
            yield finding.secret_invalid(("spec", "cloudInit", member), "not base64", "vitistack/cloud-init-base64")


@rule("vitistack/cloud-init-source")
def one_source(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """With user data in the machine the Secret is not read (a warning)."""
    cloud_init = machine.spec.cloudInit
    if cloud_init is not None and cloud_init.userData and cloud_init.secretRef is not None:
        text = "secretRef is ignored because userData is set"
        yield finding.warning(("spec", "cloudInit", "secretRef"), text, "vitistack/cloud-init-source")


@rule(
    "vitistack/cloud-init-secret",
    Cel(
        "",
        "!has(self.spec.cloudInit) || !has(self.spec.cloudInit.secretRef) || self.spec.cloudInit.secretRef.key == 'userdata' || "
        "self.spec.cloudInit.secretRef.name != self.metadata.name + '-cloudinit'",
        _OWN_SECRET,
        ".spec.cloudInit.secretRef.name",
    ),
)
def secret_is_not_our_own(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """User data under another key than `userdata` is copied to a Secret of the machine, which is not the one it comes from."""
    secret = machine.spec.cloudInit.secretRef if machine.spec.cloudInit else None
    if secret is not None and secret.key != "userdata" and secret.name == f"{machine.metadata.name}-cloudinit":
        yield finding.invalid(("spec", "cloudInit", "secretRef", "name"), secret.name, _OWN_SECRET, "vitistack/cloud-init-secret")


RULES = (documents_are_readable, base64_is_base64, one_source, secret_is_not_our_own)
