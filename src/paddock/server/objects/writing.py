"""Writing objects: each write is one decision, taken without waiting, on the newest decided state.

    raw body -> decode -> metadata -> strategy -> (admission changes it) -> validate -> (admission judges it) -> ownership
             -> bounds -> decide -> commit -> answer

Only admission waits between reading the old object and deciding the new one, and a large write for the thread that does its work; if the
object, or what it was checked against, moved meanwhile, the whole computation is repeated on the new state. Everything else runs through
without giving way, so there is no lock.
"""

from functools import partial

import msgspec

from paddock.base.jsondata import Data, copied
from paddock.base.jsonequality import identical_apart
from paddock.kubernetes.meta import failure, fieldpath
from paddock.kubernetes.meta.apply import applying, ownership
from paddock.kubernetes.schema.check import drop_restated, drop_unread
from paddock.kubernetes.schema.finding import Finding, Severity
from paddock.server.objects import deletion, metadata, unchanged
from paddock.server.objects.drafts import Draft, aside
from paddock.server.objects.encoding import Encoder, decode, encode, envelope, stamp
from paddock.server.objects.index import ObjectIndex
from paddock.server.objects.requests import (
    LARGE_BYTES,
    AdmissionChain,
    Attempt,
    Compute,
    Deleted,
    DeleteOptions,
    ObjectClock,
    Options,
    Written,
)
from paddock.server.objects.views import ViewedStore
from paddock.server.resources import denials
from paddock.server.resources.conversion import ConvertedForm
from paddock.server.resources.resource import ServedResource
from paddock.server.resources.strategy import ObjectView, WriteContext
from paddock.server.store.contract import Make, RevisionConflict, Store, StoredValue, StoreKey, StoreUnavailable

# How often a write is computed again because the object moved while admission waited.
_ATTEMPTS = 5
GENERATED_NAME_ATTEMPTS = 8
# A patch, a default or a webhook can make more of an object than its body was.
LARGEST_OBJECT = 3 * 1024 * 1024
# What a generation does not count.
_METADATA, _OBSERVED = frozenset(("metadata",)), frozenset(("metadata", "status"))


