"""Causes that Stakater's, Vitistack's and Kubermatic's objects tell in words of their own (their specs' reasons)."""

from collections.abc import Iterator

from paddock.cli.diagnosis.links import NETWORK, STAKATER, VITISTACK
from paddock.cli.diagnosis.rule import CauseDepth, Diagnosis, DiagnosisRule, Evidence, RuleView
from paddock.cli.diagnosis.sayings import Statement
from paddock.cli.diagnosis.scene import Data, ObjectPlace, at, entries, texts
from paddock.cli.diagnosis.told import EventCause
from paddock.cli.diagnosis.verdict import VIRTRIGAUD
from paddock.cli.diagnosis.walk import WalkNode
from paddock.meta import ages
from paddock.plan.changes.references import ATTACHMENT, DATA_SOURCE, MACHINE

_FRONTS = (STAKATER, VITISTACK)
FRONTS: tuple[EventCause, ...] = (
    EventCause(
        id="name-conflict",
        title="An object of a name that the machine needs exists already and belongs to somebody else.",
        fix="Rename the machine, or delete the other object.",
        text=r"NameConflict|it exists and belongs to |: it exists already",
        cause="An object that the machine needs exists already and is not its own: {message}",
    ),
    EventCause(
        id="reconcile-paused",
        title="Nothing is done for the object: somebody paused it by an annotation.",
        fix="Take the annotation off: kubectl annotate KIND NAME crossplane.io/paused-",
        reason=("ReconcilePaused",),
        how="kubectl annotate {kind}.infrastructure.stakater.com {name} -n {namespace} crossplane.io/paused-",
        mood="notice",
    ),
    EventCause(
        id="claim-lost",
        title="The volume of a claim is gone.",
        fix="The data cannot be read any more: make the machine anew, or restore it from a snapshot.",
        text=r"RootDiskLost|DiskLost|was deleted and is not made again|because it would be blank",
        cause="A disk of the machine was deleted, and is not made anew empty: {message}",
        how="Make the machine anew, or restore the disk from a snapshot under its name.",
    ),
    EventCause(
        id="clone-not-permitted",
        title="Disks of the other namespace may not be copied by whoever asks for it.",
        fix="Bind a role with create on datavolumes/source (cdi.kubevirt.io) in the source namespace to the one who is named.",
        reason=("CloneNotAuthorized",),
    ),
    EventCause(
        id="datasource-missing",
        title="The DataSource does not exist.",
        fix="Correct the DataSource's name and namespace, or make it.",
        reason=("DataSourceNotFound",),
        cause="The DataSource does not exist: {message}",
    ),
    EventCause(
        id="datasource-secret-elsewhere",
        title="The DataSource needs a Secret, and is in another namespace than the machine.",
        fix="Make a DataSource with its Secret in the machine's own namespace.",
        reason=("CrossNamespaceSecret",),
    ),
    EventCause(
        id="datasource-broken",
        title="The DataSource leads to nothing that can be used.",
        fix="Correct spec.source of the DataSource.",
        reason=("ClientCertificateUnsupported", "InvalidCertificate"),
        cause="The DataSource cannot be used: {message}",
    ),
    EventCause(
        id="datasource-not-ready",
        title="The DataSource is not ready yet.",
        fix="Wait until its own import is done; ask about the DataSource if it takes long.",
        reason=("DataSourceNotReady",),
        cause="The DataSource is not ready yet: {message}",
        mood="waits",
    ),
    EventCause(
        id="template-missing",
        title="The machine's template does not exist.",
        fix="Set spec.template to small, medium or large, or to a MachineTemplate that exists.",
        reason=("TemplateNotFound",),
        cause="The machine's template does not exist: {message}",
        how="Correct spec.template of the machine.",
    ),
    EventCause(
        id="networkconfiguration-missing",
        title="The NetworkConfiguration does not exist.",
        fix="Make it in the machine's namespace, or correct spec.networks[].networkName.",
        reason=("NetworkConfigurationNotFound",),
        cause="A NetworkConfiguration does not exist: {message}",
    ),
    EventCause(
        id="boot-source-missing",
        title="The machine has nothing to boot from.",
        fix="Name an image: annotation vitistack.io/root-image, or spec.os.imageID.",
        reason=("NoBootSource",),
        mood="hint",
    ),
    EventCause(
        id="binding-replaced",
        title="A network is connected in another way than was asked for, because this cluster does not know the binding.",
        fix="Register the binding plug-in in the KubeVirt object, or ask for masquerade.",
        reason=("BindingFallback",),
        mood="hint",
    ),
    EventCause(
        id="deletion-stalled",
        title="The deletion does not go on: something that belongs to the machine remains.",
        fix="Ask about what the message names: paddock why KIND/NAME; often a machine still runs or a finalizer holds it.",
        reason=("DeletionStalled",),
        cause="The deletion does not go on: {message}",
    ),
    EventCause(
        id="api-missing",
        title="KubeVirt is not installed, or does not answer.",
        fix="See that KubeVirt and CDI are installed and run: kubectl get kubevirt,cdi -A.",
        reason=("KubeVirtApiError",),
        text=r"not (installed|served)|no matches for kind|could not find the requested resource|absent|connection refused|answered 5\d\d",
        cause="KubeVirt is not installed, or does not answer: {message}",
    ),
    EventCause(
        id="front-refused",
        title="What was made of the object was refused.",
        fix="Correct the field that the message names.",
        of=_FRONTS,
        reason=("ReconcileError", "KubeVirtApiError", "VMFailed"),
        text=r"^(?!.*is not made yet)",
        cause="What was made of {about} was refused: {message}",
        rank=CauseDepth.SAID,
    ),
)


