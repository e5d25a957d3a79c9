"""Writing objects: each write is one decision, taken without waiting, on the newest decided state.

    raw body -> decode -> metadata -> strategy -> (admission: may wait) -> validate -> ownership -> decide -> commit -> answer

Only admission webhooks wait between reading the old object and deciding the new one; if the object moved meanwhile, the whole
computation is repeated on the new state. Everything else runs through without giving way, so there is no lock.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec

from paddock.apiserver.objects import deletion, metadata
from paddock.apiserver.objects.encoding import Data, Encoder, decode, encode, stamp
from paddock.apiserver.objects.index import Index
from paddock.apiserver.resources.resource import Resource
from paddock.apiserver.resources.strategy import Context, View
from paddock.meta import failure
from paddock.meta.apply import applying, ownership
from paddock.schema.finding import Finding, Severity
from paddock.store.contract import Conflict, Key, Record, Store, Unavailable

# How often a write is computed again because the object moved while admission waited.
_ATTEMPTS = 5
GENERATED_NAME_ATTEMPTS = 8


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a client wants a write to be done, and who it is."""

    user: str = ""
    manager: str = ""
    field_validation: str = ""
    dry_run: bool = False
    subresource: str = ""
    # the object is made by an apply: its owner is an applier
    applies: bool = False


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a client wants a deletion to be done."""

    user: str = ""
    dry_run: bool = False
    # "", Orphan, Background or Foreground
    propagation: str = ""
    uid: str | None = None
    revision: str | None = None


class Deleted(msgspec.Struct, frozen=True):
    """The answer to a deletion: the object as it was, or as it waits for its finalizers."""

    value: bytes
    gone: bool
    uid: str = ""


class Written(msgspec.Struct, frozen=True):
    """The answer to a write: bytes in the version of the request."""

    value: bytes
    created: bool = False
    warnings: tuple[str, ...] = ()


class Admission(Protocol):
    """What may change or refuse a write before it is decided: webhooks, policies, quotas."""

    def concerns(self, resource: Resource, operation: str, namespace: str) -> bool:
        """Whether there is anything to ask. Most writes are not anybody's concern."""

    async def review(
        self, resource: Resource, operation: str, new: Data | None, old: Data | None, options: Options
    ) -> tuple[Data | None, tuple[str, ...]]:
        """The object as admission leaves it, and warnings; raises a `Failure` when it is refused."""


class Clock(Protocol):
    """Where time and identity come from."""

    def now(self) -> str:
        """RFC 3339, UTC, whole seconds."""

    def uid(self) -> str:
        """A new random UUID."""

    def random(self, count: int) -> bytes:
        """Random bytes."""


class Proposal(msgspec.Struct, frozen=True):
    """A new form of an object. `settled`: its managedFields are already those of the new form (server-side apply)."""

    data: Data
    settled: bool = False


# Makes the new form of an object from its old one, in the version of the request. The old one must not be changed.
Compute = Callable[[Data], Proposal]


