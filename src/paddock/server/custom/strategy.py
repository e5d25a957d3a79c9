"""Behaviour of a CustomResourceDefinition in the API besides storage."""

from collections.abc import Callable, Iterable, Iterator

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.kubernetes.schema.finding import Finding
from paddock.server.builtin.holding import hold
from paddock.server.custom import checks, naming
from paddock.server.custom.definition import COLLECTION, FINALIZER, GROUP, PLURAL
from paddock.server.custom.naming import NamesInUse
from paddock.server.custom.owndefinitions import OwnKinds
from paddock.server.resources.strategy import CustomStrategy, ObjectView, WriteContext

# The names that the server itself uses in a group.
Builtin = Callable[[str], Iterable[NamesInUse]]


class DefinitionStrategy(CustomStrategy):
    """Defaults, names and conditions are settled in the write itself, so that a definition is served when its create returns."""

    def __init__(self, builtin: Builtin, own: OwnKinds) -> None:
        self._builtin = builtin
        self._own = own

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """Fill in names, accept them, and hold the definition until its objects are gone."""
        _defaults(new)
        hold(new, FINALIZER)
        new["status"] = naming.settle(new.get("spec") or {}, {}, self.others(new, context.view), context.now)
        return new

    def prepare_update(self, new: Data, old: Data, context: WriteContext) -> Data:
        """As at creation; what was stored before is remembered."""
        if new["metadata"].get("name") in self._own:
            return new
        _defaults(new)
        if new.get("spec") != old.get("spec"):
            new["status"] = naming.settle(new.get("spec") or {}, old.get("status") or {}, self.others(new, context.view), context.now)
        return new

    def taken(self, new: Data, old: Data, context: WriteContext) -> Data:
        """Of the server's own kinds the metadata alone."""
        if old["metadata"]["name"] in self._own:
            if new.get("spec") != old["spec"]:
                context.said.append(self._own.ignored(new))
            return {**new, "spec": old["spec"], "status": old["status"]}
        return new

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Names, versions, schemas, columns, paths."""
        if new["metadata"].get("name") not in self._own:
            yield from checks.check(new, old)

    def warnings(self, new: Data, old: Data | None) -> Iterator[str]:
        """Yield a warning for each value without effect."""
        if new["metadata"].get("name") in self._own:
            return
        yield from checks.warnings(new.get("spec") or {})

    def mark_deleted(self, new: Data) -> Data:
        """Say that the objects go first."""
        since = new["metadata"].get("deletionTimestamp")
        if since:
            status = new.setdefault("status", {})
            said = ("Terminating", True, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
            naming.say(status, said, since)
        return new

    def appliable(self, config: Data, said: list[str]) -> Data:
        """Of the server's own kinds the metadata."""
        if config["metadata"].get("name") not in self._own:
            return config
        if "spec" in config:
            said.append(self._own.ignored(config))
        return {key: value for key, value in config.items() if key not in ("spec", "status")}

    def prepare_status(self, kept: Data, new: Data, old: Data) -> Data:
        """The status of the server's own kinds is what it is."""
        if old["metadata"]["name"] in self._own:
            kept["status"] = old["status"]
        return kept

    def before_delete(self, old: Data, context: WriteContext) -> None:
        """The server's own kinds stay."""
        name = old["metadata"]["name"]
        if name in self._own:
            about = failure.FailureTarget(name=name, group=GROUP, kind=PLURAL)
            raise failure.forbidden(about, "this kind is a part of Paddock itself; delete its objects instead")

    def others(self, new: Data, view: ObjectView) -> Iterator[NamesInUse]:
        """The names that are taken in the group of a definition."""
        group = (new.get("spec") or {}).get("group")
        name = new["metadata"].get("name")
        yield from self._builtin(group or "")
        for other in view.list(COLLECTION):
            if other["metadata"]["name"] == name or other["metadata"]["name"] in self._own:
                continue
            if (other.get("spec") or {}).get("group") == group:
                yield naming.taken((other.get("status") or {}).get("acceptedNames") or {})


def _defaults(new: Data) -> None:
    spec = new.get("spec")
    if not isinstance(spec, dict):
        return
    names = spec.setdefault("names", {})
    if names.get("kind"):
        if not names.get("singular"):
            names["singular"] = names["kind"].lower()
        if not names.get("listKind"):
            names["listKind"] = f"{names['kind']}List"
    conversion = spec.setdefault("conversion", {})
    if not conversion.get("strategy"):
        conversion["strategy"] = "None"
