"""VirtRigaud's VMPlacementPolicy (docs/spec/virtrigaud.md section 1.10)."""

from typing import Annotated

from paddock.contract.specs import LocalObjectReference
from paddock.dialects.virtrigaud.kinds.shared import GROUP, VERSIONS, Conditions, ObservedGeneration
from paddock.dialects.virtrigaud.rules import vmplacementpolicy as rules
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.selectors import LabelSelector
from paddock.kubernetes.schema.field import Field, Object, Quantity, Time
from paddock.kubernetes.schema.kind import AGE, Column, Kind

Enabled = Annotated[bool, Field("Whether the rule counts.", required=True)]
Scope = Annotated[str | None, Field("strict: it must hold; preferred, which is the default: it should hold.", enum=("strict", "preferred"))]
Utilization = Annotated[int | None, Field("Most use of a host, in percent.", ge=0, le=100)]


class PolicyToleration(Object):
    """A taint of hosts that is tolerated."""

    key: Annotated[str | None, Field("Key of the taint.", max_length=253)] = None
    operator: Annotated[str, Field("How the value is compared.", enum=("Exists", "Equal"))] = "Equal"
    value: Annotated[str | None, Field("Value of the taint.", max_length=253)] = None
    effect: Annotated[str | None, Field("Effect of the taint.", enum=("NoSchedule", "PreferNoSchedule", "NoExecute"))] = None
    tolerationSeconds: Annotated[int | None, Field("How long it is tolerated.", ge=0)] = None


class PlacementConstraints(Object):
    """Places that are allowed and places that are not."""

    clusters: Annotated[list[str] | None, Field("Clusters to choose from.", max_items=50)] = None
    datastores: Annotated[list[str] | None, Field("Datastores to choose from.", max_items=100)] = None
    hosts: Annotated[list[str] | None, Field("Hosts to choose from.", max_items=200)] = None
    folders: Annotated[list[str] | None, Field("Folders to choose from.", max_items=50)] = None
    resourcePools: Annotated[list[str] | None, Field("Resource pools to choose from.", max_items=100)] = None
    networks: Annotated[list[str] | None, Field("Networks to choose from.", max_items=50)] = None
    zones: Annotated[list[str] | None, Field("Zones to choose from.", max_items=20)] = None
    regions: Annotated[list[str] | None, Field("Regions to choose from.", max_items=20)] = None
    nodeSelector: Annotated[dict[str, str] | None, Field("Labels a host has to have.", max_items=20)] = None
    tolerations: Annotated[list[PolicyToleration] | None, Field("Taints that are tolerated.", max_items=20)] = None
    excludedClusters: Annotated[list[str] | None, Field("Clusters that are out of the question.", max_items=50)] = None
    excludedHosts: Annotated[list[str] | None, Field("Hosts that are out of the question.", max_items=200)] = None
    excludedDatastores: Annotated[list[str] | None, Field("Datastores that are out of the question.", max_items=100)] = None


class SelectorRequirement(Object):
    """A condition on a label of machines."""

    key: Annotated[str, Field("The label.", required=True, max_length=253)] = ""
    operator: Annotated[str, Field("How it is compared.", required=True, enum=("In", "NotIn", "Exists", "DoesNotExist"))] = ""
    values: Annotated[list[str] | None, Field("The values, for In and NotIn.", max_items=50)] = None


class AffinityTerm(Object):
    """Machines to be together with, or apart from."""

    labelSelector: Annotated[LabelSelector | None, Field("Labels of the machines.")] = None
    namespaces: Annotated[list[str] | None, Field("Namespaces they are in.", max_items=20)] = None
    namespaceSelector: Annotated[LabelSelector | None, Field("Labels of the namespaces they are in.")] = None
    topologyKey: Annotated[str, Field("What counts as one place.", required=True, max_length=253)] = ""
    matchExpressions: Annotated[list[SelectorRequirement] | None, Field("Conditions on labels.", max_items=20)] = None


class WeightedAffinityTerm(Object):
    """A wish with its weight."""

    weight: Annotated[int, Field("Weight of the rule.", required=True, ge=1, le=100)] = 0
    vmAffinityTerm: Annotated[AffinityTerm, Field("The preferred rule.", required=True)] = AffinityTerm()


class VMAffinity(Object):
    """Rules between machines."""

    requiredDuringScheduling: Annotated[list[AffinityTerm] | None, Field("What must hold.", max_items=20)] = None
    preferredDuringScheduling: Annotated[list[WeightedAffinityTerm] | None, Field("What should hold.", max_items=20)] = None


class HostAffinity(Object):
    """Hosts that are preferred."""

    enabled: Enabled = False
    preferredHosts: Annotated[list[str] | None, Field("The hosts.", max_items=50)] = None
    scope: Scope = None


