"""The commands of a guest's agent that a machine needs, and the condition of one whose agent lacks some (docs/spec/kubevirt.md 2.3)."""

from collections.abc import Sequence

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubevirt.kinds.access import AccessCredential

UNSUPPORTED = "AgentVersionNotSupported"
# what KubeVirt says of it -> commands
_BASIC = (
    "This guest agent doesn't support required basic commands",
    (
        *("guest-ping", "guest-get-time", "guest-info", "guest-shutdown", "guest-network-get-interfaces", "guest-get-fsinfo"),
        *("guest-get-host-name", "guest-get-users", "guest-get-timezone", "guest-get-osinfo"),
    ),
)
_KEYS = (
    "This guest agent doesn't support required public key commands",
    ("guest-ssh-get-authorized-keys", "guest-ssh-add-authorized-keys", "guest-ssh-remove-authorized-keys"),
)
_PASSWORDS = ("This guest agent doesn't support required password commands", ("guest-set-user-password",))
_FIX = "allow them in the guest agent's settings, or install a newer qemu-guest-agent"


def unsupported(commands: frozenset[str], credentials: Sequence[AccessCredential]) -> Condition | None:
    """The condition of a guest whose agent carries out these commands; None when it lacks nothing that the machine needs."""
    for reason, needed in _needs(credentials):
        if lacking := [each for each in needed if each not in commands]:
            return Condition(type=UNSUPPORTED, status="True", reason=reason, message=f"it lacks {', '.join(lacking)}; {_FIX}")
    return None


def _needs(credentials: Sequence[AccessCredential]) -> list[tuple[str, tuple[str, ...]]]:
    keys = any(each.sshPublicKey is not None and each.sshPublicKey.propagationMethod.qemuGuestAgent is not None for each in credentials)
    passwords = any(each.userPassword is not None for each in credentials)
    return [_BASIC, *([_KEYS] if keys else []), *([_PASSWORDS] if passwords else [])]
