"""The documents of a clone's first boot: the user's own, and what the clone's customization adds to them for cloud-init."""

import re
import shlex
from typing import Any

import msgspec

from paddock.base import duration
from paddock.dialects.virtrigaud.kinds import userdata
from paddock.dialects.virtrigaud.kinds.machine import CloudInitUserData, Ignition, UserData
from paddock.dialects.virtrigaud.kinds.vmclone import Certificate, Customization, GuestCommand
from paddock.dialects.virtrigaud.plan import reasons
from paddock.dialects.virtrigaud.plan.guest import Secrets
from paddock.dialects.virtrigaud.plan.refusals import Refusal

_HEADER = b"#cloud-config\n"
_NAMES = re.compile(rb"^[ \t]*\"?(hostname|fqdn)\"?[ \t]*:", re.MULTILINE)
# Lists of two documents are joined; what both say, the user's own says.
_MERGE = [{"name": "list", "settings": ["append"]}, {"name": "dict", "settings": ["no_replace", "recurse_list"]}]


def steps(customization: Customization) -> tuple[str, ...]:
    """The names of what is customized."""
    names = ("hostname", "domain", "timeZone", "networks", "userData", "tags", "certificates", "guestCommands")
    return tuple(name for name in names if getattr(customization, name))


def generated(customization: Customization, secrets: Secrets, namespace: str) -> bytes:
    """The cloud-config of a customization, without names; empty when it needs none."""
    found: dict[str, Any] = {}
    if customization.domain and not customization.hostname:
        found["manage_resolv_conf"], found["resolv_conf"] = True, {"domain": customization.domain, "searchdomains": [customization.domain]}
    if customization.timeZone:
        found["timezone"] = customization.timeZone
    if customization.certificates:
        found["ca_certs"] = {"trusted": [_certificate(each, secrets, namespace) for each in customization.certificates]}
    if customization.guestCommands:
        found["runcmd"] = [_command(each) for each in customization.guestCommands]
    if not found:
        return b""
    return _HEADER + msgspec.json.encode({"merge_how": _MERGE, **found}, order="deterministic") + b"\n"


def document(customization: Customization, own: bytes, secrets: Secrets, namespace: str) -> bytes:
    """The document of a clone, sent inline: the user's own or that of the source, with what the customization adds.

    The provider names the host. A document that names it, too, would have the last word.
    """
    base = users(customization.userData, secrets, namespace) if customization.userData is not None else own
    named = bool(customization.hostname and (customization.domain or _NAMES.search(base)))
    made = _joined(_naming(customization) if named else b"", base, generated(customization, secrets, namespace))
    return b"" if made == own and customization.userData is None else made


def user_data(customization: Customization, secrets: Secrets, namespace: str) -> UserData | None:
    """The user data of a machine that is made from an image; Secrets stay Secrets."""
    base = customization.userData
    naming, added = _naming(customization), generated(customization, secrets, namespace)
    if not naming and not added:
        return base
    text = base.cloudInit if base is not None else None
    if base is not None and base.ignition is not None:
        raise _ignition()
    if text is not None and text.inline and text.secretRef is not None:
        what = "customization.userData is given inline and in a Secret, and the customization adds to it"
        raise Refusal(what, fix="put all of it into the Secret")
    inline = _joined(naming, (text.inline or "").encode() if text is not None else b"", added)
    if text is not None and text.secretRef is not None and naming and added:
        what = "customization.userData is given in a Secret, and hostname and the rest of the customization are two more documents"
        raise Refusal(what, fix="say the name of the host in the Secret")
    return UserData(cloudInit=CloudInitUserData(inline=inline.decode(), secretRef=text.secretRef if text is not None else None))


def secret_names(customization: Customization) -> tuple[str, ...]:
    """The Secrets that a customization names, in the namespace of the clone."""
    found = [each.secretRef.name for each in customization.certificates or () if each.secretRef is not None]
    found += [each.secretRef.name for each in _parts(customization.userData) if each.secretRef is not None]
    return tuple(dict.fromkeys(found))


def users(user_data: UserData | None, secrets: Secrets, namespace: str) -> bytes:
    """A user's document, with what stands in a Secret."""
    for part in _parts(user_data):
        keys = userdata.IGNITION_KEYS if isinstance(part, Ignition) else userdata.USER_DATA_KEYS
        inline = (part.inline or "").encode()
        if part.secretRef is None:
            return inline
        stored = _stored(secrets, namespace, part.secretRef.name, keys)
        return userdata.merged(inline, stored) if inline and not isinstance(part, Ignition) else inline or stored
    return b""


def is_ignition(document: bytes) -> bool:
    """Return whether a document is for Ignition."""
    return document.lstrip().startswith(b"{")


def _parts(user_data: UserData | None) -> tuple[CloudInitUserData | Ignition, ...]:
    found = (user_data.cloudInit, user_data.ignition) if user_data is not None else ()
    return tuple(each for each in found if each is not None)


def _naming(customization: Customization) -> bytes:
    """The name of the host as a document that stands before all others, so that it counts."""
    if not customization.hostname:
        return b""
    lines = [
        f"hostname: {customization.hostname}",
        *([f"fqdn: {customization.hostname}.{customization.domain}"] if customization.domain else []),
    ]
    return _HEADER + "\n".join((*lines, "preserve_hostname: false", "")).encode()


def _joined(*documents: bytes) -> bytes:
    found = [part for each in documents if each for part in (userdata.parts(each) or (each,))]
    if len(found) > 1 and any(is_ignition(each) for each in found):
        raise _ignition()
    return userdata.combined(found) if len(found) > 1 else b"".join(found)


def _ignition() -> Refusal:
    what = "the customization is carried out by cloud-init, and the guest reads Ignition"
    return Refusal(what, fix="say them in the Ignition document", reason=reasons.UNSUPPORTED)


def _certificate(certificate: Certificate, secrets: Secrets, namespace: str) -> str:
    if certificate.secretRef is not None:
        return _stored(secrets, namespace, certificate.secretRef.name, (certificate.secretKey,)).decode(errors="replace")
    if not certificate.data:
        raise Refusal(f"certificate {certificate.name} has neither data nor secretRef", fix="give one of them")
    return certificate.data


def _stored(secrets: Secrets, namespace: str, name: str, keys: tuple[str, ...]) -> bytes:
    values = secrets.get(name, {})
    key = userdata.key_in(values, keys)
    if key is None:
        raise Refusal(f"Secret {namespace}/{name} has none of the keys {', '.join(keys)}", fix="add the document under one of them")
    return values[key]


def _command(guest_command: GuestCommand) -> list[str]:
    """A command as cloud-init runs it: in its directory, as its user, and within its time."""
    seconds = max(1, round(duration.parse(guest_command.timeout) / duration.SECOND))
    words = ["timeout", str(seconds), guest_command.command, *(guest_command.arguments or ())]
    script = (
        f"cd {shlex.quote(guest_command.workingDirectory)} && {shlex.join(words)}" if guest_command.workingDirectory else shlex.join(words)
    )
    return ["su", "-s", "/bin/sh", "-c", script, guest_command.runAsUser] if guest_command.runAsUser else ["sh", "-c", script]
