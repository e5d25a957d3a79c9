"""`kubevirt.io/v1 VirtualMachineInstanceReplicaSet`: several equal instances without disks of their own (docs/spec/kubevirt.md 6)."""

from collections.abc import Iterator
from typing import Annotated

from paddock.kubernetes.meta import selectors
from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.selectors import LabelSelector
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Field, Object
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Cel, Column, Kind, Scale, rule, transition
from paddock.kubevirt.kinds.instance import GROUP, VERSIONS, VirtualMachineInstanceTemplate
from paddock.kubevirt.rules import instance
from paddock.kubevirt.rules.place import HardwareContext, rules_of


class ReplicaSetSpec(Object):
    """The number of instances, and their template."""

    replicas: Annotated[int, Field("How many instances there should be.", ge=0, bits=32)] = 1
    selector: Annotated[LabelSelector, Field("Labels of the instances.", required=True)] = LabelSelector()
    template: Annotated[VirtualMachineInstanceTemplate, Field("What the instances are.", required=True)] = VirtualMachineInstanceTemplate()
    paused: Annotated[bool | None, Field("Whether nothing is created and deleted for now.")] = None


class ReplicaSetStatus(Object):
    """The number of instances."""

    replicas: Annotated[int | None, Field("How many instances there are.", bits=32)] = None
    readyReplicas: Annotated[int | None, Field("How many of them are ready.", bits=32)] = None
    labelSelector: Annotated[str | None, Field("The selector as a text, for autoscalers.")] = None
    conditions: Annotated[list[Condition] | None, Field("ReplicaFailure, ReplicaPaused.", keys=("type",))] = None


class VirtualMachineInstanceReplicaSet(Resource):
    """Several equal instances; one that ends is replaced by a new one."""

    spec: Annotated[ReplicaSetSpec, Field("How many instances, and what they are.", required=True)] = ReplicaSetSpec()
    status: Annotated[ReplicaSetStatus | None, Field("How many instances there are.")] = None


@rule("kubevirt/replica-set-selector")
def selector_matches_template(replicas: VirtualMachineInstanceReplicaSet, settings: AdmissionSettings) -> Iterator[Finding]:
    """The selector is not empty, and it matches the labels of the template."""
    spec, path = replicas.spec, ("spec", "selector")
    labels = spec.template.metadata.labels if spec.template.metadata else None
    yield from selectors.selector_findings(spec.selector, path, "kubevirt/replica-set-selector")
    if selectors.is_empty(spec.selector):
        yield Finding(path=path, message="Invalid value: selector must not be empty", rule="kubevirt/replica-set-selector")
    elif not selectors.matches(spec.selector, labels or {}):
        why, words = "does not match template.metadata.labels", "selector does not match labels."
        yield finding.invalid(path, selectors.text(spec.selector), why, "kubevirt/replica-set-selector", words)


def _place(replicas: VirtualMachineInstanceReplicaSet, settings: AdmissionSettings) -> HardwareContext:
    template = replicas.spec.template
    metadata = template.metadata
    return HardwareContext(
        spec=template.spec,
        path=("spec", "template", "spec"),
        metadata=("spec", "template", "metadata"),
        labels=(metadata.labels if metadata is not None else None) or {},
        annotations=(metadata.annotations if metadata is not None else None) or {},
        settings=settings,
    )


@transition("kubevirt/replica-set-change", Cel("spec.selector", "self == oldSelf", "field is immutable"))
def selector_stays(
    old: VirtualMachineInstanceReplicaSet, new: VirtualMachineInstanceReplicaSet, settings: AdmissionSettings
) -> Iterator[Finding]:
    """The selector does not change."""
    if old.spec.selector != new.spec.selector:
        message = "Invalid value: field is immutable"
        yield Finding(path=("spec", "selector"), message=message, rule="kubevirt/replica-set-change")


KINDS = (
    Kind(
        group=GROUP,
        kind="VirtualMachineInstanceReplicaSet",
        plural="virtualmachineinstancereplicasets",
        singular="virtualmachineinstancereplicaset",
        short_names=("vmirs", "vmirss"),
        categories=("all",),
        cls=VirtualMachineInstanceReplicaSet,
        dialect="kubevirt",
        versions=VERSIONS,
        columns=(
            Column("Desired", ".spec.replicas", "integer", text="How many instances there should be."),
            Column("Current", ".status.replicas", "integer", text="How many instances there are."),
            Column("Ready", ".status.readyReplicas", "integer", text="How many of them are ready."),
            AGE,
        ),
        scale=Scale(),
        rules=(selector_matches_template, *rules_of(instance.CHECKS, _place, "spec.template.spec")),
        transitions=(selector_stays,),
    ),
)
