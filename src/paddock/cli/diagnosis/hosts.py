"""Causes that lie with the host: no room, a host that does not fit, hardware that is not there, networks that cannot be had."""

from collections.abc import Iterator

from paddock.cli.diagnosis.links import NODE
from paddock.cli.diagnosis.rule import CauseDepth, Diagnosis, DiagnosisRule, Evidence, RuleView
from paddock.cli.diagnosis.scene import conditions, texts
from paddock.cli.diagnosis.told import EventCause
from paddock.meta import ages

NETWORKS: tuple[EventCause, ...] = (
    EventCause(
        id="network-missing",
        title="The network (NetworkAttachmentDefinition) does not exist.",
        fix="Correct the network's name, or make the NetworkAttachmentDefinition in that namespace.",
        text=r"NetworkAttachmentDefinition (?P<net>\S+) does not exist|NetworkNotFound"
        r"|network-attachment-definitions?\S* \"?(?P<net2>[\w./-]+)\"? not found"
        r"|cannot find a network-attachment-definition \((?P<net3>\S+)\)",
        rank=CauseDepth.SAID,
    ),
    EventCause(
        id="network-vlan",
        title="The VLAN of a network cannot be had on the host's bridge.",
        fix="Name one VLAN from 1 to 4094, and let the host's bridge keep VLANs apart: ip link set BRIDGE type bridge vlan_filtering 1.",
        text=r"is no VLAN: |trunks are not supported|does not keep VLANs apart|the gateway of a VLAN|VLANs inside a bridge",
        cause="The VLAN of a network cannot be had: {message}",
    ),
    EventCause(
        id="network-type",
        title="The network definition is of a type that is not known here.",
        fix="Use type bridge in the definition's spec.config.",
        text=r"networks of type '?(?P<kind_of>[^' ]+)'? are not known|addresses of type .{0,40} are not known",
    ),
    EventCause(
        id="network-malformed",
        title="The network definition cannot be read.",
        fix="Correct spec.config of the NetworkAttachmentDefinition: it is a text that holds JSON.",
        text=r"configuration of the NetworkAttachmentDefinition (?P<net>\S+) is not JSON|NetworkAttachmentDefinition (?P<net2>\S+) "
        r"(has no configuration|cannot be used)|error (unmarshalling|parsing) .{0,60}(CNI|netconf|network)",
    ),
    EventCause(
        id="binding-unknown",
        title="The way a network card is connected (its binding) is not known here.",
        fix="Use masquerade or bridge for the interface.",
        text=r"network binding (?P<binding>\S+) is not known|BindingUnavailable|binding plugin \S+ .{0,30}not (registered|found)",
    ),
    EventCause(
        id="sriov-missing",
        title="The host offers no network card that can be passed through (SR-IOV).",
        fix="Use masquerade or bridge for the interface, or a host with SR-IOV.",
        text=r"SR-IOV needs|free virtual function|Insufficient .{0,60}sriov",
    ),
    EventCause(
        id="port-taken",
        title="A port on the host is taken by another program.",
        fix="Choose another port, or end the program that has it: ss -ltnp.",
        text=r"cannot listen at (?P<port>[^;]+);|address already in use|port is already allocated",
        cause="A port that is wanted on the host is taken by another program: {message}",
    ),
    EventCause(
        id="network-card-failed",
        title="A network card could not be connected on the host.",
        fix="Make the bridge that is named on the host (ip link add BRIDGE type bridge), and let Paddock use it: run it as root.",
        reason=("FailedNetwork", "FailedCreatePodSandBox", "CardFailed"),
        cause="A network card could not be connected: {message}",
    ),
)

