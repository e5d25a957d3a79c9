"""The file of an HTML form (multipart/form-data), taken out while it arrives. Pure: bytes in, bytes of the file out."""

from email.message import Message

_LONGEST_HEAD = 16 * 1024
FIELD = "file"


class BadForm(ValueError):
    """The body is no form, or has no file."""


def boundary_of(content_type: str) -> bytes:
    """The line between parts; raises `BadForm`."""
    message = Message()
    message["content-type"] = content_type
    boundary = message.get_boundary()
    if message.get_content_type() != "multipart/form-data" or not boundary or len(boundary) > 200:
        raise BadForm("the body must be multipart/form-data with a boundary")
    return b"\r\n--" + boundary.encode("latin-1", "replace")


class FormFile:
    """Feed it the body; it gives the bytes of the field `file`."""

    def __init__(self, content_type: str) -> None:
        self._boundary = boundary_of(content_type)
        # The first boundary needs no line before it.
        self._rest = b"\r\n"
        self._inside = False
        self._wanted = False
        self.found = False
        self.ended = False

    def feed(self, data: bytes) -> bytes:
        """The part of the file that is in these bytes. Raises `BadForm`."""
        self._rest += data
        out: list[bytes] = []
        while not self.ended and (self._content(out) if self._inside else self._head()):
            pass
        return b"".join(out)

    def finish(self) -> None:
        """The body has ended; raises `BadForm` unless the form has."""
        if not self.ended:
            raise BadForm("the form ends in its middle")
        if not self.found:
            raise BadForm(f"the form has no field {FIELD}")

    def _content(self, out: list[bytes]) -> bool:
        """Pass content on up to the next boundary; whether there may be more to do."""
        place = self._rest.find(self._boundary)
        # The end of what came may be the beginning of a boundary.
        taken = place if place >= 0 else max(0, len(self._rest) - len(self._boundary))
        if self._wanted and taken:
            out.append(self._rest[:taken])
        self._rest = self._rest[taken:]
        if place < 0:
            return False
        self._inside = False
        return True

    def _head(self) -> bool:
        """Read a boundary and the head of the part after it."""
        start = self._rest.find(self._boundary)
        after = start + len(self._boundary)
        if start >= 0 and self._rest[after : after + 2] == b"--":
            self.ended = True
            return False
        end = self._rest.find(b"\r\n\r\n", after) if start >= 0 else -1
        if end < 0:
            if len(self._rest) > _LONGEST_HEAD:
                raise BadForm("the head of a part is too long, or the body is no form")
            return False
        self._wanted = not self.found and _field(self._rest[after:end]) == FIELD
        self.found = self.found or self._wanted
        # The line that ends the head is the one that may begin a boundary, when the part is empty.
        self._rest = self._rest[end + 2 :]
        self._inside = True
        if not self._rest.startswith(self._boundary):
            self._rest = self._rest[2:]
        return True


def _field(head: bytes) -> str:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-disposition":
            message = Message()
            message["content-disposition"] = value.decode("utf-8", "replace").strip()
            found = message.get_param("name", header="content-disposition")
            return found if isinstance(found, str) else ""
    return ""
