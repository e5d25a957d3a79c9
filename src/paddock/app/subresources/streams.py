"""console, vnc, portforward, usbredir and vsock: streams of bytes over WebSockets (docs/spec/kubevirt.md 4.2).

Errors are answered before the connection becomes a WebSocket, where clients can read them. `virtctl console` tries again on 400 and on
nothing else, so 400 is what it gets as long as the machine may still come to run.
"""

import asyncio
from collections.abc import Awaitable, Callable

from paddock.app.subresources import queries
from paddock.app.subresources.environment import DatagramFlow, NetworksApi
from paddock.app.subresources.installation import InstallationApi
from paddock.app.subresources.instances import NOT_RUNNING, InstanceFinder, phase_of, refused
from paddock.app.subresources.remoteend import RemoteEnd, pump, subprotocol
from paddock.app.subresources.sessions import Kind, Sessions
from paddock.app.subresources.stored import conflict
from paddock.base.errors import PaddockError
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.pipes import Pipe
from paddock.kubernetes.meta import failure
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance import identity
from paddock.server.context import RequestContext
from paddock.server.edge import frames
from paddock.server.edge.http import Answer, HttpResponse, Socket, Upgrade
from paddock.server.resources.kubevirtsubresources import INSTANCES

# A client that takes nothing of the serial line for so long is let go: the guest would have to wait for it.
CONSOLE_PATIENCE_SECONDS = 10.0
_PIECE = 64 * 1024


class Displays:
    """The machines whose displays have viewers."""

    def __init__(self) -> None:
        self._looking: dict[str, int] = {}

    def is_taken(self, uid: str) -> bool:
        """Return whether the display has a viewer."""
        return self._looking.get(uid, 0) > 0

    def join(self, uid: str) -> None:
        self._looking[uid] = self._looking.get(uid, 0) + 1

    def leave(self, uid: str) -> None:
        left = self._looking.get(uid, 1) - 1
        if left:
            self._looking[uid] = left
        else:
            self._looking.pop(uid, None)


class Streams:
    def __init__(self, instances: InstanceFinder, networks: NetworksApi, installation: InstallationApi, sessions: Sessions) -> None:
        self._instances = instances
        self._sessions = sessions
        self._networks = networks
        self._installation = installation
        self._displays = Displays()

    # --- the console and the display ----------------------------------------------------------------------------------------

    async def console(self, call: RequestContext) -> Answer:
        """The serial line. With `screen=true`, which KubeVirt does not have, it begins with the last screen."""
        instance = self._instances.asked(call)
        if instance.spec.domain.devices.autoattachSerialConsole is False:
            raise failure.bad_request("No serial consoles are present.")
        if phase_of(instance) == "Failed":
            raise conflict(INSTANCES, instance.metadata.name, "VMI is in failed status")
        machine = self._instances.found(instance)
        if machine is None:
            raise failure.bad_request(NOT_RUNNING)
        _check_socket(call)

        async def run(socket: Socket) -> None:
            # The session begins when the client is there: whoever fails to come takes it from nobody.
            try:
                pipe = machine.console(screen=call.request.flag("screen"))
            except PaddockError as error:
                _end(socket, error)
                return
            with self._sessions.during("console", instance):
                await pump(socket, PipeEnd(pipe), patience=CONSOLE_PATIENCE_SECONDS)

        return Upgrade(run, subprotocol(call.request))

    async def vnc(self, call: RequestContext) -> Answer:
        """The display, as RFB."""
        instance = self._with_display(call)
        machine = self._instances.found(instance)
        if machine is None:
            raise failure.bad_request(NOT_RUNNING)
        uid = instance.metadata.uid or ""
        if call.request.flag("preserveSession") and self._displays.is_taken(uid):
            raise failure.unavailable("Active VNC connection. Request denied.")
        _check_socket(call)

        async def run(socket: Socket) -> None:
            self._displays.join(uid)
            try:
                pipe = await machine.vnc()
                with self._sessions.during("vnc", instance):
                    await pump(socket, PipeEnd(pipe))
            except PaddockError as error:
                _end(socket, error)
            finally:
                self._displays.leave(uid)

        return Upgrade(run, subprotocol(call.request))

    async def screenshot(self, call: RequestContext) -> HttpResponse:
        """Answer with the content of the display, as PNG."""
        instance = self._with_display(call)
        machine = self._instances.found(instance)
        if machine is None:
            raise failure.bad_request(NOT_RUNNING)
        try:
            picture = await machine.screenshot()
        except RequestRefused as error:
            raise refused(instance, error) from error
        except PaddockError as error:
            raise failure.internal(str(error)) from error
        return HttpResponse(queries.OK, picture, (("content-type", "image/png"),))

    def _with_display(self, call: RequestContext) -> VirtualMachineInstance:
        instance = self._instances.asked(call)
        if instance.spec.domain.devices.autoattachGraphicsDevice is False:
            raise failure.bad_request("No graphics devices are present.")
        return instance

    # --- the network ------------------------------------------------------------------------------------------------------

    async def forward(self, call: RequestContext) -> Answer:
        """A connection to a port of the guest: `portforward/PORT` or `portforward/PORT/PROTOCOL`."""
        port, protocol = _port(call)
        instance = self._instances.asked(call)
        machine = self._instances.running(instance)
        if machine.observed.paused:
            raise conflict(INSTANCES, instance.metadata.name, "VMI is paused")
        cards = instance.spec.domain.devices.interfaces or []
        if not cards:
            raise failure.internal(f"no network interfaces are present in {instance.metadata.name}")
        _check_socket(call)
        owner, nic = identity.owner_of(instance), cards[0].name
        try:
            if protocol == "udp":
                end: RemoteEnd = DatagramEnd(await self._networks.datagrams(owner, nic, port))
            else:
                end = StreamEnd(*await self._networks.dial(owner, nic, port))
        except PaddockError as error:
            raise failure.internal(str(error)) from error
        return Upgrade(self._once("portforward", instance, end), subprotocol(call.request))

    # --- what takes devices that are not there ----------------------------------------------------------------------------

    async def usb(self, call: RequestContext) -> Answer:
        """A USB device of the client's."""
        instance = self._instances.asked(call)
        if instance.spec.domain.devices.clientPassthrough is None:
            raise conflict(INSTANCES, instance.metadata.name, "Not configured with USB Redirection")
        machine = self._instances.found(instance)
        if machine is None:
            raise failure.bad_request(NOT_RUNNING)
        _check_socket(call)
        try:
            pipe = machine.usb()
        except RequestRefused as error:
            raise failure.unavailable("Reached maximum number of USB redirection devices. Request denied.") from error
        except PaddockError as error:
            raise failure.internal(str(error)) from error
        return Upgrade(self._once("usbredir", instance, PipeEnd(pipe)), subprotocol(call.request))

    async def vsock(self, call: RequestContext) -> Answer:
        """A VSOCK port; this engine gives machines no such device."""
        self._installation.check("VSOCK")
        instance = self._instances.asked(call)
        if not instance.spec.domain.devices.autoattachVSOCK:
            raise failure.bad_request("VSOCK is not attached.")
        why = "this host gives machines no VSOCK device; reach the guest by portforward, or by its guest agent"
        raise failure.bad_request(f"VSOCK is not attached: {why}")

    def _once(self, kind: Kind, instance: VirtualMachineInstance, end: RemoteEnd) -> Callable[[Socket], Awaitable[None]]:
        async def run(socket: Socket) -> None:
            with self._sessions.during(kind, instance):
                await pump(socket, end)

        return run


