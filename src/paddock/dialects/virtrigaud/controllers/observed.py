"""Providers whose calls are counted, and whose texts are freed of what they must not repeat.

A provider has its credentials and the documents of its guests, and may put them into any text. The manager shows those texts to whoever
may read a machine, so they go through here, whichever controller has made the call.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec

from paddock.contract import errortext
from paddock.contract import messages as m
from paddock.contract.breaker import BreakerState
from paddock.contract.client import secrets_of
from paddock.contract.driver import Driver
from paddock.contract.errors import RULES, ErrorKind, ProviderError
from paddock.contract.methods import BY_ATTRIBUTE
from paddock.dialects.virtrigaud.controllers.metrics import BreakerSample, ProviderLabels, VirtrigaudMetrics
from paddock.dialects.virtrigaud.controllers.registry import ProviderConnection, Providers, ProviderSecrets
from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.dialects.virtrigaud.plan import answers
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.machinery import Machinery

_OK, _CANCELED = "OK", "Canceled"
# Shorter values are found in harmless words.
_SHORTEST, _LONGEST = 8, 64 * 1024
# The documents of so many guests are remembered.
_GUESTS = 256
_HIDDEN = "<hidden>"
# Texts that are shown in one line.
_PROSE = ("error", "message")
_IDENTITIES = ("id", "target_vm_id", "snapshot_id", "disk_id", "export_id", "prepared_image_id", "prepared_image_path", "path", "checksum")


class SecretTexts:
    """The values that no text of a provider may repeat."""

    def __init__(self) -> None:
        self._credentials: tuple[str, ...] = ()
        self._documents: deque[tuple[str, ...]] = deque(maxlen=_GUESTS)

    def know(self, credentials: Iterable[bytes]) -> None:
        """Take over the credentials of now."""
        self._credentials = tuple(part for each in credentials for part in _parts(each.decode("utf-8", "replace")))

    def remember(self, request: m.WireMessage) -> None:
        """Remember the secrets of a request."""
        found = tuple(part for each in secrets_of(request) for part in _parts(each))
        if found and found not in self._documents:
            self._documents.append(found)

    def without(self, text: str) -> str:
        """Return a text without them."""
        for each in (*self._credentials, *(part for parts in self._documents for part in parts)):
            if each in text:
                text = text.replace(each, _HIDDEN)
        return text


def _parts(secret: str) -> tuple[str, ...]:
    """The whole of a secret, and each of its lines."""
    if len(secret) > _LONGEST:
        return ()
    lines = {each.strip() for each in secret.splitlines()}
    return tuple(sorted((each for each in {secret, secret.strip(), *lines} if len(each) >= _SHORTEST), key=len, reverse=True))


class ObservedDriver:
    """A driver whose calls are counted."""

    def __init__(self, inner: Driver, of: ProviderLabels, metrics: VirtrigaudMetrics, machinery: Machinery, secrets: SecretTexts) -> None:
        self.inner = inner
        self.of = of
        self._metrics = metrics
        self._clock = machinery.clock
        self._secrets = secrets
        self._calls: dict[str, Callable[[Any], Awaitable[Any]]] = {}

    def __getattr__(self, name: str) -> Any:
        known = self._calls.get(name)
        if known is None:
            call, method = getattr(self.inner, name), BY_ATTRIBUTE.get(name)
            if method is None:
                return call
            known = self._calls[name] = self._counted(method.name, call)
        return known

    def _counted(self, method: str, call: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        async def counted(request: m.WireMessage) -> m.WireMessage:
            self._secrets.remember(request)
            began, code = self._clock.seconds(), _CANCELED
            try:
                answer: m.WireMessage = await call(request)
                code = _OK
            except ProviderError as error:
                code = code_of(error.kind)
                if method == "TaskStatus" and error.kind == ErrorKind.NOT_FOUND:
                    self._follow(request, m.TaskStatusResponse(done=True))
                raise self._cleaned(error) from None
            finally:
                self._metrics.called(self.of, method, code, self._clock.seconds() - began)
            self._judge(method, answer)
            self._follow(request, answer)
            return self._shown(answer)

        return counted

    def _follow(self, request: m.WireMessage, answer: m.WireMessage) -> None:
        """Note the tasks that an answer speaks of."""
        if isinstance(request, m.TaskStatusRequest) and isinstance(answer, m.TaskStatusResponse):
            if request.task is not None:
                self._metrics.task(self.of, request.task.id, ended=answer.done or bool(answer.error))
            return
        task = getattr(answer, "task", None)
        if isinstance(task, m.TaskRef) and task.id:
            self._metrics.task(self.of, task.id, ended=False)

    def _judge(self, method: str, answer: m.WireMessage) -> None:
        """Refuse ids that cannot stand in an object."""
        task = getattr(answer, "task", None)
        found = [getattr(answer, name, "") for name in _IDENTITIES] + [task.id if isinstance(task, m.TaskRef) else ""]
        if not all(isinstance(each, str) and answers.is_identity(each) for each in found):
            raise ProviderError(ErrorKind.INTERNAL, f"the answer to {method} has an id that is too long or not text")

    def _cleaned(self, error: ProviderError) -> ProviderError:
        what, why, fix = (errortext.cleaned(self._secrets.without(each)) for each in (error.what, error.why, error.fix))
        if (what, why, fix) == (error.what, error.why, error.fix):
            return error
        return error.reworded(what, why=why, fix=fix)

    def _shown(self, answer: m.WireMessage) -> m.WireMessage:
        """The answer without secrets in its texts."""
        changes = {}
        for name in answer.__struct_fields__:
            value = getattr(answer, name)
            if isinstance(value, str) and value:
                text = self._secrets.without(value)
                text = errortext.cleaned(text) or "unknown error" if name in _PROSE else text
                if text != value:
                    changes[name] = text
        return msgspec.structs.replace(answer, **changes) if changes else answer


class ObservedProviders:
    """The Providers of a manager, observed."""

    def __init__(self, inner: Providers, metrics: VirtrigaudMetrics, machinery: Machinery) -> None:
        self._inner = inner
        self._metrics = metrics
        self._machinery = machinery
        self._drivers: dict[Key, ObservedDriver] = {}
        self._secrets: dict[Key, SecretTexts] = {}
        machinery.metrics.before(self._report_breakers)

    def find(self, key: Key, type: str) -> ProviderConnection:
        """The connection to a Provider of a type."""
        found = self._inner.find(key, type)
        if found.driver is None:
            self._drivers.pop(key, None)
            return found
        of, known = ProviderLabels(type, str(key)), self._drivers.get(key)
        if known is None or known.inner is not found.driver or known.of != of:
            secrets = self._secrets.setdefault(key, SecretTexts())
            known = self._drivers[key] = ObservedDriver(found.driver, of, self._metrics, self._machinery, secrets)
        return msgspec.structs.replace(found, driver=known)

    async def ensure(self, key: Key, provider: Provider, secrets: ProviderSecrets) -> None:
        """Bring the program and the connection up to the Provider's spec."""
        self._secrets.setdefault(key, SecretTexts()).know((secrets.credentials or {}).values())
        await self._inner.ensure(key, provider, secrets)

    async def release(self, key: Key) -> None:
        """End the program and the connection of a Provider that is gone."""
        await self._inner.release(key)
        self._secrets.pop(key, None)
        known = self._drivers.pop(key, None)
        if known is not None:
            self._metrics.forget(known.of)

    def listen(self, handler: Callable[[Key], None]) -> None:
        """Call this when the connection to a Provider has become another one."""
        self._inner.listen(handler)

    def _report_breakers(self) -> None:
        found = {}
        for each in self._drivers.values():
            state = getattr(each.inner, "breaker_state", None)
            if isinstance(state, BreakerState):
                found[each.of] = BreakerSample(state, int(getattr(each.inner, "breaker_failures", 0)))
        self._metrics.breakers(found)


def code_of(kind: ErrorKind) -> str:
    """A kind of error as gRPC's status codes are spelled: NotFound."""
    return "".join(part.capitalize() for part in RULES[kind].code.name.split("_"))
