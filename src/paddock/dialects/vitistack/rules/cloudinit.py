"""Cloud-init."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.meta import cloudconfig
from paddock.schema import finding
from paddock.schema.finding import Finding
from paddock.schema.kind import AdmissionSettings, Cel, rule

if TYPE_CHECKING:
    from paddock.dialects.vitistack.machine import Machine

_USER_DATA = ("spec", "cloudInit", "userData")
_OWN_SECRET = "the machine's own Secret has this name, and only its key userdata can be referred to"


@rule("vitistack/cloud-init")
def documents_are_readable(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """User data that says it is cloud-config is a YAML mapping; network data has a version cloud-init knows (a warning)."""
    cloud_init = machine.spec.cloudInit
    if cloud_init is None:
        return
    if cloud_init.userData:
        problem = cloudconfig.problem(cloud_init.userData)
        if problem:
            yield finding.secret_invalid(_USER_DATA, f"not valid cloud-config: {problem}", "vitistack/cloud-init")
        else:
            for text in cloudconfig.user_data_problems(cloud_init.userData):
                yield finding.warning(_USER_DATA, text, "vitistack/cloud-init")
    if cloud_init.networkData:
        problem = cloudconfig.network_problem(cloud_init.networkData)
        if problem:
            path = ("spec", "cloudInit", "networkData")
            yield finding.warning(path, f"cloud-init may ignore it: {problem}", "vitistack/cloud-init")


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


RULES = (documents_are_readable, one_source, secret_is_not_our_own)
