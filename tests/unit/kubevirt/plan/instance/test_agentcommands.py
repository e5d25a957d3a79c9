"""The commands of a guest's agent that a machine needs."""

import pytest

from paddock.kubernetes.schema.field import Empty
from paddock.kubevirt.kinds.access import (
    AccessCredential,
    AgentKeyPropagation,
    KeyPropagation,
    PasswordPropagation,
    SSHPublicKey,
    UserPassword,
)
from paddock.kubevirt.plan.instance import agentcommands
from tests.kit.engine.agentfakes import COMMANDS

KEYS = AccessCredential(sshPublicKey=SSHPublicKey(propagationMethod=KeyPropagation(qemuGuestAgent=AgentKeyPropagation(users=["ada"]))))
SEEDED = AccessCredential(sshPublicKey=SSHPublicKey(propagationMethod=KeyPropagation(noCloud=Empty())))
PASSWORD = AccessCredential(userPassword=UserPassword(propagationMethod=PasswordPropagation(qemuGuestAgent=Empty())))


@pytest.mark.spec("kubevirt", 198)
@pytest.mark.parametrize(
    ("lacks", "credentials", "reason"),
    [
        ((), (KEYS, PASSWORD), ""),
        (("guest-shutdown",), (), "This guest agent doesn't support required basic commands"),
        (("guest-shutdown", "guest-set-user-password"), (PASSWORD,), "This guest agent doesn't support required basic commands"),
        (("guest-ssh-add-authorized-keys",), (KEYS,), "This guest agent doesn't support required public key commands"),
        (("guest-ssh-add-authorized-keys",), (SEEDED, PASSWORD), ""),
        (("guest-set-user-password",), (KEYS, PASSWORD), "This guest agent doesn't support required password commands"),
        (("guest-set-user-password",), (KEYS,), ""),
        (("guest-exec", "guest-fsfreeze-freeze"), (KEYS, PASSWORD), ""),
    ],
)
def test_an_agent_without_commands(lacks: tuple[str, ...], credentials: tuple[AccessCredential, ...], reason: str) -> None:
    found = agentcommands.unsupported(frozenset(COMMANDS) - frozenset(lacks), credentials)
    assert (found.reason if found is not None else "") == reason
    if found is not None:
        assert found.status == "True" and lacks[0] in (found.message or "")