class PipeEnd:
    """A pipe to a guest as the far end of a WebSocket."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    async def read(self) -> bytes:
        return await self._pipe.read()

    async def write(self, data: bytes) -> None:
        await self._pipe.write(data)

    async def finish(self) -> None: ...

    def close(self) -> None:
        self._pipe.close()


class StreamEnd:
    """A TCP connection to a guest as the far end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        return await self._reader.read(_PIECE)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def finish(self) -> None:
        if self._writer.can_write_eof():
            self._writer.write_eof()
        await self._writer.drain()

    def close(self) -> None:
        self._writer.close()


class DatagramEnd:
    """UDP to a guest as the far end: a message is a datagram."""

    def __init__(self, flow: DatagramFlow) -> None:
        self._flow = flow

    async def read(self) -> bytes:
        while (data := await self._flow.receive()) == b"":
            # An empty datagram would read as the end, and says nothing.
            pass
        return data or b""

    async def write(self, data: bytes) -> None:
        self._flow.send(data)

    async def finish(self) -> None: ...

    def close(self) -> None:
        self._flow.close()


def _end(socket: Socket, error: PaddockError) -> None:
    """The machine went between the answer and the first byte."""
    socket.close(1011, str(error)[:100])


def _check_socket(call: RequestContext) -> None:
    """A stream needs a WebSocket."""
    headers = call.request.headers
    if not frames.asked(call.request) or not headers.get("sec-websocket-key") or headers.get("sec-websocket-version") != "13":
        raise failure.bad_request("the client is not using the websocket protocol: 'upgrade' token not found in 'Connection' header")


def _port(call: RequestContext) -> tuple[int, str]:
    """Port and protocol of the path."""
    _, _, rest = call.route.subresource.partition("/")
    text, _, protocol = rest.partition("/")
    protocol = protocol or "tcp"
    if not text.isascii() or not text.isdecimal() or len(text) > 5 or not 1 <= int(text) <= 65535:
        raise failure.bad_request(f"invalid port {text[:20]!r}: must be a number from 1 to 65535")
    if protocol not in ("tcp", "udp"):
        raise failure.bad_request(f"invalid protocol {protocol[:20]!r}: must be tcp or udp")
    return int(text), protocol
