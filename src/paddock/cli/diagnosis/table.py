"""All rules. The words are tried in this order: what says most comes first."""

from collections.abc import Iterable, Mapping
from functools import cache

from paddock.cli.diagnosis import boots, disks, fronts, guests, health, hosts, objects, operations
from paddock.cli.diagnosis.disks import DISKS
from paddock.cli.diagnosis.fronts import FRONTS
from paddock.cli.diagnosis.guests import GUESTS
from paddock.cli.diagnosis.health import HEALTH
from paddock.cli.diagnosis.hosts import HOSTS, NETWORKS
from paddock.cli.diagnosis.images import IMAGES
from paddock.cli.diagnosis.objects import ADMISSION, REFUSED
from paddock.cli.diagnosis.operations import OPERATIONS
from paddock.cli.diagnosis.rule import DiagnosisRule
from paddock.cli.diagnosis.told import EventCause, rules

# Fronts repeat what others say, so their own reasons come late; that something is not valid is what remains.
WORDS: tuple[EventCause, ...] = (*HEALTH, *OPERATIONS, *DISKS, *ADMISSION, *NETWORKS, *HOSTS, *GUESTS, *IMAGES, *FRONTS, *REFUSED)
LOOKING: tuple[DiagnosisRule, ...] = (
    *objects.RULES,
    *disks.RULES,
    *boots.RULES,
    *hosts.RULES,
    *guests.RULES,
    *operations.RULES,
    *fronts.RULES,
)


# Remarks that leave a question open, by rule: with one of them nothing is all clear.
GAPS: Mapping[str, str] = {"disks-blank": "whether the guest boots (its disks were made empty, or it has none)"}


@cache
def every() -> Mapping[str, DiagnosisRule]:
    """The rules by id. A cause that is known by words and by looking is one."""
    return {each.id: each for each in (*rules(WORDS), *LOOKING)}


def _ids(*tables: Iterable[EventCause | DiagnosisRule]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.id for table in tables for each in table))


def _grouped() -> Mapping[str, tuple[str, ...]]:
    listed = {
        "Something that is named and not there, held, or refused": _ids(objects.RULES, ADMISSION, REFUSED),
        "Images and the way to them": _ids(IMAGES),
        "Disks": _ids(DISKS, disks.RULES, boots.RULES),
        "The host": _ids(health.HOST, HOSTS, hosts.RULES),
        "Networks": _ids(NETWORKS),
        "Machines and their guests": _ids(health.GUEST, GUESTS, guests.RULES),
        "Snapshots, restores, clones, exports, series, Services": _ids(OPERATIONS, operations.RULES),
        "Stakater's, Vitistack's and Kubermatic's objects": _ids(FRONTS, fronts.RULES),
    }
    seen: set[str] = set()
    found: dict[str, tuple[str, ...]] = {}
    for title, ids in listed.items():
        found[title] = tuple(each for each in ids if each not in seen)
        seen |= set(ids)
    return found


# The causes by what they are about, for people.
GROUPS: Mapping[str, tuple[str, ...]] = _grouped()
