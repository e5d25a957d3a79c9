"""Consoles, displays and the small devices of a machine."""

from typing import Any

from paddock.engine.machine.argv import names
from paddock.engine.machine.argv.blocks import virtio
from paddock.engine.machine.argv.errors import UnstartableConfig, missing
from paddock.engine.machine.argv.helpers import share_helper, tpm_helper
from paddock.engine.machine.argv.line import Line
from paddock.engine.machine.argv.options import keyed
from paddock.engine.machine.argv.pci import ROOT, VIDEO_SLOT, Slots
from paddock.engine.machine.config import DiskConfig, MachineConfig, SharedDirectory

# QEMU's names of graphics cards; those that are no PCI devices have no place
_VIDEO = {"vga": "VGA", "cirrus": "cirrus-vga", "virtio": "virtio-vga", "bochs": "bochs-display", "ramfb": "ramfb"}
_WITHOUT_PCI = ("ramfb",)
_USB_PORTS = 15
# QEMU makes hubs of its own when the ports run out, and no chains of more than five.
_USB_DEVICES = 50


def monitor(line: Line) -> None:
    """The socket that the machine's owner talks to."""
    line.chardev(_socket("mon", names.QMP))
    line.plain("-mon", "chardev=mon,mode=control")


def _socket(name: str, path: str, **more: Any) -> str:
    return keyed("socket", id=name, path=path, server=True, wait=False, **more)


def serial(config: MachineConfig, line: Line) -> None:
    if not config.devices.serial:
        return
    # Appending lets somebody else cut the log while QEMU writes it.
    log = {"logfile": names.SERIAL_LOG, "logappend": True} if config.devices.serial_log else {}
    line.chardev(_socket("ser0", names.SERIAL, **log))
    if config.architecture == "amd64":
        line.device("the serial console", {"driver": "isa-serial", "id": "serial0", "chardev": "ser0"})
    else:
        line.plain("-serial", "chardev:ser0")


def agent(config: MachineConfig, line: Line, slots: Slots) -> None:
    """The channel of the guest's agent."""
    if not config.devices.agent:
        return
    driver = virtio("virtio-serial-pci", config)
    line.device("the agent's channel", {"driver": driver, "id": "vs0", **slots.place("the agent's channel")})
    line.chardev(_socket("qga0", names.AGENT))
    port = {"driver": "virtserialport", "id": "agent0", "bus": "vs0.0", "nr": 1, "chardev": "qga0", "name": names.AGENT_CHANNEL}
    line.device("the agent's channel", port)


def display(config: MachineConfig, line: Line) -> None:
    """The graphics card and VNC."""
    if not config.devices.graphics:
        line.option("-display", "none")
        return
    line.option("-vnc", f"unix:{names.VNC}")
    kind = config.devices.video or _default_video(config)
    driver = "virtio-gpu-pci" if kind == "virtio" and config.architecture != "amd64" else _VIDEO.get(kind)
    if driver is None:
        raise missing("the display", f"graphics card {kind!r}", f"use one of {', '.join(_VIDEO)}")
    device: dict[str, Any] = {"driver": driver, "id": names.VIDEO}
    if kind in ("vga", "cirrus"):
        device["vgamem_mb"] = 16
    if kind not in _WITHOUT_PCI:
        device |= {"bus": ROOT, "addr": f"{VIDEO_SLOT:#x}"}
    line.device("the display", device)


def _default_video(config: MachineConfig) -> str:
    if config.architecture != "amd64":
        return "virtio"
    return "bochs" if config.firmware.kind == "efi" else "vga"


def memory_devices(config: MachineConfig, line: Line, slots: Slots) -> None:
    if config.devices.balloon:
        balloon = {"driver": virtio("virtio-balloon-pci", config), "id": names.BALLOON, **slots.place("the memory balloon")}
        line.device("the memory balloon", {**balloon, "free-page-reporting": config.devices.free_page_reporting})
    if config.devices.rng:
        line.object({"qom-type": "rng-random", "id": "random0", "filename": "/dev/urandom"})
        place = slots.place("the random number device")
        line.device("the random number device", {"driver": virtio("virtio-rng-pci", config), "id": "rng0", "rng": "random0", **place})


def usb(config: MachineConfig, line: Line, slots: Slots) -> None:
    """The USB controller, when anything is on it, with the ports that clients redirect devices to."""
    devices = config.devices
    count = sum(_is_usb(disk) for disk in config.disks) + sum(bus == "usb" for _, bus, _ in devices.inputs) + devices.usb_redirections
    if not count:
        return
    if count > _USB_DEVICES:
        why = f"the bus takes {_USB_DEVICES} devices, and there are {count}"
        raise UnstartableConfig(
            "cannot place all USB devices", reason="no-room", of="USB devices", why=why, fix="use the bus scsi for disks"
        )
    controller = {"driver": "qemu-xhci", "id": "usb", "p2": _USB_PORTS, "p3": _USB_PORTS, **slots.place("the USB controller")}
    line.device("the USB controller", controller)
    for index in range(devices.usb_redirections):
        line.chardev(_socket(f"usbredir{index}", names.usb_socket(index)))
        line.device("USB redirection", {"driver": "usb-redir", "id": f"redir{index}", "chardev": f"usbredir{index}", "bus": "usb.0"})


