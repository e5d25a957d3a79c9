"""The parts of an object that an update leaves as they were: nothing that was settled about them is worked out again. Pure."""

from paddock.base.jsondata import Data, copied
from paddock.base.jsonequality import identical
from paddock.kubernetes.meta import fieldpath
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.server.resources.pipeline import Decoded
from paddock.server.resources.resource import ServedResource


def unite(new: Data, old: Data) -> None:
    """Make the members of a new object that are as they were one with those of the old object: whatever compares them sees it at once."""
    for name in new.keys() & old.keys() - {"metadata"}:
        if identical(new[name], old[name]):
            new[name] = old[name]


def new_findings(findings: tuple[Finding, ...], body: Data, old: Data | None) -> tuple[Finding, ...]:
    """Return the findings of a body that the old object does not have at the same place."""
    return findings if old is None else tuple(each for each in findings if not _stood(old, body, each.path))


def is_equal_at(new: Data, taken: Data, path: Path) -> bool:
    """Return whether two objects have the same value at a place."""
    return bool(fieldpath.value_at(taken, path) == fieldpath.value_at(new, path))


def _stood(old: Data, body: Data, path: Path) -> bool:
    value = fieldpath.value_at(body, path)
    if value is not None:
        return bool(value == fieldpath.value_at(old, path))
    # What is missing is missing in something, which is judged again as soon as anything in it changes.
    around = fieldpath.value_at(old, path[:-1])
    return around is not None and bool(around == fieldpath.value_at(body, path[:-1]))


def decoded(resource: ServedResource, raw: Data, given: Data) -> Decoded:
    """Decode a body. Members that it shares with the stored object are left out: they were decoded when that was stored."""
    if not given:
        return resource.pipeline.decode(raw)
    own = {name: value for name, value in raw.items() if isinstance(value, dict | list) and value is given.get(name)}
    # Decoding works in place, and the rest can still share parts with the stored object: copy them.
    rest = {name: value if name == "metadata" else copied(value) for name, value in raw.items() if name not in own}
    made = resource.pipeline.decode(rest)
    unknown, broken, wrong = (
        tuple(each for each in found if each.path[:1] not in [(name,) for name in own]) for found in (made.unknown, made.broken, made.wrong)
    )
    return Decoded({**made.data, **own}, unknown, broken, wrong)
