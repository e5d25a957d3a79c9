"""Paths on datastores: "[DATASTORE] FOLDER/FILE". Pure."""

import re
from urllib.parse import quote, urlencode

import msgspec

from paddock_drivers.kit import refusals

_PATH = re.compile(r"\[([^\[\]]{1,80})\][ ]?(.{0,1024})\Z", re.DOTALL)


class DatastorePath(msgspec.Struct, frozen=True):
    """A file or a folder."""

    datastore: str
    path: str = ""

    def __str__(self) -> str:
        return f"[{self.datastore}] {self.path}".rstrip()

    @property
    def folder(self) -> "DatastorePath":
        """The folder that it is in."""
        return DatastorePath(self.datastore, self.path.rpartition("/")[0])

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def beside(self, name: str) -> "DatastorePath":
        """Return another file of the same folder."""
        return DatastorePath(self.datastore, f"{self.folder.path}/{name}" if self.folder.path else name)

    def target(self, datacenter: str) -> str:
        """Return the target of an HTTP request for the file."""
        return f"/folder/{quote(self.path, safe='/')}?{urlencode({'dcPath': datacenter, 'dsName': self.datastore}, quote_via=quote)}"


def parse(text: str) -> DatastorePath:
    """Return the path of a text; raises InvalidSpec for one that leaves its datastore."""
    found = _PATH.match(text)
    parts = found[2].split("/") if found is not None else [".."]
    if found is None or ".." in parts or any(ord(each) < 32 for each in text):
        raise refusals.invalid("the path of the disk cannot be read", fix='write it as "[DATASTORE] FOLDER/FILE.vmdk"')
    return DatastorePath(found[1], "/".join(each for each in parts if each not in ("", ".")))
