"""The directory of a machine in memory."""


class FakeDirectory:
    """A machine's directory on disk: the output of its guest on the serial console."""

    def __init__(self) -> None:
        self.id = ""
        self.serial = b""

    def serial_tail(self, size: int) -> bytes:
        return self.serial[-size:]
