"""Causes that lie with a machine and its guest: what ended it, what holds it, what failed inside."""

from collections.abc import Iterator

from paddock.cli.diagnosis import verdict
from paddock.cli.diagnosis.rule import CauseDepth, Diagnosis, DiagnosisRule, Evidence, RuleView
from paddock.cli.diagnosis.scene import at, conditions, holds, texts
from paddock.cli.diagnosis.told import EventCause
from paddock.meta import ages
from paddock.plan.changes.references import INSTANCE, MACHINE

_RECENT_SECONDS = 600.0
_CRASHED = r"VirtualMachineInstance crashed\.|the machine has ended: (?!killed)"
GUESTS: tuple[EventCause, ...] = (
    EventCause(
        id="guest-panicked",
        title="The guest's kernel panicked.",
        fix="Look at the guest's last words (virtctl console NAME), and at its kernel, its initramfs and the disk it boots from.",
        text=r"(crashed\. |ended: )panicked|panicked:|GuestPanicked|\bpanicked\b",
        cause="The guest's kernel panicked.",
        how="Look at the guest's last words (virtctl console {name}), and at its kernel, its initramfs and the disk it boots from.",
    ),
    EventCause(
        id="guest-watchdog",
        title="The guest hung: it did not feed its watchdog.",
        fix="Look at what the guest did (virtctl console NAME, its own logs); a guest with too little memory or CPU hangs, too.",
        text=r"(crashed\. |ended: )watchdog",
    ),
    EventCause(
        id="qemu-start-refused",
        title="QEMU could not start with what the machine asks for.",
        fix="Change the field of the machine that QEMU complains about: its last lines stand behind seen; then virtctl start NAME.",
        text=r"(crashed\. |ended: )never-started(: (?P<log>.+))?",
        cause="QEMU could not be started: {log}",
    ),
    EventCause(
        id="qemu-killed",
        title="QEMU was killed from outside.",
        fix="See who did it: dmesg tells of the kernel's out-of-memory killer; give the host more memory, or the machines less.",
        text=r"(crashed\. |ended: )crashed: .{0,60}(signal 9\b|SIGKILL)|OOMKilled",
        cause="QEMU was killed from outside; often the host had no memory left.",
    ),
    EventCause(
        id="processor-error",
        title="The virtual processor got into a state that the host cannot handle.",
        fix="Give the machine another cpu.model, or turn nested virtualization off in the guest.",
        text=r"(crashed\. |ended: )internal-error",
    ),
    EventCause(
        id="host-rebooted",
        title="The host went down while the machine ran.",
        fix="Start the machine: virtctl start NAME. With runStrategy Always it is started by itself.",
        text=r"(crashed\. |ended: )host-reboot",
    ),
    EventCause(
        id="qemu-crashed",
        title="QEMU ended without being told to.",
        fix="Start the machine again: virtctl start NAME. If it comes back, report it with QEMU's last lines, which stand behind seen.",
        text=rf"{_CRASHED}",
        cause="QEMU ended without being told to.",
    ),
    EventCause(
        id="guest-killed",
        title="The machine was ended by force: it did not stop in time, or somebody on the host ended it.",
        fix="Start it again: virtctl start NAME. If nobody wanted it to end, see what runs on the host.",
        text=r"the machine has ended: killed",
        how="Start it again: virtctl start {name} -n {namespace}. If nobody wanted it to end, see what runs on the host.",
        rank=CauseDepth.VAGUE,
    ),
    EventCause(
        id="qemu-silent",
        title="QEMU does not answer; the guest may go on.",
        fix="Look at the host's load and disks; if it does not come back: virtctl stop NAME --force --grace-period=0.",
        type=("NeedsAttention",),
        text=r"QEMU does not answer",
        how="Look at the host's load and disks; if it stays so: virtctl stop {name} --force --grace-period=0, then virtctl start {name}.",
        mood="notice",
    ),
    EventCause(
        id="machine-impaired",
        title="The machine has lost a part of itself, and its guest goes on without.",
        fix="Stop and start the machine: virtctl stop NAME, then virtctl start NAME.",
        type=("NeedsAttention",),
        cause="The machine runs, and not as it should: {message}",
        mood="notice",
    ),
    EventCause(
        id="guest-disk-error",
        title="A disk of the machine could not be written, so the guest was paused.",
        fix="Make room on the host's disk (or mend it); the machine goes on by itself, or by virtctl unpause vm NAME.",
        type=("Paused",),
        reason=("PausedIOError",),
        cause="A disk of the machine could not be written, so its guest was paused.",
        how="Make room on the host's disk (or mend it); then: virtctl unpause vm {name} -n {namespace}",
        of=(INSTANCE,),
    ),
    EventCause(
        id="paused",
        title="Somebody paused the machine.",
        fix="virtctl unpause vm NAME",
        type=("Paused",),
        how="virtctl unpause vm {name} -n {namespace}",
        of=(INSTANCE,),
    ),
    EventCause(
        id="cloud-init-failed",
        title="cloud-init failed inside the guest.",
        fix="Correct the user data (cloudInitNoCloud) and make the machine anew; in the guest: cloud-init status --long.",
        type=("CloudInitFinished",),
        text=r"ModuleFailed",
        cause="cloud-init failed inside the guest: {message}",
        mood="notice",
    ),
    EventCause(
        id="credentials-failed",
        title="Keys or passwords could not be brought into the guest.",
        fix="See that the guest runs qemu-guest-agent, and that the user and the Secret exist.",
        type=("AccessCredentialsSynchronized",),
        cause="Keys or passwords could not be brought into the guest: {message}",
        mood="notice",
    ),
    EventCause(
        id="readiness-probe",
        title="The guest runs, and does not answer its readiness probe.",
        fix="See whether the service runs in the guest, and whether the probe's port and path are right (readinessProbe).",
        type=("Ready",),
        reason=("ContainersNotReady",),
        text=r"readiness probe|containers with unready status",
        of=(INSTANCE,),
        cause="The guest runs, and does not answer its readiness probe.",
    ),
    EventCause(
        id="liveness-probe",
        title="The guest did not answer its liveness probe, so it was ended.",
        fix="See why the guest stopped answering, and whether the probe gives it enough time (initialDelaySeconds, failureThreshold).",
        reason=("Unhealthy",),
        text=r"Liveness probe failed",
    ),
    EventCause(
        id="restart-required",
        title="Something was changed that takes hold only when the machine is started again.",
        fix="virtctl restart NAME",
        type=("RestartRequired",),
        cause="A change waits for a restart of the machine: {message}",
        how="virtctl restart {name} -n {namespace}",
        of=(MACHINE,),
        mood="notice",
    ),
    EventCause(
        id="instance-foreign",
        title="A running machine (VirtualMachineInstance) of this name exists that belongs to somebody else.",
        fix="Delete that VirtualMachineInstance, or rename the machine.",
        text=r"a VirtualMachineInstance \S+ exists that does not belong to it",
        how="Delete it (kubectl delete vmi {name} -n {namespace}), or rename the machine.",
    ),
    EventCause(
        id="instancetype-missing",
        title="The instancetype does not exist.",
        fix="Name one that exists (kubectl get vmclusterinstancetypes,vminstancetypes), or make it.",
        text=r"VirtualMachine(Cluster)?Instancetypes?\b.{0,80}(not found|does not exist|is not there)|find instancetype",
    ),
    EventCause(
        id="preference-missing",
        title="The preference does not exist.",
        fix="Name one that exists (kubectl get vmclusterpreferences,vmpreferences), or make it.",
        text=r"VirtualMachine(Cluster)?Preferences?\b.{0,80}(not found|does not exist|is not there)|find preference",
    ),
    EventCause(
        id="instancetype-conflict",
        title="The machine and its instancetype or preference contradict each other.",
        cause="The machine and its instancetype or preference contradict each other: {message}",
        fix="Take the field that is named out of the machine's template, or the instancetype out of the machine.",
        text=r"conflicts? with selected instance|VM field\(s\) .{0,120}conflict|insufficient .{0,60}(instancetype|preference)"
        r"|preference requirements",
    ),
    EventCause(
        id="seed-invalid",
        title="A disk that is made from a Secret, a ConfigMap or user data cannot be made.",
        fix="Correct what the message names: the content of the volume, or the name of what it is read from.",
        reason=("FailedMount", "FailedAttachVolume", "VolumeFailed"),
        text=r"^(?!.*not found)",
        cause="A disk of the machine cannot be made: {message}",
    ),
    EventCause(
        id="secret-missing",
        title="A Secret does not exist.",
        fix="Make the Secret, or correct the name.",
        text=r"secrets? \"?(?P<secret>[\w./-]+)\"? (was )?not found|SecretNotFound|the pull secret (?P<pull>\S+) of|SSHKeySecretNotFound",
        cause="A Secret does not exist: {message}",
    ),
    EventCause(
        id="configmap-missing",
        title="A ConfigMap does not exist.",
        fix="Make the ConfigMap, or correct the name.",
        text=r"configmaps? \"?(?P<map>[\w./-]+)\"? (was )?not found|ConfigMapNotFound",
        cause="A ConfigMap does not exist: {message}",
    ),
    EventCause(
        id="serviceaccount-missing",
        title="A ServiceAccount does not exist.",
        fix="Make the ServiceAccount, or correct the name.",
        text=r"serviceaccounts? \"?(?P<account>[\w./-]+)\"? (was )?not found",
        cause="A ServiceAccount does not exist: {message}",
    ),
)


