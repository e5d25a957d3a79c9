"""A VirtRigaud machine with everything that it refers to, as objects of KubeVirt (docs/design/0003-virtrigaud-on-kubevirt.md)."""

from paddock.base import duration, names
from paddock.dialects.virtrigaud.kinds import virtualmachine as virtrigaud
from paddock.dialects.virtrigaud.kinds.machine import VirtualMachineLifecycle
from paddock.dialects.virtrigaud.translate import addresses, disks, guest, hardware, marks, others, wiring
from paddock.dialects.virtrigaud.translate.disks import AttachedDisk
from paddock.dialects.virtrigaud.translate.resolved import VirtrigaudInputs, resolve
from paddock.kubernetes.meta.objects import ObjectMeta, Resource, TemplateMeta, owned_by
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import Translated
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.finding import Path
from paddock.kubevirt.kinds.devices import Devices
from paddock.kubevirt.kinds.domain import DomainSpec
from paddock.kubevirt.kinds.instance import VirtualMachineInstanceSpec, VirtualMachineInstanceTemplate
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine, VirtualMachineSpec

HOST = "kubernetes.io/hostname"
_DEFAULTS = ("cluster", "datastore", "storagePod", "folder", "resourcePool", "network")
# How a provider is reached: said once, by its endpoint.
_CONNECTION = ("type", "credentialSecretRef", "insecureSkipVerify", "rateLimit", "runtime", "healthCheck", "connectionPooling")
_QEMU = "qemu"


def to_kubevirt(source: Resource, object_set: ObjectSet, rendering: Rendering) -> Translated[tuple[Resource, ...]]:
    """The objects that a machine becomes, in the order in which they are applied. Other kinds become nothing, and say why.

    Raises an `Unmet` when the machine cannot be translated: without its class, without anything to boot, when its class
    requires what KubeVirt does not have, and in a complete world for every other reference that leads nowhere.
    """
    if not isinstance(source, virtrigaud.VirtrigaudVirtualMachine):
        return others.tell(source)
    resolved = resolve(source, object_set, rendering)
    hardware.judge_encryption(resolved)
    return build(resolved, [disks.root(resolved), *disks.data(resolved)])


def build(resolved: VirtrigaudInputs, attached: list[AttachedDisk]) -> Translated[tuple[Resource, ...]]:
    """The objects of a machine with these disks."""
    wired = wiring.wire(resolved)
    addressed = addresses.give(resolved, wired.interfaces if wired else (), can_tell=not guest.has_ignition(resolved))
    guest_data = guest.tell(resolved, addressed.network_data)
    devices = Devices(
        disks=[each.disk for each in attached] + ([guest_data.disk] if guest_data else []) or None,
        interfaces=addressed.interfaces or None,
        tpm=hardware.tpm(resolved),
        gpus=hardware.gpus(resolved),
        networkInterfaceMultiqueue=True if wired and wired.multiqueue else None,
        autoattachPodInterface=False if wired and not wired.interfaces else None,
    )
    instance = VirtualMachineInstanceSpec(
        domain=_domain(resolved, devices),
        networks=wired.networks or None if wired else None,
        volumes=[each.volume for each in attached] + ([guest_data.volume] if guest_data else []) or None,
        hostname=guest.hostname(resolved),
        architecture=hardware.image_architecture(resolved),
        terminationGracePeriodSeconds=_grace(resolved),
        nodeSelector=_node(resolved),
    )
    block = next((each.source for each in attached if each.source), "")
    machine = VirtualMachine(
        apiVersion="kubevirt.io/v1",
        kind="VirtualMachine",
        metadata=_metadata(resolved, block),
        spec=VirtualMachineSpec(
            runStrategy=_run_strategy(resolved),
            template=VirtualMachineInstanceTemplate(metadata=_template_metadata(resolved), spec=instance),
            dataVolumeTemplates=[each.template for each in attached if each.template is not None] or None,
        ),
    )
    _speak_for_the_rest(resolved)
    resolved.judge()
    secrets = [secret for each in attached for secret in each.secrets] + ([guest_data.secret] if guest_data and guest_data.secret else [])
    return Translated((*secrets, *(wired.definitions if wired else ()), machine), resolved.losses())


def _domain(resolved: VirtrigaudInputs, devices: Devices) -> DomainSpec:
    firmware, features = hardware.firmware(resolved)
    memory = hardware.memory(resolved)
    return DomainSpec(
        cpu=hardware.cpu(resolved),
        memory=memory,
        resources=hardware.resources(resolved, memory.guest or 0),
        firmware=firmware,
        features=features,
        devices=devices,
    )


