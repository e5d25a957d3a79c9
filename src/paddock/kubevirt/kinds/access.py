"""Credentials of guests, and probes of their health."""

from typing import Annotated

from paddock.kubernetes.meta.pods import ExecAction, HTTPGetAction, TCPSocketAction
from paddock.kubernetes.schema.field import Empty, Field, Object


class SecretSource(Object):
    """A Secret by its name."""

    secretName: Annotated[str, Field("Name of the Secret.", required=True)] = ""


class CredentialSource(Object):
    """The source of credentials."""

    secret: Annotated[SecretSource | None, Field("A Secret; its values are public keys, or passwords by user.")] = None


class AgentKeyPropagation(Object):
    """The guest agent writes the keys, and again whenever they change."""

    users: Annotated[list[str], Field("Users of the guest.", zero=True, unique=True)] = []


class KeyPropagation(Object):
    """The way keys reach the guest; exactly one."""

    noCloud: Annotated[Empty | None, Field("By cloud-init's NoCloud disk.")] = None
    configDrive: Annotated[Empty | None, Field("By cloud-init's ConfigDrive disk.")] = None
    qemuGuestAgent: Annotated[AgentKeyPropagation | None, Field("By the guest agent.")] = None


class SSHPublicKey(Object):
    """Public keys that may log in."""

    source: Annotated[CredentialSource, Field("Where the keys come from.", required=True)] = CredentialSource()
    propagationMethod: Annotated[KeyPropagation, Field("How they reach the guest.", required=True)] = KeyPropagation()


class PasswordPropagation(Object):
    """The way passwords reach the guest."""

    qemuGuestAgent: Annotated[Empty | None, Field("By the guest agent.")] = None


class UserPassword(Object):
    """Passwords of users."""

    source: Annotated[CredentialSource, Field("Where the passwords come from.", required=True)] = CredentialSource()
    propagationMethod: Annotated[PasswordPropagation, Field("How they reach the guest.", required=True)] = PasswordPropagation()


class AccessCredential(Object):
    """Credentials; exactly one type."""

    sshPublicKey: Annotated[SSHPublicKey | None, Field("Public keys.")] = None
    userPassword: Annotated[UserPassword | None, Field("Passwords.")] = None


class Probe(Object):
    """A check that a machine is ready, or alive; exactly one method."""

    exec: Annotated[ExecAction | None, Field("A command in the guest, run by the guest agent.")] = None
    guestAgentPing: Annotated[Empty | None, Field("The guest agent answers.")] = None
    httpGet: Annotated[HTTPGetAction | None, Field("An HTTP request.")] = None
    tcpSocket: Annotated[TCPSocketAction | None, Field("A connection.")] = None
    initialDelaySeconds: Annotated[int | None, Field("Seconds to wait after the start.", ge=0, bits=32)] = None
    timeoutSeconds: Annotated[int | None, Field("Seconds for one probe; default: 1.", ge=0, bits=32)] = None
    periodSeconds: Annotated[int | None, Field("Seconds between probes; default: 10.", ge=0, bits=32)] = None
    successThreshold: Annotated[int | None, Field("Successes in a row that count; default: 1.", ge=0, bits=32)] = None
    failureThreshold: Annotated[int | None, Field("Failures in a row that count; default: 3.", ge=0, bits=32)] = None
