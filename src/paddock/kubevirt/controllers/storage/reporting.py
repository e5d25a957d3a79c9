from collections.abc import Iterable, Sequence

import msgspec

from paddock.kubevirt.kinds.datavolume_kind import DataCondition


def conditions(before: Sequence[DataCondition] | None, data_conditions: Iterable[DataCondition], now: str) -> list[DataCondition]:
    """The conditions after a look. One that says what it said is as it was, so nothing is written when nothing differs."""
    found = {each.type: each for each in before or ()}
    for each in data_conditions:
        old = found.get(each.type)
        if old is not None and (old.status, old.reason, old.message) == (each.status, each.reason, each.message):
            continue
        since = old.lastTransitionTime if old is not None and old.status == each.status and old.lastTransitionTime else now
        found[each.type] = msgspec.structs.replace(each, lastTransitionTime=since, lastHeartbeatTime=now)
    return list(found.values())