HOSTS: tuple[EventCause, ...] = (
    EventCause(
        id="kvm-missing",
        title="The host has no KVM, which the machine has to have.",
        fix="Turn (nested) virtualization on, load kvm_intel or kvm_amd, and let Paddock's user open /dev/kvm.",
        text=r"Insufficient devices\.kubevirt\.io/kvm|Could not access KVM|failed to initialize kvm|/dev/kvm.{0,40}(No such|denied)"
        r"|KVM is not available",
    ),
    EventCause(
        id="architecture-missing",
        title="The host has no QEMU for this processor architecture.",
        fix="Install QEMU for it on the host (Debian: apt install qemu-system-x86); correct spec.architecture if it is set.",
        text=r"no QEMU for this architecture is installed|architecture \S+ is not (supported|available)",
    ),
    EventCause(
        id="no-memory",
        title="The host has not enough free memory for the machine.",
        fix="Stop another machine, or give this one less memory (domain.memory.guest).",
        text=r"it needs \S+ ?\S* of memory, and|Insufficient memory|Cannot allocate memory|cannot set up guest memory",
        cause="The host has not enough free memory for the machine: {message}",
    ),
    EventCause(
        id="no-hugepages",
        title="The host has not enough free huge pages for the machine.",
        fix="Reserve more huge pages on the host, or take domain.memory.hugepages out.",
        text=r"huge pages|Insufficient hugepages",
        cause="The host has not enough free huge pages: {message}",
    ),
    EventCause(
        id="no-cpus",
        title="The host has not enough free CPUs for the machine.",
        fix="Stop another machine, ask for fewer CPUs, or take dedicatedCpuPlacement out if it is set.",
        text=r"Insufficient cpu(?! resources)|it wants \d+ CPUs|no CPUs of its own|CPUs? for (it|itself)|dedicate",
        cause="The host has not enough free CPUs for the machine: {message}",
    ),
    EventCause(
        id="device-missing",
        title="The host has no free device of the name that the machine asks for.",
        fix="Correct the device's name (gpus, hostDevices), or free one on the host.",
        text=r"no free device of this name|VSOCK|hide a guest's memory|real-time priority|several NUMA nodes|Insufficient [\w.-]+/[\w.-]+",
        cause="The host lacks a device that the machine asks for: {message}",
    ),
    EventCause(
        id="volume-elsewhere",
        title="A disk of the machine is on a host, or in a zone, where the machine cannot run.",
        fix="Let the machine run where its disk is (nodeSelector, affinity), or use a storage class that is reachable from everywhere.",
        text=r"volume node affinity conflict",
    ),
    EventCause(
        id="node-selector",
        title="No host has the labels that the machine asks for.",
        fix="Correct nodeSelector or affinity of the machine, or label the host: kubectl label node HOST KEY=VALUE.",
        text=r"node affinity/selector|didn't match .{0,20}node selector|nodes? didn't match node",
        cause="No host has the labels that the machine's nodeSelector or affinity asks for.",
    ),
    EventCause(
        id="host-tainted",
        title="The host keeps machines away that do not tolerate its taint.",
        fix="Add a toleration to the machine, or take the taint off: kubectl taint node HOST KEY-.",
        text=r"untolerated taint \{(?P<taint>[^}]*)\}",
        cause="The host keeps machines away that do not tolerate its taint {taint}.",
    ),
    EventCause(
        id="host-cordoned",
        title="The host takes no new machines: it is cordoned.",
        fix="kubectl uncordon HOST",
        text=r"were unschedulable",
    ),
    EventCause(
        id="affinity",
        title="Other machines on the host keep this one away, or the ones it wants to be near are not there.",
        fix="Correct affinity of the machine, or of the machines that are there.",
        text=r"pod (anti-)?affinity rules|anti-affinity rules|topology spread constraints",
        cause="Rules about which machines may be together keep this one from the host: {message}",
    ),
    EventCause(
        id="priorityclass-missing",
        title="The priority class does not exist.",
        fix="Make the PriorityClass, or change priorityClassName.",
        text=r"no PriorityClass with name (?P<class>\S+) was found",
    ),
    EventCause(
        id="hardware-unknown",
        title="The machine asks for hardware that the installed QEMU does not have.",
        fix="Correct the field that the message names (machine type, processor model, timezone ...).",
        text=r"MachineTypeUnknown|CpuModelUnknown|TimezoneUnknown|OffsetTooLarge|SerialTooLong|WatchdogMissing|ClaimRefused|ContainerPathRefused"
        r"|has no (machine type|processor model) of this name|unsupported machine type",
        cause="The machine asks for something that the host's QEMU cannot do: {message}",
    ),
    EventCause(
        id="not-placed",
        title="No host takes the machine.",
        fix="Ask for less, or for nothing that the hosts lack: kubectl get nodes --show-labels, kubectl describe nodes.",
        type=("PodScheduled",),
        cause="No host takes the machine: {message}",
        rank=CauseDepth.VAGUE,
    ),
)


def _silent(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    for node in view.nodes:
        ready = conditions(node.data).get("Ready") if node.ref.id == NODE else None
        if ready is not None and texts(ready, "status") != "True":
            said, reason = texts(ready, "message"), texts(ready, "reason")
            if (reason in _FIRST) != (rule.id == "host-starting"):
                continue
            cause = f"Host {node.ref.name} is not ready" + (f": {said}" if said else ", or does not answer.")
            since = ages.seconds_of(texts(ready, "lastTransitionTime"))
            yield rule.found(node, cause, fix=_HOST_FIXES.get(reason, ""), seen=Evidence("status.conditions[Ready]", reason, since))


# The reasons of a host whose server has just begun.
_FIRST = ("EngineStarting",)
_HOST_FIXES = {
    "QemuMissing": "Install QEMU (Debian: apt install qemu-system-x86 qemu-utils); it is looked for again by itself.",
    "NetworkUnusable": "Do what the message says; without rights to make networks: paddock up --network user. It is tried again.",
    "EngineFailed": "Mend what the message names (rights, room in --dir); it is tried again, and the server's log says more.",
    "ControllersFailed": "It is started again by itself; if it comes back, report it with the server's log.",
}


def _emulated(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    for saying in view.sayings:
        if saying.type == "SoftwareEmulation" and saying.status == "True" and saying.node.ref.kind == "VirtualMachineInstance":
            cause = "The guest is emulated, without KVM, and slower by far."
            yield rule.found(
                saying.node, cause, rank=CauseDepth.SAID, seen=Evidence(f"{saying.field}.message", saying.message, saying.since)
            )


RULES: tuple[DiagnosisRule, ...] = (
    DiagnosisRule(
        id="host-not-ready",
        title="The host does not answer, or is not ready.",
        fix="See whether the host and Paddock (or its kubelet) run: kubectl describe node HOST.",
        look=_silent,
    ),
    DiagnosisRule(
        id="host-starting",
        title="The server has just begun, and does not look after machines yet.",
        fix="Wait: it takes some seconds.",
        look=_silent,
        mood="waits",
    ),
    DiagnosisRule(
        id="emulated",
        title="The guest runs without KVM, and slower by far.",
        fix="Give the host KVM: turn (nested) virtualization on, and let Paddock's user open /dev/kvm. Then stop and start the machine.",
        look=_emulated,
        mood="hint",
    ),
)
