"""The accepted names of a definition, and the conditions that report them. Pure."""

from collections.abc import Iterable

import msgspec

from paddock.base.jsondata import Data


class NamesInUse(msgspec.Struct, frozen=True):
    """The names of another resource of the same group."""

    plural: str
    singular: str
    short_names: tuple[str, ...]
    kind: str
    list_kind: str


def taken(names: Data) -> NamesInUse:
    """Accepted names of a definition."""
    return NamesInUse(
        names.get("plural") or "",
        names.get("singular") or "",
        tuple(names.get("shortNames") or ()),
        names.get("kind") or "",
        names.get("listKind") or "",
    )


def conflict(names: Data, others: Iterable[NamesInUse]) -> tuple[str, str]:
    """The reason and the message of a conflict; empty without one."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        resources.update((other.plural, other.singular, *other.short_names))
        kinds.update((other.kind, other.list_kind))
    resources.discard("")
    kinds.discard("")
    wanted = taken(names)
    if wanted.plural in resources:
        return "PluralConflict", f'"{wanted.plural}" is already in use'
    if wanted.singular in resources:
        return "SingularConflict", f'"{wanted.singular}" is already in use'
    for short in wanted.short_names:
        if short in resources:
            return "ShortNamesConflict", f'"{short}" is already in use'
    if wanted.kind in kinds:
        return "KindConflict", f'"{wanted.kind}" is already in use'
    if wanted.list_kind in kinds:
        return "ListKindConflict", f'"{wanted.list_kind}" is already in use'
    return "", ""


def condition(status: Data, kind: str) -> Data | None:
    """A condition of a status."""
    return next((each for each in status.get("conditions") or () if each.get("type") == kind), None)


def holds(status: Data, kind: str) -> bool:
    """Return whether a condition is true."""
    found = condition(status, kind)
    return found is not None and found.get("status") == "True"


def say(status: Data, said: tuple[str, bool, str, str], now: str) -> None:
    """Set a condition; the time moves only with the answer."""
    kind, value, reason, message = said
    word = "True" if value else "False"
    old = condition(status, kind)
    since = old["lastTransitionTime"] if old is not None and old.get("status") == word and old.get("lastTransitionTime") else now
    new = {"type": kind, "status": word, "lastTransitionTime": since, "reason": reason, "message": message}
    kept = [each for each in status.get("conditions") or () if each.get("type") != kind]
    status["conditions"] = [*kept, new]


def settle(spec: Data, status: Data, others: Iterable[NamesInUse], now: str) -> Data:
    """The status of a definition, with its names accepted where nobody else has them."""
    made = {**status, "conditions": [dict(each) for each in status.get("conditions") or ()]}
    names = spec.get("names") or {}
    reason, message = conflict(names, others)
    if reason:
        say(made, ("NamesAccepted", False, reason, message), now)
        if condition(made, "Established") is None:
            say(made, ("Established", False, "NotAccepted", "not all names are accepted"), now)
    else:
        made["acceptedNames"] = names
        say(made, ("NamesAccepted", True, "NoConflicts", "no conflicts found"), now)
        if not holds(made, "Established"):
            say(made, ("Established", True, "InitialNamesAccepted", "the initial names have been accepted"), now)
    made.setdefault("acceptedNames", {"plural": "", "kind": ""})
    storage = next((each.get("name") for each in spec.get("versions") or () if each.get("storage")), None)
    stored = list(made.get("storedVersions") or ())
    if storage and storage not in stored:
        stored.append(storage)
    made["storedVersions"] = stored
    return made