class ObjectWriter:
    def __init__(
        self, store: Store, index: ObjectIndex, view: ObjectView, clock: ObjectClock, admission: AdmissionChain, views: ViewedStore
    ) -> None:
        self._store_of = store
        self._views = views
        self._index = index
        self._view = view
        self._clock = clock
        self._admission = admission
        # bytes that an object may have
        self.largest = LARGEST_OBJECT
        # What is newer was written by this program.
        self._begun = store.revision
        self._encoders: dict[tuple[str, str, str], Encoder] = {}

    def encoder(self, resource: ServedResource) -> Encoder:
        """The encoder of a resource, made once for each edition of it."""
        place = (resource.group, resource.version, resource.plural)
        found = self._encoders.get(place)
        if found is None or found.resource is not resource:
            found = self._encoders[place] = Encoder(resource)
        return found

    async def create(self, resource: ServedResource, namespace: str, raw: Data, options: Options) -> Written:
        """Make a new object; raises `Failure`."""
        generated = not (raw.get("metadata") or {}).get("name") and (raw.get("metadata") or {}).get("generateName")
        for attempt in range(GENERATED_NAME_ATTEMPTS):
            try:
                # An attempt writes the name that it chose into the object.
                return await self._create(resource, namespace, copied(raw) if generated else raw, options)
            except failure.Failure as said:
                if not generated or said.reason != "AlreadyExists" or attempt + 1 == GENERATED_NAME_ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def _create(self, resource: ServedResource, namespace: str, raw: Data, options: Options) -> Written:
        concerned = not options.unasked and self._admission.concerns(resource, "CREATE", options.subresource)
        for _ in range(_ATTEMPTS):
            # Copy the body if the attempt may be repeated, or if server-side apply needs the body as it was sent.
            draft = await aside(options, partial(self._draft, resource, raw, options, None, copies=concerned or options.applies))
            # A client that sends no owners at all wants none to be noted.
            gives_up = draft.new["metadata"].get("managedFields") == []
            suffix = metadata.generated_suffix(self._clock.random(5))
            metadata.prepare_create(resource, draft.new, namespace, uid=self._clock.uid(), now=self._clock.now(), suffix=suffix)
            namespace = self._check_namespace(resource, namespace, draft.new["metadata"].get("name", ""))
            draft.sent = raw
            draft.owned = gives_up
            await self._prepare_create(draft)
            if concerned:
                await self._change(draft, "CREATE")
            await self._validate(draft)
            if options.is_large:
                # It may have begun to go meanwhile.
                self._check_namespace(resource, namespace, draft.new["metadata"]["name"])
            if concerned and not await self._judged(draft, "CREATE"):
                continue
            return await self._make(draft, namespace)
        raise failure.modified(resource.about(draft.new["metadata"]["name"]))

    async def _prepare_create(self, draft: Draft) -> None:
        draft.warnings.extend(metadata.drop_repeated_owners(draft.new))
        if draft.resource.status:
            # Nobody reads it, so nobody judges it.
            draft.new.pop("status", None)
            draft.wrong = tuple(each for each in draft.wrong if each.path[:1] != ("status",))
        await self._own(draft)
        draft.new = draft.resource.strategy.prepare_create(draft.new, draft.context)

    async def _make(self, draft: Draft, namespace: str) -> Written:
        resource, options = draft.resource, draft.options
        name = draft.new["metadata"]["name"]
        if draft.new["metadata"].pop("resourceVersion", "") and not options.dry_run:
            raise failure.bad_request("resourceVersion should not be set on objects to be created")
        form = await self._converted(draft)
        key = StoreKey(resource.collection, namespace if resource.namespaced else "", name)
        resource.strategy.before_create(draft.new)
        self._admission.bound(resource, draft.new, None, options)
        before = self._store_of.decided(key)
        if before is not None:
            await self._settled(key)
            terminating = bool(decode(before.value)["metadata"].get("deletionTimestamp"))
            raise failure.already_exists(resource.about(name), terminating=terminating)
        if self._views.explanation(key):
            raise failure.already_exists(resource.about(name), terminating=False)
        return await self._store(draft, (key, 0), form=form)

    async def replace(self, resource: ServedResource, namespace: str, name: str, compute: Compute, options: Options) -> Written:
        """Give an object a new form; `compute` makes it from the old one. Raises `Failure`."""
        key = StoreKey(resource.collection, namespace if resource.namespaced else "", name)
        concerned = not options.unasked and self._admission.concerns(resource, "UPDATE", options.subresource)
        for _ in range(_ATTEMPTS):
            before = self._store_of.decided(key)
            if before is None:
                await self._settled(key)
                raise self._absent(resource, key)
            if len(before.value) > LARGE_BYTES:
                options = msgspec.structs.replace(options, is_large=True)
            encoder = self.encoder(resource)
            (value,) = (before.value,) if resource.conversion is None else await encoder.prepare((before.value,))
            old = await aside(options, partial(self._former, resource, value))
            # What a change leaves alone stays one with the old object, so that everything after it looks at changes only.
            given = {**old, "metadata": metadata.changeable(old["metadata"])}
            proposal = await aside(options, partial(compute, given))
            apart = None if proposal.whole else given
            draft = await aside(options, partial(self._draft, resource, proposal.data, options, old, apart))
            draft.owned = proposal.settled
            await self._prepare_update(draft, namespace, name)
            if concerned:
                await self._change(draft, "UPDATE")
            await self._validate(draft)
            if concerned and not await self._judged(draft, "UPDATE"):
                continue
            if (concerned or options.is_large) and self._store_of.decided(key) != before:
                continue
            self._count_generation(draft)
            if ownership.same(draft.new, old):
                await self._settled(key)
                return Written(encoder.serve(value), warnings=draft.all_warnings())
            form = await self._converted(draft)
            if form is not None and self._store_of.decided(key) != before:
                continue
            self._admission.bound(resource, draft.new, old, options)
            return await self._decide(draft, before, form)
        raise failure.modified(resource.about(name))

    async def _prepare_update(self, draft: Draft, namespace: str, name: str) -> None:
        old = draft.old or {}
        metadata.prepare_update(draft.resource, draft.new, old, namespace, name)
        draft.warnings.extend(metadata.drop_repeated_owners(draft.new))
        self._keep_other_half(draft)
        taken = draft.resource.strategy.taken(draft.new, old, draft.context)
        # What is not taken may be as wrong as it likes.
        draft.wrong = tuple(each for each in draft.wrong if unchanged.is_equal_at(draft.new, taken, each.path))
        draft.new = taken
        await self._own(draft)
        if draft.options.subresource in ("", "scale"):
            draft.new = draft.resource.strategy.prepare_update(draft.new, old, draft.context)

    async def _own(self, draft: Draft) -> None:
        """Note who owns what: what was sent, not what the server, a kind or a webhook makes of it; an applier not even defaults."""
        if draft.owned:
            return
        draft.owned = True
        schema, manager, now = draft.resource.pipeline.schema, self._manager(draft.resource, draft.options), self._clock.now()
        if draft.options.applies:
            await aside(draft.options, lambda: applying.claim(draft.sent, draft.new, schema, manager, now))
        else:
            fitted = self._is_of_this_program(draft.resource, draft.old)
            await aside(draft.options, lambda: ownership.record(draft.old, draft.new, schema, manager, now, is_fitted=fitted))

    def check_readable(self, resource: ServedResource, namespace: str, raw: Data, options: Options) -> None:
        """Raise the `Failure` of a body that no object of the resource can have, whatever is stored."""
        draft = self._draft(resource, raw, options, None)
        metadata.place(resource, draft.new["metadata"], namespace)

    async def _decide(self, draft: Draft, before: StoredValue, form: ConvertedForm | None) -> Written:
        meta = draft.new["metadata"]
        gone = meta.get("deletionTimestamp") and not meta.get("finalizers") and not draft.resource.strategy.holds_deletion(draft.new)
        return await self._store(draft, (before.key, before.revision), delete=bool(gone), form=form)

    async def delete(self, resource: ServedResource, namespace: str, name: str, options: DeleteOptions) -> Deleted:
        """Delete an object, or mark it for those who have to agree first; raises `Failure`."""
        key = StoreKey(resource.collection, namespace if resource.namespaced else "", name)
        before = self._store_of.decided(key)
        if before is None:
            await self._settled(key)
            raise self._absent(resource, key)
        encoder = self.encoder(resource)
        # A deletion changes metadata only, so it works on the stored form and nobody need be asked.
        old = encoder.read(before.value) if resource.conversion is None else decode(before.value)
        deletion.check_preconditions(resource, old, options)
        plain = Options(
            user=options.user,
            groups=options.groups,
            uid=options.user_uid,
            extra=options.extra,
            notes=options.notes,
            dry_run=options.dry_run,
        )
        context = self._context(plain)
        resource.strategy.before_delete(old, context)
        if self._admission.concerns(resource, "DELETE", ""):
            attempt = Attempt(resource, "DELETE", None, old, plain)
            attempt.details = deletion.details(options)
            await self._admission.change(attempt)
            await self._admission.judge(attempt)
            context.said.extend(attempt.warnings)
            if self._store_of.decided(key) != before:
                return await self.delete(resource, namespace, name, options)
        new = deletion.marked(resource, old, options, now=self._clock.now())
        gone = not new["metadata"].get("finalizers") and not resource.strategy.holds_deletion(new)
        if not gone and new == old:
            await self._settled(key)
            value = before.value if resource.conversion else encoder.serve(before.value)
            return Deleted(value, gone=False, warnings=tuple(context.said))
        draft = Draft(resource, old if gone else new, old, plain, context)
        form = None if resource.conversion is None else ConvertedForm(draft.new)
        written = await self._store(draft, (key, before.revision), delete=gone, form=form)
        return Deleted(written.value, gone=gone, uid=old["metadata"].get("uid", ""), warnings=written.warnings)

    def _absent(self, resource: ServedResource, key: StoreKey) -> failure.Failure:
        """Return the failure of a write to what is not stored: a view says why it cannot be written."""
        why = self._views.explanation(key)
        return failure.forbidden(resource.about(key.name), why) if why else failure.not_found(resource.about(key.name))

    def _former(self, resource: ServedResource, value: bytes) -> Data:
        """A stored object as this version has it: written under an older schema, it may lack defaults."""
        data = self.encoder(resource).read(value)
        if not resource.declared or self._is_of_this_program(resource, data):
            return data
        return resource.pipeline.decode(data).data

    def _is_of_this_program(self, resource: ServedResource, data: Data | None) -> bool:
        """Return whether this process wrote a stored object. If so, it has the present schema, which a process never changes."""
        return data is not None and resource.declared and int(data["metadata"].get("resourceVersion") or 0) > self._begun

    # --- the steps ------------------------------------------------------------------------------------------------------

    def _draft(
        self, resource: ServedResource, raw: Data, options: Options, old: Data | None, current: Data | None = None, *, copies: bool = False
    ) -> Draft:
        """Prune and default a body; unknown fields are refused, warned of or dropped, as the client wishes.

        What is still one with a member of `current`, the stored object, is the body's without anybody having said so. Decoding works in
        place, unless it is to leave the body as it is.
        """
        raw = copied(raw) if copies else raw
        metadata.check_type(resource, raw)
        unknown = metadata.coerce(raw, resource)
        decoded = unchanged.decoded(resource, raw, current or {})
        if decoded.broken:
            raise metadata.unreadable(resource, "; ".join(f"{each.field}: {each.message}" for each in decoded.broken))
        found = [each for each in (*unknown, *decoded.unknown) if old is None or fieldpath.value_at(old, each.path) is None]
        said = [metadata.unknown(resource, each) for each in found]
        if said and options.field_validation == "Strict":
            raise failure.bad_request("strict decoding error: " + ", ".join(said))
        resource.strategy.complete(decoded.data)
        unchanged.unite(decoded.data, old or {})
        draft = Draft(resource, decoded.data, old, options, self._context(options))
        draft.wrong = unchanged.new_findings(decoded.wrong, raw, old)
        draft.warnings = said if options.field_validation != "Ignore" else []
        return draft

    def _check_namespace(self, resource: ServedResource, namespace: str, name: str) -> str:
        """Return the namespace as its own object has it: thousands of keys share that text."""
        if not resource.namespaced:
            return namespace
        found = self._store_of.decided(StoreKey("namespaces", "", namespace))
        if found is None:
            raise failure.not_found(failure.FailureTarget(name=namespace, kind="namespaces"))
        if envelope(found.value).deletionTimestamp:
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause = failure.StatusCause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace")
            raise failure.forbidden(resource.about(name), why, [cause])
        return found.key.name

    def _context(self, options: Options) -> WriteContext:
        return WriteContext(
            self._view,
            self._clock.now(),
            options.user,
            options.groups,
            options.dry_run,
            options.uid,
            options.extra,
            options.subresource,
        )

    def _keep_other_half(self, draft: Draft) -> None:
        """A status write changes the status only, any other write everything but the status."""
        resource, new, old = draft.resource, draft.new, draft.old or {}
        if draft.options.subresource in resource.strategy.states():
            kept = dict(old)
            kept["metadata"] = dict(old["metadata"])
            if "managedFields" in new["metadata"]:
                kept["metadata"]["managedFields"] = new["metadata"]["managedFields"]
            kept.pop("status", None)
            if "status" in new:
                kept["status"] = new["status"]
            draft.new = resource.strategy.prepare_status(kept, new, old)
            draft.wrong = tuple(each for each in draft.wrong if each.path[:1] == ("status",))
        elif resource.status:
            draft.wrong = tuple(each for each in draft.wrong if each.path[:1] != ("status",))
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]

    async def _change(self, draft: Draft, operation: str) -> None:
        """Let admission change the object; what it made goes the way of a body."""
        resource, before = draft.resource, draft.new["metadata"]
        named = bool((draft.sent or {}).get("metadata", {}).get("name"))
        shown = draft.new if draft.old is not None else metadata.unborn(draft.new, named=named)
        attempt = Attempt(resource, operation, shown, draft.old, draft.options)
        changed = await self._admission.change(attempt)
        draft.warnings.extend(attempt.warnings)
        if changed is None:
            return
        metadata.check_type(resource, changed)
        metadata.coerce(changed, resource)
        decoded = resource.pipeline.decode(changed)
        if decoded.broken:
            raise failure.internal("; ".join(f"{each.field}: {each.message}" for each in decoded.broken))
        resource.strategy.complete(decoded.data)
        draft.new, draft.wrong = decoded.data, unchanged.new_findings(decoded.wrong, changed, draft.old)
        metadata.keep(draft.new, before)
        if draft.old is None:
            await self._prepare_create(draft)
        else:
            await self._prepare_update(draft, before.get("namespace", ""), before["name"])

    async def _judged(self, draft: Draft, operation: str) -> bool:
        """Let admission judge the object. False: what the object was checked against moved meanwhile."""
        attempt = Attempt(draft.resource, operation, draft.new, draft.old, draft.options)
        await self._admission.judge(attempt)
        draft.warnings.extend(attempt.warnings)
        meta = draft.new["metadata"]
        if draft.old is None:
            self._check_namespace(draft.resource, meta.get("namespace", ""), meta["name"])
        try:
            await self._validate(draft)
        except failure.Failure:
            return False
        return True

    async def _converted(self, draft: Draft) -> ConvertedForm | None:
        """The forms of a new object whose stored version somebody else makes; None for all others."""
        conversion = draft.resource.conversion
        if conversion is None:
            return None
        form = await conversion.store(draft.new)
        if conversion.retired:
            raise failure.unavailable("the definition of this resource has changed; try again")
        return form

    async def _validate(self, draft: Draft) -> None:
        resource, new, old = draft.resource, draft.new, draft.old
        of_status = draft.options.subresource in resource.strategy.states()
        pipeline = resource.strategy.judge(resource.pipeline, draft.context)
        # Rules that look at what is stored stay here, and come last.
        work = partial(pipeline.validate, new, old, of_status=of_status)
        broken = await aside(draft.options, work) if pipeline is resource.pipeline else work()
        found = list(draft.wrong)
        found.extend(metadata.check(resource, new, old))
        ruled = tuple(drop_unread(resource.strategy.validate(new, old, draft.context), draft.wrong))
        judged = drop_restated(drop_unread(broken, draft.wrong), ruled)
        found.extend(map(_of_status, judged) if draft.options.subresource == "status" else judged)
        found.extend(ruled)
        errors = [each for each in found if each.severity is Severity.ERROR]
        if errors:
            webhook = denials.validator(resource.group, resource.kind, updates=old is not None) if resource.declared else ""
            if webhook and all(each.rule != metadata.RULE for each in errors):
                raise denials.denial(webhook, errors)
            raise failure.invalid(resource.about_kind(new["metadata"].get("name", "")), errors)
        draft.warnings.extend(f"{each.field}: {each.message}" for each in found if each.severity is Severity.WARNING)
        draft.warnings.extend(resource.strategy.warnings(new, old))

    def _count_generation(self, draft: Draft) -> None:
        if not draft.resource.strategy.counts_generation() or draft.old is None:
            return
        if not identical_apart(draft.new, draft.old, _OBSERVED if draft.resource.status else _METADATA):
            draft.new["metadata"]["generation"] = draft.old["metadata"].get("generation", 0) + 1

    def _manager(self, resource: ServedResource, options: Options) -> ownership.Manager:
        return ownership.Manager(options.manager or "unknown", resource.api_version, options.subresource)

    async def _settled(self, key: StoreKey) -> None:
        """Wait for the write on which an answer rests that writes nothing itself."""
        try:
            await self._store_of.settled(key)
        except StoreUnavailable as error:
            raise failure.unavailable(str(error)) from error

    # --- the decision ---------------------------------------------------------------------------------------------------

    async def _store(
        self, draft: Draft, target: tuple[StoreKey, int], *, delete: bool = False, form: ConvertedForm | None = None
    ) -> Written:
        """Decide the write of a draft over what is at a key and a revision, and wait until it is durable."""
        if form is not None:
            return await self._store_converted(draft, target, form, delete=delete)
        encoder = self.encoder(draft.resource)
        created = target[1] == 0
        warnings = draft.all_warnings()
        if draft.options.dry_run:
            return Written(encoder.serve(self._bounded(encode(encoder.store(draft.new)))), created, warnings, target[0].name)
        made: list[bytes] = []

        def make(revision: int) -> bytes:
            made.append(stamp(encoder.store(draft.new), revision))
            return made[0] if delete else self._bounded(made[0])

        await self._commit(draft, target, make, delete=delete)
        return Written(encoder.serve(made[0]), created, warnings, target[0].name)

    async def _store_converted(self, draft: Draft, target: tuple[StoreKey, int], form: ConvertedForm, *, delete: bool) -> Written:
        """As `_store`, of an object that has two forms. Of a deletion the stored one is given back."""
        created, conversion = target[1] == 0, draft.resource.conversion
        served = form.stored if form.served is None else form.served
        if draft.options.dry_run:
            return Written(self._bounded(encode(served)), created, draft.all_warnings(), target[0].name)
        made: list[bytes] = []

        def make(revision: int) -> bytes:
            stored = stamp(form.stored, revision)
            made.append(stored if delete else self._bounded(stored))
            if form.served is not None and conversion is not None:
                made.append(stamp(form.served, revision))
                conversion.remember(made[0], made[1])
            return made[0]

        await self._commit(draft, target, make, delete=delete)
        return Written(made[-1], created, draft.all_warnings(), target[0].name)

    def _bounded(self, value: bytes) -> bytes:
        if len(value) > self.largest:
            raise failure.too_large(self.largest)
        return value

    async def _commit(self, draft: Draft, target: tuple[StoreKey, int], make: Make, *, delete: bool) -> None:
        key, expected = target
        try:
            pending = (self._store_of.delete if delete else self._store_of.put)(key, expected, make)
            await pending.committed()
        except RevisionConflict:
            raise failure.modified(draft.resource.about(key.name)) from None
        except StoreUnavailable as error:
            raise failure.unavailable(str(error)) from error


def _of_status(finding: Finding) -> Finding:
    """The status is judged by its own schema, so paths of findings begin there."""
    return (
        msgspec.structs.replace(finding, message=finding.message.replace(": status.", ": ", 1))
        if " in body " in finding.message
        else finding
    )
