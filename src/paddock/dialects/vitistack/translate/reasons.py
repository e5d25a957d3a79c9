"""Reasons why a Machine cannot express a value of a KubeVirt machine, and the replacement, by its place."""

from paddock.kubernetes.schema.finding import Path

Reason = tuple[str, str]

_INSTANCE = ("spec", "template", "spec")
_DEVICES = (*_INSTANCE, "domain", "devices")
# `*` is any one part. The first row that begins the path counts, so the narrower ones stand first.
_TABLE: tuple[tuple[Path, Reason], ...] = (
    (("metadata", "name"), ("a Machine's name is a DNS label of at most 63 characters", "the Machine has the nearest such name")),
    (("metadata", "generateName"), ("the names of generated objects follow from the Machine's", "the Machine has the prefix as its name")),
    (("metadata", "labels"), ("a Machine passes on the label of its cluster only", "the label stays on the Machine")),
    (("metadata", "annotations"), ("a Machine passes on no annotations", "the annotation stays on the Machine")),
    (("metadata", "ownerReferences"), ("a Machine is its own owner", "nothing owns the Machine")),
    (("spec", "runStrategy"), ("a Machine runs or is stopped", "it is kept running, or stopped where it was halted")),
    (("spec", "running"), ("a Machine runs or is stopped", "it is kept running, or stopped where it was halted")),
    (("spec", "instancetype"), ("a Machine has templates of its own", "processors and memory stand in the Machine")),
    (("spec", "preference"), ("a Machine has no preferences", "the defaults of the dialect apply")),
    (
        ("spec", "dataVolumeTemplates"),
        ("a Machine makes the claims of its disks itself", "a root disk keeps the address of its image; others start blank"),
    ),
    (("spec", "template", "metadata"), ("a Machine labels what runs with its own labels only", "left out")),
    (
        (*_INSTANCE, "volumes", "*", "persistentVolumeClaim"),
        ("a Machine names the claim of a disk after itself and the disk", "the disk has a claim of that name; content is not moved"),
    ),
    (
        (*_INSTANCE, "volumes", "*", "dataVolume"),
        ("a Machine names the claim of a disk after itself and the disk", "the disk has a claim of that name; content is not moved"),
    ),
    (
        (*_INSTANCE, "volumes", "*", "containerDisk"),
        ("a Machine's disks keep what is written", "a root disk starts with a copy of the image, others are left out"),
    ),
    ((*_INSTANCE, "volumes", "*", "emptyDisk"), ("a Machine's disks keep what is written", "the disk has a claim")),
    ((*_INSTANCE, "volumes"), ("a Machine has disks with claims, cloud-init and an installation image only", "left out")),
    ((*_DEVICES, "disks", "*", "bootOrder"), ("a Machine boots from its root disk, first card or CD-ROM only", "the device has no rank")),
    ((*_DEVICES, "disks", "*", "disk", "bus"), ("every disk of a Machine is virtio", "virtio")),
    ((*_DEVICES, "disks", "*", "disk", "readonly"), ("only disks with ReadOnlyMany are read-only", "the disk can be written")),
    (
        (*_DEVICES, "interfaces", "*", "bootOrder"),
        ("a Machine boots from its root disk, first card or CD-ROM only", "the device has no rank"),
    ),
    ((*_DEVICES, "interfaces", "*", "model"), ("a Machine's cards are virtio, e1000 or rtl8139", "virtio")),
    ((*_DEVICES, "interfaces", "*", "macAddress"), ("the address cannot be given here", "an address is derived from the Machine")),
    (
        (*_DEVICES, "interfaces"),
        ("a Machine has bridged cards on networks of their own, or one masqueraded card on the pod network", "left out"),
    ),
    ((*_INSTANCE, "networks"), ("a Machine refers to NetworkConfigurations of its namespace, or has the pod network", "left out")),
    *(
        (
            (*_INSTANCE, "domain", "cpu", name),
            ("a Machine has at most 256 cores, 8 threads and 16 sockets", "as many single cores, at most 256"),
        )
        for name in ("cores", "threads", "sockets")
    ),
    (
        (*_INSTANCE, "domain", "machine", "type"),
        ("a Machine's type is of the q35 or the i440fx family", "the backend chooses"),
    ),
    (
        (*_INSTANCE, "domain", "resources"),
        ("a Machine says only what the guest sees", "left out; memory is kept where nothing else gives it"),
    ),
    (
        (*_INSTANCE, "domain", "firmware", "bootloader"),
        ("a Machine boots with BIOS or EFI, and Secure Boot needs q35", "as far as that goes"),
    ),
)
_OTHERWISE: Reason = ("a Machine has no field for it", "left out")


def reason(path: Path) -> Reason:
    """The words for a value that was lost."""
    return next((words for start, words in _TABLE if _begins(start, path)), _OTHERWISE)


def _begins(start: Path, path: Path) -> bool:
    return len(start) <= len(path) and all(want in ("*", part) for want, part in zip(start, path, strict=False))