def _metadata(resolved: VirtrigaudInputs, block: str) -> ObjectMeta:
    vm, given = resolved.vm, resolved.vm.metadata
    kept = {key: value for key, value in (given.annotations or {}).items() if key != marks.LAST_APPLIED}
    return ObjectMeta(
        name=resolved.name,
        namespace=given.namespace,
        labels={**(given.labels or {}), **marks.labels(vm, resolved.rendering.product)},
        annotations={**kept, **_origin(resolved, block)},
        ownerReferences=owned_by(vm),
    )


def _template_metadata(resolved: VirtrigaudInputs) -> TemplateMeta:
    return TemplateMeta(labels={**(resolved.vm.metadata.labels or {}), marks.MACHINE: marks.labels(resolved.vm, "")[marks.MACHINE]})


def _origin(resolved: VirtrigaudInputs, block: str) -> dict[str, str]:
    """Return the annotations that name the machine's origin."""
    spec, own, account = resolved.vm.spec, resolved.namespace, resolved.account
    annotations = {
        marks.PROVIDER: marks.reference(spec.providerRef.namespace, spec.providerRef.name, own),
        marks.CLASS: marks.reference(spec.classRef.namespace, spec.classRef.name, own),
    }
    for ref in ("providerRef", "classRef"):
        account.took(ref, "namespace")
        account.took(ref, "name")
    asked = spec.resources
    if asked is not None and asked.cpu is not None:
        annotations[marks.CLASS_CPU] = str(resolved.vmclass.spec.cpu)
    if asked is not None and asked.memoryMiB is not None:
        annotations[marks.CLASS_MEMORY] = str(resolved.vmclass.spec.memory)
    if spec.imageRef is not None:
        annotations[marks.IMAGE] = marks.reference(spec.imageRef.namespace, spec.imageRef.name, own)
    if block:
        annotations[marks.SOURCE] = block
    networks = {
        nic.ref.name: marks.reference(nic.ref.networkRef.namespace, nic.ref.networkRef.name, own)
        for nic in resolved.cards
        if nic.ref.networkRef is not None
    }
    if networks:
        annotations[marks.NETWORKS] = marks.as_json(networks)
    if spec.tags:
        account.took("tags")
        annotations[marks.TAGS] = marks.as_json(spec.tags)
    return annotations


def _run_strategy(resolved: VirtrigaudInputs) -> str:
    """A machine runs unless it says otherwise; KubeVirt has one way to stop, which asks the guest first."""
    asked = resolved.vm.spec.powerState
    if asked == "OffGraceful":
        why = "KubeVirt stops machines in one way: it asks the guest, and cuts power after the grace period"
        resolved.account.lose(("powerState",), asked, why, "the machine is stopped like that")
    resolved.account.took("powerState")
    return "Halted" if asked in ("Off", "OffGraceful") else "Always"


def _grace(resolved: VirtrigaudInputs) -> int:
    """Whole seconds for a clean shutdown."""
    given, path = resolved.vm.spec.lifecycle or VirtualMachineLifecycle(), ("lifecycle", "gracefulShutdownTimeout")
    span = max(0, duration.parse(given.gracefulShutdownTimeout))
    seconds = -(-span // duration.SECOND)
    if span % duration.SECOND:
        why = "KubeVirt counts whole seconds"
        resolved.account.lose(path, given.gracefulShutdownTimeout, why, f"the guest has {seconds} s")
    resolved.account.took(*path)
    return seconds


def _node(resolved: VirtrigaudInputs) -> dict[str, str] | None:
    """A host by its name."""
    placement = resolved.vm.spec.placement
    if placement is None or not placement.host:
        return None
    if not names.is_label_value(placement.host):
        why = "it cannot be the name of a node"
        resolved.account.lose(("placement", "host"), placement.host, why, "the machine runs on any node that fits")
        return None
    resolved.account.took("placement", "host")
    return {HOST: placement.host}


def _speak_for_the_rest(resolved: VirtrigaudInputs) -> None:
    """Note the losses of the provider: its address, and the places where it would have put the machine."""
    provider, account = resolved.provider, resolved.provider_account
    if provider is None or account is None:
        ref = resolved.vm.spec.providerRef
        why = f'Provider "{ref.name}" is not among the objects'
        path: Path = ("providerRef", "name")
        resolved.account.lose(path, ref.name, why, "images and networks are read as for a provider of type qemu")
        return
    for member in _CONNECTION:
        account.took_whole(member)
    if provider.spec.type == _QEMU:
        account.took("endpoint")
    else:
        why = "the machine runs on KubeVirt and not at this hypervisor"
        account.lose(("endpoint",), provider.spec.endpoint, why, "the provider is not asked")
    own, defaults = resolved.vm.spec.placement, provider.spec.defaults
    for member in _DEFAULTS if defaults is not None else ():
        group = ("datastore", "storagePod") if member in ("datastore", "storagePod") else (member,)
        if own is not None and any(getattr(own, each, None) for each in group):
            # The machine's own value counts, and its losses stand with the machine.
            account.took("defaults", member)
