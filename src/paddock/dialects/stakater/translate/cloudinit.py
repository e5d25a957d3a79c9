"""The user data of a Stakater machine: the user's own, or one that makes a user with a password."""

import yaml

from paddock.dialects.stakater.kinds.fields import Parameters

# KubeVirt refuses longer inline documents.
INLINE_BYTES = 2048
# Lets the guest agent write authorized_keys where SELinux would not, and never fails the boot where there is no SELinux.
_ALLOW_KEYS = ["sh", "-c", "if command -v setsebool >/dev/null; then setsebool -P virt_qemu_ga_manage_ssh on; fi; exit 0"]


def render(parameters: Parameters) -> str:
    given = parameters.cloudInit
    if given.userData is not None:
        return given.userData
    document: dict[str, object] = {"user": given.user}
    if given.password is not None:
        document["password"] = given.password
        document["chpasswd"] = {"expire": given.passwordExpire}
    if parameters.enableDynamicCredentials:
        document["runcmd"] = [_ALLOW_KEYS]
    return "#cloud-config\n" + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=4096)


def needs_secret(parameters: Parameters, document: str) -> bool:
    """Return whether the document must not, or cannot, stand in the machine itself."""
    has_password = parameters.cloudInit.userData is None and parameters.cloudInit.password is not None
    return has_password or len(document.encode()) > INLINE_BYTES
