"""The credentials of a Provider: a file for the name, one for the password, and perhaps one with the authority of the certificate.

They are read whenever they are needed, so a Secret that changes needs no restart.
"""

import hashlib
from pathlib import Path

import msgspec

from paddock.contract.errors import ErrorKind, ProviderError

USERNAME, PASSWORD, AUTHORITY = "username", "password", "ca.crt"


class VSphereLogin(msgspec.Struct, frozen=True):
    """A name and a password."""

    username: str
    password: str

    def __repr__(self) -> str:
        return "VSphereLogin(<hidden>)"

    @property
    def digest(self) -> str:
        """A sum to compare by, which can be kept."""
        return hashlib.sha256(f"{self.username}\0{self.password}".encode()).hexdigest()


def login(folder: Path) -> VSphereLogin:
    """Return what the files say now; raises Unauthorized when they are missing."""
    username, password = _text(folder / USERNAME), _text(folder / PASSWORD)
    missing = [name for name, value in ((USERNAME, username), (PASSWORD, password)) if not value]
    if missing:
        what = f"the credentials have no {' and no '.join(missing)}"
        raise ProviderError(ErrorKind.UNAUTHORIZED, what, fix=f"store {USERNAME} and {PASSWORD} in the Secret of the Provider")
    return VSphereLogin(username, password)


def authority(folder: Path) -> Path | None:
    """Return the file with the authority that the endpoint's certificate is verified by; None: those of the system."""
    file = folder / AUTHORITY
    return file if file.is_file() else None


def _text(file: Path) -> str:
    try:
        # A Secret that was made from a file ends in a line break, which is no part of a password.
        return file.read_text().rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        return ""