def _is_usb(disk: DiskConfig) -> bool:
    return disk.bus == "usb"


def inputs(config: MachineConfig, line: Line, slots: Slots) -> None:
    drivers = {("tablet", "usb"): "usb-tablet", ("keyboard", "usb"): "usb-kbd"}
    drivers |= {("tablet", "virtio"): "virtio-tablet-pci", ("keyboard", "virtio"): "virtio-keyboard-pci"}
    for index, (kind, bus, name) in enumerate(config.devices.inputs):
        driver = drivers.get((kind, bus))
        if driver is None:
            raise missing(f"input {name}", f"{kind} on the bus {bus}", "use a tablet on usb or virtio")
        place = {"bus": "usb.0"} if bus == "usb" else slots.place(f"input {name}")
        line.device(f"input {name}", {"driver": driver, "id": f"input{index}", **place})


def sound(config: MachineConfig, line: Line, slots: Slots) -> None:
    """A sound card whose sound goes nowhere."""
    model = config.devices.sound
    if not model:
        return
    line.plain("-audiodev", "none,id=audio0")
    place = slots.conventional("the sound card")
    if model == "ac97":
        line.device("the sound card", {"driver": "AC97", "id": "sound0", "audiodev": "audio0", **place})
    elif model == "ich9":
        line.device("the sound card", {"driver": "ich9-intel-hda", "id": "sound0", **place})
        line.device("the sound card", {"driver": "hda-micro", "id": "codec0", "bus": "sound0.0", "cad": 0, "audiodev": "audio0"})
    else:
        raise missing("the sound card", f"model {model!r}", "use ich9 or ac97")


def watchdog(config: MachineConfig, line: Line, slots: Slots) -> None:
    """The watchdog. Its action stands once for the machine, among the other actions."""
    if config.devices.watchdog:
        line.device("the watchdog", {"driver": "i6300esb", "id": "watchdog0", **slots.conventional("the watchdog")})


def panic(config: MachineConfig, line: Line, slots: Slots) -> None:
    """A device by which the guest tells that it crashed."""
    if config.devices.panic and config.architecture == "amd64":
        line.device("the panic device", {"driver": "pvpanic", "id": "panic0"})
    elif config.devices.panic:
        line.device("the panic device", {"driver": "pvpanic-pci", "id": "panic0", **slots.conventional("the panic device")})


def generation(config: MachineConfig, line: Line) -> None:
    """The number by which a guest learns that it is a copy."""
    # QEMU has the device in ACPI tables of PCs alone.
    if config.devices.generation_id and config.acpi and config.architecture == "amd64":
        line.device("the generation id", {"driver": "vmgenid", "id": "generation0", "guid": config.devices.generation_id})


def tpm(config: MachineConfig, line: Line) -> None:
    """TPM 2.0, by a program of its own."""
    if config.devices.tpm is None:
        return
    line.helpers.append(tpm_helper(config.devices.tpm, line.host))
    line.chardev(keyed("socket", id="tpm0", path=names.TPM))
    line.plain("-tpmdev", "emulator,id=tpmdev0,chardev=tpm0")
    if config.architecture != "amd64":
        driver = "tpm-tis-device"
    else:
        driver = "tpm-crb" if config.devices.tpm.state is not None else "tpm-tis"
    line.device("the TPM", {"driver": driver, "id": "tpm", "tpmdev": "tpmdev0"})


def shares(config: MachineConfig, line: Line, slots: Slots) -> None:
    """Directories that the guest mounts."""
    for index, directory in enumerate(config.devices.shared):
        _share(index, directory, line, slots)


def _share(index: int, directory: SharedDirectory, line: Line, slots: Slots) -> None:
    line.helpers.append(share_helper(index, directory, line.host))
    line.chardev(keyed("socket", id=f"fs{index}", path=names.share_socket(index)))
    of = f"shared directory {directory.tag}"
    device = {"driver": "vhost-user-fs-pci", "id": f"share{index}", "chardev": f"fs{index}", "tag": directory.tag}
    line.device(of, {**device, **slots.place(of)})


def vsock(config: MachineConfig, line: Line, slots: Slots) -> None:
    """The guest's end of the host's VSOCK."""
    number = config.devices.vsock
    if number is not None:
        line.device("VSOCK", {"driver": virtio("vhost-vsock-pci", config), "id": "vsock0", "guest-cid": number, **slots.place("VSOCK")})


def passed_through(config: MachineConfig, line: Line, slots: Slots) -> None:
    for index, address in enumerate(config.devices.pci):
        of = f"host device {address}"
        line.device(of, {"driver": "vfio-pci", "id": f"host{index}", "host": address, **slots.place(of)})