def _again_and_again(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """A machine that runs now, and has crashed a moment ago, or several times."""
    for saying in view.sayings:
        node = saying.node
        if node.ref.id != INSTANCE or saying.kind != "event" or saying.reason != "Stopped" or saying.since is None:
            continue
        ago = view.scene.now - saying.since
        if verdict.of(node.ref, node.data or {}).state == "good" and (
            ago < _RECENT_SECONDS / 5 or (saying.count > 1 and ago < _RECENT_SECONDS)
        ):
            times = f"{saying.count} times, last " if saying.count > 1 else ""
            why = "its guest's kernel panicked" if "panicked" in saying.message else "it crashed"
            cause = f"It runs again, but {why} ({times}{ages.since(saying.since, view.scene.now)} ago)."
            yield rule.found(node, cause, rank=CauseDepth.TOLD, seen=Evidence(saying.field, saying.message, saying.since))


def _crash_loop(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    for node in view.nodes:
        if node.ref.id == MACHINE and texts(node.data, "status", "printableStatus") == "CrashLoopBackOff":
            count = at(node.data, "status", "startFailure", "consecutiveFailCount") or 0
            later = texts(node.data, "status", "startFailure", "retryAfterTimestamp")
            cause = f"The machine could not be started {count} times in a row; the next attempt is at {later}."
            yield rule.found(node, cause, rank=CauseDepth.VAGUE, seen=Evidence("status.startFailure", f"{count} failed starts"))


def _stopping(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    for node in view.nodes:
        if node.ref.id != INSTANCE or not texts(node.data, "metadata", "deletionTimestamp"):
            continue
        if texts(node.data, "status", "phase") in ("Succeeded", "Failed"):
            continue
        grace = at(node.data, "metadata", "deletionGracePeriodSeconds") or at(node.data, "spec", "terminationGracePeriodSeconds")
        began = ages.seconds_of(texts(node.data, "metadata", "deletionTimestamp"))
        cause = f"The guest was asked to shut down, and has not yet{f' (it has {grace} s)' if grace else ''}."
        fix = f"Wait, or end it with force: virtctl stop {node.ref.name} -n {node.ref.namespace} --force --grace-period=0"
        yield rule.found(node, cause, fix=fix, rank=CauseDepth.SAID, seen=Evidence("metadata.deletionTimestamp", "", began))


def _starting(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    for node in view.nodes:
        if node.ref.id == INSTANCE and texts(node.data, "status", "phase") in ("Scheduling", "Scheduled") and not _refused(node.data):
            ready = conditions(node.data).get("Ready")
            since = ages.seconds_of(texts(ready, "lastTransitionTime"))
            phase = texts(node.data, "status", "phase")
            yield rule.found(node, rank=CauseDepth.VAGUE, seen=Evidence("status.phase", phase, since))


def _unasked(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """A guest that nothing was heard of: that it runs is all that is known."""
    for node in view.nodes:
        if node.ref.id != INSTANCE or texts(node.data, "status", "phase") != "Running" or "AgentConnected" in conditions(node.data):
            continue
        if not (at(node.data, "spec", "readinessProbe") or at(node.data, "spec", "livenessProbe")):
            yield rule.found(node, rank=CauseDepth.SAID, seen=Evidence("status.conditions"))


def _refused(data: object) -> bool:
    return any(holds(data, each, "False") for each in ("Synchronized", "PodScheduled", "DataVolumesReady"))


RULES: tuple[DiagnosisRule, ...] = (
    DiagnosisRule(
        id="crashed-lately",
        title="The machine runs again, and has crashed a moment ago or several times.",
        fix="Look at the guest's own logs of that time: virtctl console NAME. A guest that panics does so again.",
        look=_again_and_again,
        mood="notice",
    ),
    DiagnosisRule(
        id="crash-loop",
        title="The machine could not be started several times in a row.",
        fix="See why it did not start (kubectl describe vmi NAME); virtctl start NAME tries again at once.",
        look=_crash_loop,
    ),
    DiagnosisRule(
        id="guest-not-asked",
        title="Its guest was not asked: it has no agent and no probe.",
        fix="Install qemu-guest-agent in the guest, or give the machine a readinessProbe; a look at the guest: virtctl console NAME.",
        look=_unasked,
        mood="hint",
    ),
    DiagnosisRule(
        id="guest-shutting-down",
        title="The guest was asked to shut down, and has not yet.",
        fix="Wait, or end it with force: virtctl stop NAME --force --grace-period=0",
        look=_stopping,
        mood="waits",
    ),
    DiagnosisRule(
        id="starting",
        title="The machine is being started.",
        fix="Wait: the host starts a few machines at a time.",
        look=_starting,
        mood="waits",
    ),
)
