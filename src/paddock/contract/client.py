"""A provider at an address, as a `Driver`.

Each call has the deadline of its RPC, waits for the rate limit, asks the circuit breaker and takes a connection of the pool. A call
that the provider certainly did not see is made again; all other trying again is the caller's. Every failure is a `ProviderError`, with
the provider's words cleaned, cut, and free of the request's secrets.
"""

import asyncio
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from paddock.base import reasons
from paddock.contract import errortext, grpc, health, methods, wire
from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract.breaker import BreakerSettings, BreakerState, CallOutcome, CircuitBreaker
from paddock.contract.errors import KINDS, RULES, ErrorKind, ProviderError, StatusCode
from paddock.contract.grpc import StatusError
from paddock.contract.http2 import BodyTooLarge, Http2Limits, StreamFailed
from paddock.contract.methods import RpcMethod
from paddock.contract.pool import ConnectionPool, PoolSettings, PoolTarget
from paddock.contract.ratelimit import TokenBucket

Q = TypeVar("Q", bound=m.WireMessage)
R = TypeVar("R", bound=m.WireMessage)

# What says that the provider is unwell, and not that the request was bad.
_COUNTED = frozenset({StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED, StatusCode.INTERNAL, StatusCode.UNKNOWN})
_ATTEMPTS = 3


class RemoteSettings(msgspec.Struct, frozen=True):
    """Settings of the calls to a provider."""

    # how errors call the provider
    name: str
    # None: as often as one likes
    qps: float | None = 10.0
    burst: int = 20
    pool: PoolSettings = PoolSettings()
    breaker: BreakerSettings = BreakerSettings()
    # bytes: upstream's servers take 4 MiB
    request: int = 4 << 20
    response: int = 16 << 20