class Writer:
    """Decides writes."""

    def __init__(self, store: Store, index: Index, view: View, clock: Clock, admission: Admission) -> None:
        self._store_of = store
        self._index = index
        self._view = view
        self._clock = clock
        self._admission = admission
        self._encoders: dict[tuple[str, str, str], Encoder] = {}

    def encoder(self, resource: Resource) -> Encoder:
        """The encoder of a resource, made once for each edition of it."""
        place = (resource.group, resource.version, resource.plural)
        found = self._encoders.get(place)
        if found is None or found.resource is not resource:
            found = self._encoders[place] = Encoder(resource)
        return found

    async def create(self, resource: Resource, namespace: str, raw: Data, options: Options) -> Written:
        """Make a new object; raises `Failure`."""
        generated = not (raw.get("metadata") or {}).get("name") and (raw.get("metadata") or {}).get("generateName")
        for attempt in range(GENERATED_NAME_ATTEMPTS):
            try:
                return await self._create(resource, namespace, raw, options)
            except failure.Failure as said:
                if not generated or said.reason != "AlreadyExists" or attempt + 1 == GENERATED_NAME_ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def _create(self, resource: Resource, namespace: str, raw: Data, options: Options) -> Written:
        new, warnings = self._decode(resource, raw, options)
        suffix = metadata.generated_suffix(self._clock.random(5))
        metadata.prepare_create(resource, new, namespace, uid=self._clock.uid(), now=self._clock.now(), suffix=suffix)
        self._check_namespace(resource, namespace, new["metadata"].get("name", ""))
        if resource.status:
            new.pop("status", None)
        context = self._context(options)
        new = resource.strategy.prepare_create(new, context)
        new, more = await self._admit(resource, "CREATE", new, None, options)
        warnings += more
        self._validate(resource, new, None, context, warnings)
        name = new["metadata"]["name"]
        key = Key(resource.collection, namespace if resource.namespaced else "", name)
        before = self._store_of.decided(key)
        if before is not None:
            terminating = bool(decode(before.value)["metadata"].get("deletionTimestamp"))
            raise failure.already_exists(resource.about(name), terminating=terminating)
        # What an applier owns is what it has sent, before defaults and the server's own fields.
        owner = applying.claim if options.applies else ownership.record
        owner(raw if options.applies else None, new, resource.pipeline.schema, self._manager(resource, options), self._clock.now())
        return await self._store(resource, (key, 0), new, options, warnings)

    async def replace(self, resource: Resource, namespace: str, name: str, compute: Compute, options: Options) -> Written:
        """Give an object a new form; `compute` makes it from the old one. Raises `Failure`."""
        key = Key(resource.collection, namespace if resource.namespaced else "", name)
        for _ in range(_ATTEMPTS):
            before = self._store_of.decided(key)
            if before is None:
                raise failure.not_found(resource.about(name))
            old = self.encoder(resource).read(before.value)
            old = resource.pipeline.decode(old).data
            proposal = compute(old)
            new, warnings = self._decode(resource, proposal.data, options, old)
            metadata.prepare_update(resource, new, old, namespace, name)
            new = self._keep_other_half(resource, new, old, options)
            context = self._context(options)
            if not options.subresource:
                new = resource.strategy.prepare_update(new, old, context)
            new, more = await self._admit(resource, "UPDATE", new, old, options)
            if self._store_of.decided(key) == before:
                self._validate(resource, new, old, context, warnings + more)
                self._count_generation(resource, new, old)
                if not proposal.settled:
                    ownership.record(old, new, resource.pipeline.schema, self._manager(resource, options), self._clock.now())
                return await self._decide(resource, before, new, old, options, warnings + more)
        raise failure.modified(resource.about(name))

    async def _decide(
        self, resource: Resource, before: Record, new: Data, old: Data, options: Options, warnings: tuple[str, ...]
    ) -> Written:
        if ownership.same(new, old):
            return Written(self.encoder(resource).serve(before.value), warnings=warnings)
        meta = new["metadata"]
        gone = meta.get("deletionTimestamp") and not meta.get("finalizers")
        return await self._store(resource, (before.key, before.revision), new, options, warnings, delete=bool(gone))

    async def delete(self, resource: Resource, namespace: str, name: str, options: DeleteOptions) -> Deleted:
        """Delete an object, or mark it for those who have to agree first; raises `Failure`."""
        key = Key(resource.collection, namespace if resource.namespaced else "", name)
        before = self._store_of.decided(key)
        if before is None:
            raise failure.not_found(resource.about(name))
        encoder = self.encoder(resource)
        old = encoder.read(before.value)
        deletion.check_preconditions(resource, old, options)
        context = Context(self._view, self._clock.now(), options.user, options.dry_run)
        resource.strategy.before_delete(old, context)
        plain = Options(user=options.user, dry_run=options.dry_run)
        if self._admission.concerns(resource, "DELETE", namespace):
            await self._admission.review(resource, "DELETE", None, old, plain)
            if self._store_of.decided(key) != before:
                return await self.delete(resource, namespace, name, options)
        new = deletion.marked(resource, old, options, now=self._clock.now())
        gone = not new["metadata"].get("finalizers") and not resource.strategy.holds_deletion(new)
        if not gone and new == old:
            return Deleted(encoder.serve(before.value), gone=False)
        written = await self._store(resource, (key, before.revision), old if gone else new, plain, (), delete=gone)
        return Deleted(written.value, gone=gone, uid=old["metadata"].get("uid", ""))

    # --- the steps ------------------------------------------------------------------------------------------------------

    def _decode(self, resource: Resource, raw: Data, options: Options, old: Data | None = None) -> tuple[Data, tuple[str, ...]]:
        """Prune and default a body; unknown fields are refused, warned of or dropped, as the client wishes."""
        self._check_type(resource, raw)
        unknown = metadata.coerce(raw)
        decoded = resource.pipeline.decode(raw)
        if decoded.broken:
            raise failure.bad_request("; ".join(f"{each.field}: {each.message}" for each in decoded.broken))
        found = [*unknown, *decoded.unknown]
        said = [f'unknown field "{each.field}"' for each in found if not (old is not None and _had(old, each.path))]
        if said and options.field_validation == "Strict":
            raise failure.bad_request("strict decoding error: " + ", ".join(said))
        return decoded.data, tuple(said) if options.field_validation != "Ignore" else ()

    def _check_type(self, resource: Resource, raw: Data) -> None:
        for key, wanted, what in (("apiVersion", resource.api_version, "API version"), ("kind", resource.kind, "kind")):
            given = raw.get(key)
            if given in (None, "") and resource.strategic:
                raw[key] = wanted
            elif given != wanted:
                raise failure.bad_request(f"the {what} in the data ({given or ''}) does not match the expected {what} ({wanted})")

    def _check_namespace(self, resource: Resource, namespace: str, name: str) -> None:
        if not resource.namespaced:
            return
        found = self._view.get("namespaces", "", namespace)
        if found is None:
            raise failure.not_found(failure.About(name=namespace, kind="namespaces"))
        if found["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause = failure.Cause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace")
            raise failure.forbidden(resource.about(name), why, [cause])

    def _context(self, options: Options) -> Context:
        return Context(self._view, self._clock.now(), options.user, options.dry_run)

    def _keep_other_half(self, resource: Resource, new: Data, old: Data, options: Options) -> Data:
        """A status write changes the status only, any other write everything but the status."""
        if options.subresource == "status":
            kept = dict(old)
            kept["metadata"] = dict(old["metadata"])
            if "managedFields" in new["metadata"]:
                kept["metadata"]["managedFields"] = new["metadata"]["managedFields"]
            kept.pop("status", None)
            if "status" in new:
                kept["status"] = new["status"]
            return resource.strategy.prepare_status(kept, new, old)
        if resource.status:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        return new

    async def _admit(
        self, resource: Resource, operation: str, new: Data, old: Data | None, options: Options
    ) -> tuple[Data, tuple[str, ...]]:
        namespace = new["metadata"].get("namespace", "")
        if not self._admission.concerns(resource, operation, namespace):
            return new, ()
        changed, warnings = await self._admission.review(resource, operation, new, old, options)
        if changed is None or changed is new:
            return new, warnings
        return resource.pipeline.decode(changed).data, warnings

    def _validate(self, resource: Resource, new: Data, old: Data | None, context: Context, warnings: tuple[str, ...]) -> None:
        found: list[Finding] = list(metadata.check(resource, new, old))
        found.extend(resource.pipeline.validate(new, old))
        found.extend(resource.strategy.validate(new, old, context))
        errors = [each for each in found if each.severity is Severity.ERROR]
        if errors:
            raise failure.invalid(resource.about_kind(new["metadata"].get("name", "")), errors)

    def _count_generation(self, resource: Resource, new: Data, old: Data) -> None:
        if not resource.strategy.counts_generation():
            return
        apart = ("metadata", "status") if resource.status else ("metadata",)
        if _without(new, apart) != _without(old, apart):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def _manager(self, resource: Resource, options: Options) -> ownership.Manager:
        return ownership.Manager(options.manager or "unknown", resource.api_version, options.subresource)

    # --- the decision ---------------------------------------------------------------------------------------------------

    async def _store(
        self, resource: Resource, place: tuple[Key, int], new: Data, options: Options, warnings: tuple[str, ...], *, delete: bool = False
    ) -> Written:
        """Decide the write of `new` over what is at a key and a revision, and wait until it is durable."""
        encoder = self.encoder(resource)
        key, expected = place
        created = expected == 0
        if options.dry_run:
            return Written(encoder.serve(encode(encoder.store(new))), created, warnings)
        made: list[bytes] = []

        def make(revision: int) -> bytes:
            made.append(stamp(encoder.store(new), revision))
            return made[0]

        try:
            pending = (self._store_of.delete if delete else self._store_of.put)(key, expected, make)
            await pending.committed()
        except Conflict:
            raise failure.modified(resource.about(key.name)) from None
        except Unavailable as error:
            raise failure.unavailable(str(error)) from error
        return Written(encoder.serve(made[0]), created, warnings)


def _without(data: Data, keys: Iterable[str]) -> Data:
    return {key: value for key, value in data.items() if key not in keys}


def _had(old: Data, path: tuple[Any, ...]) -> bool:
    """Whether the stored object has a value at the place of an unknown field: then it is not the client's doing."""
    place: Any = old
    for part in path:
        try:
            place = place[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True
