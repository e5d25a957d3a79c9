"""QEMU's message is kept, and the option that it repeats is named."""

import json

import pytest

from paddock.kubevirt.plan.instance.qemulog import legible

_NODE = json.dumps({"driver": "qcow2", "node-name": "root", "file": {"driver": "file", "filename": "x" * 2000}})


@pytest.mark.parametrize(
    ("text", "short"),
    [
        (f"qemu: -blockdev {_NODE}: Could not open 'x': No such file", "qemu: -blockdev root: Could not open 'x': No such file"),
        (f"a\nqemu: -device {_NODE}: b\nqemu: -object {_NODE}: c", "a\nqemu: -device root: b\nqemu: -object root: c"),
        ("qemu: -vnc :5: Address already in use", "qemu: -vnc :5: Address already in use"),
        ('qemu: -blockdev {"driver": cut', 'qemu: -blockdev {"driver": cut'),
        ("", ""),
    ],
)
def test_options_are_named(text: str, short: str) -> None:
    assert legible(text) == short