class ProviderClient:
    """Calls one provider. Make it inside a running loop, and close it."""

    def __init__(self, target: PoolTarget, settings: RemoteSettings) -> None:
        loop = asyncio.get_running_loop()
        self._settings = settings
        self._target = target
        self._loop = loop
        self._breaker = CircuitBreaker(settings.breaker, loop.time)
        self._bucket = None if settings.qps is None else TokenBucket(settings.qps, settings.burst, loop.time)
        self._pool = ConnectionPool(target, settings.pool, Http2Limits(body=settings.response + 5))

    @property
    def breaker_state(self) -> BreakerState:
        """The state of the provider's circuit breaker."""
        return self._breaker.state

    @property
    def breaker_failures(self) -> int:
        """The number of failures that the provider's circuit breaker has counted."""
        return self._breaker.failures

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return self._pool.size

    def retarget(self, target: PoolTarget) -> None:
        """Use another address or certificate for later connections. The circuit breaker closes: what it knows is of the former program."""
        self._target = target
        self._breaker = CircuitBreaker(self._settings.breaker, self._loop.time)
        self._pool.retarget(target)

    async def close(self) -> None:
        """Close the connections. Calls that go on end with an error."""
        await self._pool.close()

    async def validate(self, request: m.ValidateRequest) -> m.ValidateResponse:
        """Say whether the hypervisor can be reached with the provider's credentials."""
        found = await self._call(methods.VALIDATE, request)
        return msgspec.structs.replace(found, message=errortext.cleaned(found.message), reason=grpc.known_reason(found.reason))

    async def create(self, request: m.CreateRequest) -> m.CreateResponse:
        """Create the owner's machine, or answer with the one it has."""
        return await self._call(methods.CREATE, request)

    async def delete(self, request: m.DeleteRequest) -> m.TaskResponse:
        return await self._call(methods.DELETE, request)

    async def power(self, request: m.PowerRequest) -> m.TaskResponse:
        return await self._call(methods.POWER, request)

    async def reconfigure(self, request: m.ReconfigureRequest) -> m.TaskResponse:
        """Bring a machine to the desired state."""
        return await self._call(methods.RECONFIGURE, request)

    async def hardware_upgrade(self, request: m.HardwareUpgradeRequest) -> m.TaskResponse:
        """Give a machine a newer version of virtual hardware."""
        return await self._call(methods.HARDWARE_UPGRADE, request)

    async def describe(self, request: m.DescribeRequest) -> m.DescribeResponse:
        return await self._call(methods.DESCRIBE, request)

    async def task_status(self, request: m.TaskStatusRequest) -> m.TaskStatusResponse:
        found = await self._call(methods.TASK_STATUS, request)
        # An error that holds nothing to show is an error all the same.
        error = errortext.cleaned(found.error) or ("unknown error" if found.error else "")
        return msgspec.structs.replace(found, error=error, reason=grpc.known_reason(found.reason))

    async def snapshot_create(self, request: m.SnapshotCreateRequest) -> m.SnapshotCreateResponse:
        return await self._call(methods.SNAPSHOT_CREATE, request)

    async def snapshot_delete(self, request: m.SnapshotDeleteRequest) -> m.TaskResponse:
        return await self._call(methods.SNAPSHOT_DELETE, request)

    async def snapshot_revert(self, request: m.SnapshotRevertRequest) -> m.TaskResponse:
        """Bring a machine back to a snapshot."""
        return await self._call(methods.SNAPSHOT_REVERT, request)

    async def clone(self, request: m.CloneRequest) -> m.CloneResponse:
        return await self._call(methods.CLONE, request)

    async def image_prepare(self, request: m.ImagePrepareRequest) -> m.ImagePrepareResponse:
        """Make an image ready for machines to be created from."""
        return await self._call(methods.IMAGE_PREPARE, request)

    async def get_capabilities(self, request: m.GetCapabilitiesRequest) -> m.GetCapabilitiesResponse:
        """Return what the provider can do."""
        return await self._call(methods.GET_CAPABILITIES, request)

    async def export_disk(self, request: m.ExportDiskRequest) -> m.ExportDiskResponse:
        """Copy a disk to a staging backend."""
        return await self._call(methods.EXPORT_DISK, request)

    async def import_disk(self, request: m.ImportDiskRequest) -> m.ImportDiskResponse:
        """Copy a disk from a staging backend."""
        return await self._call(methods.IMPORT_DISK, request)

    async def get_disk_info(self, request: m.GetDiskInfoRequest) -> m.GetDiskInfoResponse:
        """Return a disk's size and format."""
        return await self._call(methods.GET_DISK_INFO, request)

    async def list_vms(self, request: m.ListVMsRequest) -> m.ListVMsResponse:
        """Return every machine that the provider can see."""
        return await self._call(methods.LIST_VMS, request)

    async def list_hosts(self, request: m.ListHostsRequest) -> m.ListHostsResponse:
        """Return the hosts of a clustered provider."""
        return await self._call(methods.LIST_HOSTS, request)

    async def get_host_info(self, request: m.GetHostInfoRequest) -> m.HostInfo:
        """Return one host of a clustered provider."""
        return await self._call(methods.GET_HOST_INFO, request)

    async def get_features(self, request: x.GetFeaturesRequest) -> x.GetFeaturesResponse:
        """Return the features of the provider; one without the extension service has none."""
        try:
            return await self._call(methods.GET_FEATURES, request)
        except ProviderError as error:
            if error.kind is not ErrorKind.NOT_SUPPORTED:
                raise
            return x.GetFeaturesResponse()

    async def exec(self, request: x.ExecRequest) -> x.ExecResponse:
        """Run a command in a guest."""
        return await self._call(methods.EXEC, request)

    async def image_delete(self, request: x.ImageDeleteRequest) -> m.TaskResponse:
        return await self._call(methods.IMAGE_DELETE, request)

    async def transfer_delete(self, request: x.TransferDeleteRequest) -> m.TaskResponse:
        """Delete an exported disk from a staging backend."""
        return await self._call(methods.TRANSFER_DELETE, request)

    async def list_datastores(self, request: x.ListDatastoresRequest) -> x.ListDatastoresResponse:
        return await self._call(methods.LIST_DATASTORES, request)

    async def is_serving(self, seconds: float) -> bool:
        """Ask the health service whether the provider takes calls. Raises `ProviderError` if it does not answer."""
        ends = self._loop.time() + seconds
        try:
            answer = await self._exchanged(health.CHECK, grpc.framed(wire.encode(health.HealthCheckRequest())), ends)
        except StatusError as error:
            raise self._error(health.CHECK, health.HealthCheckRequest(), error) from None
        return answer.status == health.SERVING

    async def _call(self, method: RpcMethod[Q, R], request: Q) -> R:
        ends = self._loop.time() + method.deadline
        try:
            body = self._encoded(request)
            if self._bucket is not None and not await self._bucket.take(method.deadline):
                raise StatusError(StatusCode.RESOURCE_EXHAUSTED, "the rate limit would delay it beyond its deadline", sent=False)
        except (wire.MalformedMessage, StatusError) as error:
            raise self._error(method, request, error) from None
        breaker = self._breaker
        if (wait := breaker.wait()) > 0:
            failure = StatusError(
                StatusCode.UNAVAILABLE, "the circuit breaker is open", retry_after=wait, sent=False, reason=reasons.PROVIDER_PAUSED
            )
            raise self._error(method, request, failure) from None
        period, outcome = breaker.enter(), CallOutcome.UNKNOWN
        try:
            answer = await self._exchanged(method, body, ends)
            outcome = CallOutcome.HEALTHY
        except StatusError as error:
            outcome = CallOutcome.FAILED if error.code in _COUNTED else CallOutcome.HEALTHY
            raise self._error(method, request, error) from None
        finally:
            breaker.leave(period, outcome)
        return answer

    def _encoded(self, request: m.WireMessage) -> bytes:
        message = wire.encode(request)
        if len(message) > self._settings.request:
            raise StatusError(
                StatusCode.INVALID_ARGUMENT, f"the request has {len(message)} bytes; at most {self._settings.request} are allowed"
            )
        return grpc.framed(message)

    async def _exchanged(self, method: RpcMethod[Q, R], body: bytes, ends: float) -> R:
        """The answer; raises `StatusError` for every failure."""
        try:
            async with asyncio.timeout_at(ends):
                data = await self._sent(method, body, ends)
        except TimeoutError:
            raise StatusError(StatusCode.DEADLINE_EXCEEDED, f"no answer within {method.deadline:g} seconds") from None
        except BodyTooLarge as error:
            raise StatusError(StatusCode.INTERNAL, f"its answer is too large: {error.why}") from None
        except StreamFailed as error:
            raise StatusError(StatusCode.UNAVAILABLE, error.why, sent=error.processed, reason=error.reason_code) from None
        try:
            return wire.decode(data, method.response, wire.WireLimits(size=self._settings.response))
        except wire.MalformedMessage as error:
            raise StatusError(StatusCode.INTERNAL, f"its answer is malformed: {error.why}") from None

    async def _sent(self, method: RpcMethod[Any, Any], body: bytes, ends: float) -> bytes:
        target = self._target
        authority = target.server_name or f"{target.host}:{target.port}"
        scheme = "https" if target.tls else "http"
        attempts = _ATTEMPTS
        while True:
            attempts -= 1
            connection = await self._pool.acquire()
            try:
                headers = grpc.request_headers(method.path, authority, ends - self._loop.time(), scheme=scheme)
                return grpc.message_of(await connection.call(headers, body))
            except StreamFailed as error:
                if error.processed or not attempts:
                    raise
            finally:
                self._pool.release()

    def _error(self, method: RpcMethod[Any, Any], request: m.WireMessage, error: StatusError | wire.MalformedMessage) -> ProviderError:
        what = f"cannot call {method.name} of provider {self._settings.name}"
        if isinstance(error, wire.MalformedMessage):
            return ProviderError(ErrorKind.INVALID_SPEC, what, why=errortext.cleaned(error.why), sent=False)
        kind = KINDS.get(error.code, ErrorKind.INTERNAL)
        if error.kind is not None and RULES[error.kind].code is RULES[kind].code:
            kind = error.kind
        why = errortext.cleaned(error.text, secrets_of(request)) or error.code.name
        # A driver of Paddock names the kind of its error; without one, it is a program of others or the way to it that fails.
        reason = error.reason_code or (reasons.PROVIDER_UNAVAILABLE if kind is ErrorKind.UNAVAILABLE and error.kind is None else "")
        return ProviderError(kind, what, why=why, retry_after=error.retry_after, reason=reason, sent=error.sent)


def secrets_of(request: m.WireMessage) -> Iterator[str]:
    """The values of a request that no text may repeat."""
    for name, field in request.wire_fields().items():
        value = getattr(request, name)
        if not field.secret or not value:
            continue
        if isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, bytes):
            yield value.decode("utf-8", "replace")
        elif isinstance(value, str):
            yield value
