"""Events are forgotten an hour after they last happened."""

from paddock.apiserver.objects.encoding import decode
from paddock.apiserver.objects.writing import DeleteOptions
from paddock.apiserver.parts import Parts
from paddock.meta import ages, failure

LIFE_SECONDS = 3600.0
_COLLECTION = "events"
_TIMES = ("lastTimestamp", "eventTime", "firstTimestamp")


async def forget_old(parts: Parts) -> int:
    """Delete the events that are old enough; returns how many."""
    resource = parts.registry.find("", "v1", _COLLECTION)
    if resource is None:
        return 0
    end = parts.clock.seconds() - LIFE_SECONDS
    gone = 0
    for record in tuple(parts.store.scan(_COLLECTION)):
        data = decode(record.value)
        said = [data.get(key) for key in _TIMES] + [
            (data.get("series") or {}).get("lastObservedTime"),
            data["metadata"].get("creationTimestamp"),
        ]
        times = [seconds for text in said if text and (seconds := ages.seconds_of(text)) is not None]
        if times and max(times) < end:
            try:
                await parts.writer.delete(resource, record.key.namespace, record.key.name, DeleteOptions(revision=str(record.revision)))
                gone += 1
            except failure.Failure as said_no:
                if said_no.code not in (404, 409):
                    raise
    return gone
