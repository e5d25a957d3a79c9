"""Facts about a machine that its guest may read."""

import msgspec

from paddock.base.seeds.configdrive import TaggedDevice
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance import facts


def test_devices_with_a_tag_are_told() -> None:
    devices = {
        "interfaces": [{"name": "a", "tag": "inside", "macAddress": "02:00:00:00:00:01", "pciAddress": "0000:01:00.0"}, {"name": "b"}],
        "hostDevices": [{"name": "h", "tag": "tape"}, {"name": "other"}],
        "gpus": [{"name": "g", "tag": "screen"}],
    }
    instance = msgspec.convert({"metadata": {"name": "web"}, "spec": {"domain": {"devices": devices}}}, VirtualMachineInstance)
    assert facts.tagged(instance) == (
        TaggedDevice("nic", "0000:01:00.0", ("inside",), "02:00:00:00:00:01"),
        TaggedDevice("hostdev", "", ("tape",)),
        TaggedDevice("hostdev", "", ("screen",)),
    )