class ClusterAffinity(Object):
    """Clusters that are preferred."""

    enabled: Enabled = False
    preferredClusters: Annotated[list[str] | None, Field("The clusters.", max_items=20)] = None
    scope: Scope = None


class DatastoreAffinity(Object):
    """Datastores that are preferred."""

    enabled: Enabled = False
    preferredDatastores: Annotated[list[str] | None, Field("The datastores.", max_items=50)] = None
    scope: Scope = None


class ZoneAffinity(Object):
    """Zones that are preferred."""

    enabled: Enabled = False
    preferredZones: Annotated[list[str] | None, Field("The zones.", max_items=10)] = None
    scope: Scope = None


class ApplicationRule(Object):
    """Machines of one application together, or apart."""

    enabled: Enabled = False
    applicationLabel: Annotated[str, Field("Label that names the application.")] = "app"
    scope: Scope = None


class AffinityRules(Object):
    """The machines and places that belong together."""

    vmAffinity: Annotated[VMAffinity | None, Field("Rules between machines.")] = None
    hostAffinity: Annotated[HostAffinity | None, Field("Hosts.")] = None
    clusterAffinity: Annotated[ClusterAffinity | None, Field("Clusters.")] = None
    datastoreAffinity: Annotated[DatastoreAffinity | None, Field("Datastores.")] = None
    zoneAffinity: Annotated[ZoneAffinity | None, Field("Zones.")] = None
    applicationAffinity: Annotated[ApplicationRule | None, Field("Machines of one application.")] = None


class HostAntiAffinity(Object):
    """Machines apart from each other, by host."""

    enabled: Enabled = False
    maxVMsPerHost: Annotated[int | None, Field("Most machines on one host.", ge=1, le=1000)] = None
    scope: Scope = None


class ClusterAntiAffinity(Object):
    """Machines apart from each other, by cluster."""

    enabled: Enabled = False
    maxVMsPerCluster: Annotated[int | None, Field("Most machines in one cluster.", ge=1, le=10000)] = None
    scope: Scope = None


class DatastoreAntiAffinity(Object):
    """Machines apart from each other, by datastore."""

    enabled: Enabled = False
    maxVMsPerDatastore: Annotated[int | None, Field("Most machines on one datastore.", ge=1, le=10000)] = None
    scope: Scope = None


class ZoneAntiAffinity(Object):
    """Machines apart from each other, by zone."""

    enabled: Enabled = False
    maxVMsPerZone: Annotated[int | None, Field("Most machines in one zone.", ge=1, le=10000)] = None
    scope: Scope = None


class AntiAffinityRules(Object):
    """The machines that belong apart."""

    vmAntiAffinity: Annotated[VMAffinity | None, Field("Rules between machines.")] = None
    hostAntiAffinity: Annotated[HostAntiAffinity | None, Field("By host.")] = None
    clusterAntiAffinity: Annotated[ClusterAntiAffinity | None, Field("By cluster.")] = None
    datastoreAntiAffinity: Annotated[DatastoreAntiAffinity | None, Field("By datastore.")] = None
    zoneAntiAffinity: Annotated[ZoneAntiAffinity | None, Field("By zone.")] = None
    applicationAntiAffinity: Annotated[ApplicationRule | None, Field("Machines of one application.")] = None


class ResourceConstraints(Object):
    """The resources that a host must have left."""

    minCPUPerHost: Annotated[int | None, Field("Free CPUs.", ge=1, bits=32)] = None
    minMemoryPerHost: Annotated[Quantity | None, Field("Free memory.")] = None
    minDiskSpacePerHost: Annotated[Quantity | None, Field("Free space on disk.")] = None
    maxCPUUtilization: Utilization = None
    maxMemoryUtilization: Utilization = None
    maxDiskUtilization: Utilization = None
    requiredFeatures: Annotated[list[str] | None, Field("Features a host has to have.", max_items=20)] = None
    preferredFeatures: Annotated[list[str] | None, Field("Features a host should have.", max_items=20)] = None


class SecurityConstraints(Object):
    """The security features that a host must offer."""

    requireSecureBoot: Annotated[bool | None, Field("Secure Boot.")] = None
    requireTPM: Annotated[bool | None, Field("A TPM.")] = None
    requireEncryptedStorage: Annotated[bool | None, Field("Encrypted storage.")] = None
    requireNUMATopology: Annotated[bool | None, Field("A NUMA topology.")] = None
    allowedSecurityGroups: Annotated[list[str] | None, Field("Security groups to choose from.", max_items=20)] = None
    deniedSecurityGroups: Annotated[list[str] | None, Field("Security groups that are out of the question.", max_items=20)] = None
    isolationLevel: Annotated[str | None, Field("Isolation.", enum=("none", "basic", "strict", "maximum"))] = None
    trustLevel: Annotated[str | None, Field("Trust.", enum=("untrusted", "basic", "trusted", "highly-trusted"))] = None


