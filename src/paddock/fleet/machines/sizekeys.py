"""The keys of `paddock set`, and amounts on command lines. Light: the parser of the command needs them."""

from collections.abc import Mapping, Sequence

from paddock.base import quantity
from paddock.base.errors import UsageError
from paddock.base.nearest import nearest

_ALIASES = {
    "cpus": "cpu",
    "vcpus": "cpu",
    "memory": "mem",
    "ram": "mem",
    "instance-type": "instancetype",
    "runstrategy": "run",
    "run-strategy": "run",
}
# key -> its meaning, for the help
KEYS: Mapping[str, str] = {
    "cpu": "virtual processors, such as 4",
    "mem": "memory, such as 4Gi",
    "instancetype": "instancetype (KubeVirt)",
    "preference": "preference (KubeVirt)",
    "class": "VMClass (VirtRigaud), MachineClass (Vitistack's own form)",
    "template": "template (Vitistack)",
    "run": "run strategy, such as Always (KubeVirt, Stakater)",
    "grace": "seconds to shut down (KubeVirt, Stakater)",
}
Wishes = Mapping[str, str]


def parse(words: Sequence[str]) -> dict[str, str]:
    """Return the wishes of `KEY=VALUE ...`. Raises `UsageError`."""
    wishes: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        key = _ALIASES.get(key.lower(), key.lower())
        if not equals or not value:
            raise UsageError(f'"{word}" is no KEY=VALUE', fix="write a key, = and a value: cpu=4 mem=8Gi")
        if key not in KEYS:
            meant = nearest(key, KEYS)
            raise UsageError(f'there is no key "{key}"', fix=f'did you mean "{meant}"?' if meant else f"the keys are {', '.join(KEYS)}")
        if key in wishes:
            raise UsageError(f'"{key}" is given twice', fix="give each key once")
        wishes[key] = _checked(key, value)
    return wishes


def _checked(key: str, value: str) -> str:
    if key in ("cpu", "grace") and (not value.isdecimal() or (key == "cpu" and int(value) < 1)):
        raise UsageError(f'"{value}" is no number for {key}', fix=f"write a whole number: {key}={'4' if key == 'cpu' else '60'}")
    if key == "mem":
        quantity.amount(value, "mem=4Gi")
    return value
