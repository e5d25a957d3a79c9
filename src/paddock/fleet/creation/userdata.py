"""The cloud-init document of a new machine: the user's key, for the guest's own user and for one of the user's name."""

import re
from collections.abc import Sequence

from paddock.base.errors import Terminal
from paddock.kubernetes.meta.manifests import write

_KEY = re.compile(r"(ssh-[a-z0-9-]+|ecdsa-[a-z0-9-]+|sk-[a-z0-9@.-]+) ([A-Za-z0-9+/]+=*)(?: (.*))?")
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_COMMENT = re.compile(r"[^A-Za-z0-9@._-]+")
_ROOT = "root"
_HEAD = "#cloud-config\n"


class BadPublicKey(Terminal):
    """A file that holds no public key."""


def public_key(text: str, place: str) -> str:
    """Return the key of a `.pub` file on one line. Raises `BadPublicKey`."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found = _KEY.fullmatch(lines[0]) if len(lines) == 1 else None
    if found is None:
        private = "PRIVATE KEY" in text
        why = "it is a private key" if private else "it does not hold one line such as ssh-ed25519 AAAA... NAME"
        raise BadPublicKey(
            f"{place} is no public SSH key", why=why, fix=f"name {place}.pub" if private else "make one: ssh-keygen -t ed25519"
        )
    # A comment could hold what YAML reads as something else.
    comment = _COMMENT.sub("-", found[3] or "").strip("-")
    return f"{found[1]} {found[2]} {comment}".rstrip()


def document(keys: Sequence[str], user: str, password: str = "", mounts: Sequence[Sequence[str]] = ()) -> str:
    """Return cloud-init's document; empty without a key, a password and a mount.

    `user` gets an account beside the image's own, root only its key. A password is that of the user, else of the image's own. With a
    mount, the account comes first: the first ordinary user of a guest is the one that the files of shared directories belong to.
    """
    if not keys and not password and not mounts:
        return ""
    config: dict[str, object] = {"ssh_authorized_keys": list(keys)} if keys else {}
    if mounts:
        config["mounts"] = [list(each) for each in mounts]
    if not keys and not password:
        return f"{_HEAD}{write.to_yaml([config])}"
    if password:
        config["ssh_pwauth"] = True
    if user == _ROOT:
        config["disable_root"] = False
        if password:
            config["chpasswd"] = {"expire": False, "users": [{"name": _ROOT, "password": password, "type": "text"}]}
    elif _USER.fullmatch(user):
        account: dict[str, object] = {"name": user, "shell": "/bin/bash", "sudo": "ALL=(ALL) NOPASSWD:ALL"}
        if keys:
            account["ssh_authorized_keys"] = list(keys)
        if password:
            account |= {"plain_text_passwd": password, "lock_passwd": False}
        config["users"] = [account, "default"] if mounts else ["default", account]
    elif password:
        config |= {"password": password, "chpasswd": {"expire": False}}
    return f"{_HEAD}{write.to_yaml([config])}"
