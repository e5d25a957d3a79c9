"""The messages are those of the specification's table, and their representations hide secrets."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from paddock.contract import messages as m
from paddock.contract.methods import METHODS

SPEC = Path(__file__).parents[3] / "docs" / "spec" / "virtrigaud.md"
# The names are taken by a kind of KubeVirt.
RENAMED = {"DiskInfo": "VMDiskInfo", "NetworkInfo": "VMNetworkInfo"}
FIELD = re.compile(r"(\w+)=(\d+)((?: \w+)*)")


def rows() -> Iterator[tuple[str, str]]:
    section = SPEC.read_text(encoding="utf-8").partition("### 3.2 ")[2].partition("### 3.3 ")[0]
    for line in section.splitlines():
        if line.startswith("| ") and not line.startswith("| Message"):
            names, fields = (part.strip() for part in line.strip("| ").split(" | "))
            for name in re.sub(r" \(.*?\)", "", names).split(", "):
                yield name, fields


def typed(text: str) -> str:
    """The type of a field in the table, without the remarks about it."""
    words = text.split()
    if words[:1] == ["repeated"]:
        return f"repeated {words[1]}" if len(words) > 1 else "repeated string"
    return words[0] if words else "string"


def declared(cls: type[m.WireMessage]) -> dict[str, tuple[int, str]]:
    hints = get_type_hints(cls, include_extras=True)
    return {name: (field.number, spelled(get_args(hints[name])[0], field.bits)) for name, field in cls.wire_fields().items()}


def spelled(hint: Any, bits: int) -> str:
    if get_origin(hint) is dict:
        return "map"
    if get_origin(hint) is tuple:
        return f"repeated {spelled(get_args(hint)[0], bits)}"
    if get_origin(hint) is not None:
        return spelled(get_args(hint)[0], bits) if isinstance(get_args(hint)[0], type) else "?"
    if args := get_args(hint):
        return spelled(args[0], bits)
    plain = {str: "string", bytes: "bytes", bool: "bool", int: f"int{bits}"}
    wire_names = {ours: theirs for theirs, ours in RENAMED.items()}
    return plain.get(hint) or wire_names.get(hint.__name__, hint.__name__)


MESSAGES = {name: fields for name, fields in rows() if name not in ("PowerOp", "HostHealth")}


@pytest.mark.parametrize("name", MESSAGES)
def test_fields(name: str) -> None:
    cls = getattr(m, RENAMED.get(name, name))
    text = re.sub(r"\(.*?\)", "", MESSAGES[name])
    assert declared(cls) == {field: (int(number), typed(kind)) for field, number, kind in FIELD.findall(text)}


def test_every_message_is_in_the_table() -> None:
    ours = {
        cls.__name__ for cls in vars(m).values() if isinstance(cls, type) and issubclass(cls, m.WireMessage) and cls is not m.WireMessage
    }
    assert ours == {RENAMED.get(name, name) for name in MESSAGES}
    used = {cls.__name__ for method in METHODS for cls in (method.request, method.response)}
    assert used <= ours


@pytest.mark.parametrize("name", ["PowerOp", "HostHealth"])
def test_enumerations(name: str) -> None:
    found = {
        key.rpartition("UNSPECIFIED")[1] or key.lstrip("_"): int(value) for key, value in re.findall(r"(\w+)=(\d+)", dict(rows())[name])
    }
    assert {each.name: each.value for each in getattr(m, name)} == found


@pytest.mark.parametrize(
    "message",
    [
        m.CreateRequest(user_data=b"hunter2"),
        m.CreateRequest(meta_data=b"hunter2"),
        m.ReconfigureRequest(desired_json="hunter2"),
        m.CreateRequest(class_json="hunter2"),
        m.ExportDiskRequest(credentials={"secretAccessKey": "hunter2"}),
        m.ImportDiskRequest(credentials={"secretAccessKey": "hunter2"}),
        m.ImportDiskRequest(source_url="https://user:hunter2@host/"),
        m.CloneRequest(customize_json="hunter2"),
        m.DescribeResponse(console_url="https://host/?ticket=hunter2"),
    ],
)
def test_secrets_are_hidden(message: m.WireMessage) -> None:
    assert "hunter2" not in repr(message)
    assert "<hidden>" in repr(message)
    assert "hunter2" not in str([message])
    assert "hunter2" not in str(message.__rich_repr__())


def test_what_is_not_secret_is_shown() -> None:
    assert repr(m.DeleteRequest(id="vm-7", owner=m.ObjectIdentity(uid="1"))) == "DeleteRequest(id='vm-7', owner=ObjectIdentity(uid='1'))"


def test_messages_are_frozen() -> None:
    with pytest.raises(AttributeError):
        m.TaskRef(id="a").id = "b"