class VMPlacementPolicySpec(Object):
    """The permitted and the preferred places of machines."""

    hard: Annotated[PlacementConstraints | None, Field("What must hold.")] = None
    soft: Annotated[PlacementConstraints | None, Field("What should hold.")] = None
    affinity: Annotated[AffinityRules | None, Field("What belongs together.")] = None
    antiAffinity: Annotated[AntiAffinityRules | None, Field("What belongs apart.")] = None
    resourceConstraints: Annotated[ResourceConstraints | None, Field("What a host has to have left.")] = None
    securityConstraints: Annotated[SecurityConstraints | None, Field("What a host has to offer.")] = None
    priority: Annotated[int | None, Field("Which of two policies that contradict each other counts.", ge=0, le=1000)] = None
    weight: Annotated[int | None, Field("Weight of what should hold.", ge=1, le=100)] = None


class PolicyValidation(Object):
    """The ability of a provider to keep the policy."""

    valid: Annotated[bool, Field("Whether it can.", required=True)] = False
    message: Annotated[str | None, Field("Why, or why not.")] = None
    errors: Annotated[list[str] | None, Field("What is wrong.", max_items=20)] = None
    warnings: Annotated[list[str] | None, Field("What is done in another way.", max_items=20)] = None
    supportedFeatures: Annotated[list[str] | None, Field("What it can do.", max_items=50)] = None
    unsupportedFeatures: Annotated[list[str] | None, Field("What it cannot do.", max_items=50)] = None
    lastValidated: Annotated[Time | None, Field("When it was asked.")] = None


class PlacementStats(Object):
    """The usage of the policy."""

    totalPlacements: Annotated[int | None, Field("Placements in all.", bits=32)] = None
    successfulPlacements: Annotated[int | None, Field("Placements that found a place.", bits=32)] = None
    failedPlacements: Annotated[int | None, Field("Placements that found none.", bits=32)] = None
    averagePlacementTime: Annotated[str | None, Field("Time a placement takes.", format="duration")] = None
    constraintViolations: Annotated[int | None, Field("Constraints that were not held.", bits=32)] = None
    lastPlacementTime: Annotated[Time | None, Field("When it was last used.")] = None
    placementDistribution: Annotated[dict[str, Annotated[int, Field(bits=32)]] | None, Field("Machines at each place.")] = None


class PolicyConflict(Object):
    """A policy that contradicts this one."""

    policyName: Annotated[str, Field("Name of the other policy.", required=True)] = ""
    conflictType: Annotated[
        str, Field("What they contradict each other in.", required=True, enum=("hard", "soft", "resource", "security", "affinity"))
    ] = ""
    description: Annotated[str | None, Field("More about it.")] = None
    severity: Annotated[str | None, Field("How bad it is.", enum=("low", "medium", "high", "critical"))] = None
    resolutionSuggestion: Annotated[str | None, Field("What could be done.")] = None


class VMPlacementPolicyStatus(Object):
    """The observed state of a policy."""

    observedGeneration: ObservedGeneration = None
    usedByVMs: Annotated[list[LocalObjectReference] | None, Field("Machines that use it.", max_items=1000)] = None
    conditions: Conditions = None
    validationResults: Annotated[dict[str, PolicyValidation] | None, Field("What each provider says.")] = None
    placementStats: Annotated[PlacementStats | None, Field("How often it was used.")] = None
    conflictingPolicies: Annotated[list[PolicyConflict] | None, Field("Policies that contradict it.", max_items=50)] = None


class VMPlacementPolicy(Resource):
    """Rules for where machines are put."""

    spec: Annotated[VMPlacementPolicySpec, Field("The rules.", required=True)] = VMPlacementPolicySpec()
    status: Annotated[VMPlacementPolicyStatus | None, Field("What was observed.")] = None


KINDS = (
    Kind(
        group=GROUP,
        kind="VMPlacementPolicy",
        plural="vmplacementpolicies",
        singular="vmplacementpolicy",
        short_names=("vmpp",),
        cls=VMPlacementPolicy,
        dialect="virtrigaud",
        versions=VERSIONS,
        columns=(
            # Names, and therefore text: usedByVMs is a list.
            Column("Used By VMs", ".status.usedByVMs[*].name"),
            Column("Priority", ".spec.priority", "integer"),
            Column("Successful", ".status.placementStats.successfulPlacements", "integer"),
            Column("Failed", ".status.placementStats.failedPlacements", "integer"),
            AGE,
        ),
        rules=rules.RULES,
    ),
)
