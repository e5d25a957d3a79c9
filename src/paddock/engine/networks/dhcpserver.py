"""DHCP, DHCPv6 and router advertisements at one tap, over a packet socket that was made elsewhere."""

import contextlib
import socket

from paddock.engine.networks import dhcp, dhcp6
from paddock.engine.networks.responderstate import GuestPort

# A guest that asks more often is heard the next time.
_AT_ONCE = 16


class DhcpServer:
    """Answers the guest at a tap."""

    def __init__(self, tap: socket.socket, port: GuestPort) -> None:
        self.tap, self.port = tap, port

    def serve(self) -> None:
        """Answer what has arrived; raises OSError when the device is down or gone."""
        for _ in range(_AT_ONCE):
            try:
                frame, sender = self.tap.recvfrom(4096)
            except BlockingIOError:
                return
            if sender[2] == socket.PACKET_OUTGOING:
                continue
            answer = self._answer(frame)
            if answer is not None:
                self._send(answer)

    def _answer(self, frame: bytes) -> bytes | None:
        lease, lease6 = self.port.lease, self.port.lease6
        if frame[12:14] == b"\x86\xdd":
            return dhcp6.answer(frame, lease6) if lease6 is not None else None
        said = dhcp.unframe(frame)
        if lease is None or said is None or said[0] != lease.mac:
            return None
        asked = dhcp.read(said[1])
        answer = dhcp.answer(asked, lease) if asked is not None else None
        return dhcp.frame(answer, lease, self.port.mac) if answer is not None else None

    def advertise(self) -> None:
        """Tell the guest of its router, whether it asks or not."""
        if self.port.lease6 is not None:
            self._send(dhcp6.advertisement(self.port.lease6))

    def _send(self, frame: bytes) -> None:
        # A full queue of the guest's is as good as a lost packet.
        with contextlib.suppress(OSError):
            self.tap.send(frame)