def _secret_elsewhere(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """A Secret of a DataSource is looked for where the disk is, and stays where it is."""
    for node in view.nodes:
        if node.ref.id != DATA_SOURCE or node.above is None or node.above.ref.namespace == node.ref.namespace:
            continue
        for member in at(node.data, "spec", "source") or ():
            secret = texts(node.data, "spec", "source", member, "secretRef")
            if secret and any(f"Secret {node.above.ref.namespace}/{secret} " in each.message for each in view.sayings):
                cause = (
                    f"DataSource {node.ref.name} needs Secret {secret}, and is in another namespace ({node.ref.namespace}) than the disk."
                )
                yield rule.found(node, cause, seen=Evidence(f"spec.source.{member}.secretRef", secret))


def _undefined(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """A network that machines use, without the definition that they are attached by."""
    for node in view.nodes:
        above = node.above
        if node.ref.id != ATTACHMENT or above is None or above.ref.id != NETWORK or not view.scene.is_missing(node.ref):
            continue
        if used := at(above.data, "status", "connectedMachines"):
            cause = f"The definition (NetworkAttachmentDefinition {node.ref.name}) that machines are attached by is not there."
            yield rule.found(above, cause, rank=CauseDepth.SAID, seen=Evidence("status.connectedMachines", ", ".join(map(str, used))))


def _taken(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """Two objects in front of one machine: both have its name, and it belongs to one of them."""
    for node in view.nodes:
        above = node.above
        if node.ref.id != MACHINE or node.data is None or above is None or above.ref.id not in _FRONTS:
            continue
        owner = next((_owner(node, each) for each in entries(node.data, "metadata", "ownerReferences") if each.get("controller")), None)
        if owner == above.ref or (owner is None and not any(_says_conflict(each, above) for each in view.sayings)):
            continue
        whose = f"belongs to {owner}" if owner is not None else "was made by somebody else"
        cause = f"{above.ref} needs a VirtualMachine {node.ref.name}, which exists already and {whose}."
        other = owner or node.ref
        place = f"{KINDS.get(other.id, other.kind.lower())}.{other.group} {other.name} -n {other.namespace}"
        fix = f"Give one of them another metadata.name; or delete the other, if nobody needs it: kubectl delete {place}"
        yield rule.found(above, cause, fix=fix, seen=Evidence("metadata.name", above.ref.name))


def _owner(node: WalkNode, reference: Data) -> ObjectPlace:
    group = texts(reference, "apiVersion").rpartition("/")[0]
    return ObjectPlace(group, texts(reference, "kind"), node.ref.namespace, texts(reference, "name"))


def _says_conflict(saying: Statement, front: WalkNode) -> bool:
    return saying.node is front and ("NameConflict" in saying.reason or "it exists" in saying.message)


def _stored(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """VirtRigaud's objects, which this server keeps without a controller for them."""
    node = view.start
    if node.data is not None and node.ref.group == VIRTRIGAUD and not at(node.data, "status"):
        cause = f"Paddock stores {node.ref} and nothing carries it out yet."
        made = ages.seconds_of(texts(node.data, "metadata", "creationTimestamp"))
        yield rule.found(node, cause, seen=Evidence("status", "(empty)", made))


# What kubectl calls the kinds that may own a machine.
KINDS = {STAKATER: "virtualmachines", VITISTACK: "machines", MACHINE: "virtualmachines"}
RULES: tuple[DiagnosisRule, ...] = (
    DiagnosisRule(
        id="name-conflict",
        title="An object of a name that the machine needs exists already and belongs to somebody else.",
        fix="Rename the machine, or delete the other object.",
        look=_taken,
    ),
    DiagnosisRule(
        id="kind-not-carried-out",
        title="Paddock stores objects of this kind (VirtRigaud's) and nothing carries them out yet.",
        fix="Write it as a machine that Paddock runs (paddock convert --to kubevirt FILE), or run VirtRigaud's own controllers.",
        look=_stored,
    ),
    DiagnosisRule(
        id="network-undefined",
        title="The definition that machines are attached to a network by is not there.",
        fix="See that Multus's kinds are installed and Vitistack's controller runs: it makes the NetworkAttachmentDefinition.",
        look=_undefined,
    ),
    DiagnosisRule(
        id="datasource-secret-elsewhere",
        title="The DataSource needs a Secret, and is in another namespace than the machine.",
        fix="Make a DataSource with its Secret in the machine's own namespace.",
        look=_secret_elsewhere,
    ),
)
