"""Parts of a pod that other objects use too: placement, probes, DNS, environment."""

from typing import Annotated

from paddock.kubernetes.meta.selectors import LabelSelector
from paddock.kubernetes.schema.field import Field, IntOrString, Object, Quantity


class NodeSelectorRequirement(Object):
    """One condition on a label or a field of a node."""

    key: Annotated[str, Field("The label or field.", required=True)] = ""
    operator: Annotated[
        str, Field("How the value is compared.", required=True, enum=("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    ] = ""
    values: Annotated[list[str] | None, Field("The values; one number for Gt and Lt.")] = None


class NodeSelectorTerm(Object):
    """Conditions on a node that must all hold."""

    matchExpressions: Annotated[list[NodeSelectorRequirement] | None, Field("Conditions on labels.")] = None
    matchFields: Annotated[list[NodeSelectorRequirement] | None, Field("Conditions on fields of the node.")] = None


class NodeSelector(Object):
    """Terms of which one must hold."""

    nodeSelectorTerms: Annotated[list[NodeSelectorTerm], Field("The terms.", required=True)] = []


class Toleration(Object):
    """A taint of nodes that is tolerated."""

    key: Annotated[str | None, Field("Key of the taint; empty means all.")] = None
    operator: Annotated[str | None, Field("How the value is compared; default: Equal.", enum=("Exists", "Equal", "Lt", "Gt"))] = None
    value: Annotated[str | None, Field("Value of the taint.")] = None
    effect: Annotated[str | None, Field("Effect of the taint; empty means all.", enum=("NoSchedule", "PreferNoSchedule", "NoExecute"))] = (
        None
    )
    tolerationSeconds: Annotated[int | None, Field("How long NoExecute is tolerated.")] = None


class PreferredSchedulingTerm(Object):
    """A weighted wish about the node."""

    weight: Annotated[int, Field("Weight of the wish.", required=True, ge=1, le=100)] = 0
    preference: Annotated[NodeSelectorTerm, Field("The wish.", required=True)] = NodeSelectorTerm()


class NodeAffinity(Object):
    """Rules about the node itself."""

    requiredDuringSchedulingIgnoredDuringExecution: Annotated[NodeSelector | None, Field("Must hold.")] = None
    preferredDuringSchedulingIgnoredDuringExecution: Annotated[list[PreferredSchedulingTerm] | None, Field("Should hold.")] = None


class PodAffinityTerm(Object):
    """Pods that count, and the label of the nodes that says what "together" means."""

    labelSelector: Annotated[LabelSelector | None, Field("Labels of the pods.")] = None
    matchLabelKeys: Annotated[list[str] | None, Field("Label keys whose values must be the same as the new pod's.")] = None
    mismatchLabelKeys: Annotated[list[str] | None, Field("Label keys whose values must differ from the new pod's.")] = None
    namespaceSelector: Annotated[LabelSelector | None, Field("Labels of the namespaces of the pods.")] = None
    namespaces: Annotated[list[str] | None, Field("Names of the namespaces of the pods.")] = None
    topologyKey: Annotated[str, Field("Label of nodes; equal values are one place.", required=True)] = ""


class WeightedPodAffinityTerm(Object):
    """A weighted wish about other pods."""

    weight: Annotated[int, Field("Weight of the wish.", required=True, ge=1, le=100)] = 0
    podAffinityTerm: Annotated[PodAffinityTerm, Field("The wish.", required=True)] = PodAffinityTerm()


class PodAffinity(Object):
    """Rules about the pods that run at the same place."""

    requiredDuringSchedulingIgnoredDuringExecution: Annotated[list[PodAffinityTerm] | None, Field("Must hold.")] = None
    preferredDuringSchedulingIgnoredDuringExecution: Annotated[list[WeightedPodAffinityTerm] | None, Field("Should hold.")] = None


class Affinity(Object):
    """The placement of something, by nodes and by neighbours."""

    nodeAffinity: Annotated[NodeAffinity | None, Field("Rules about nodes.")] = None
    podAffinity: Annotated[PodAffinity | None, Field("Neighbours that are wanted.")] = None
    podAntiAffinity: Annotated[PodAffinity | None, Field("Neighbours that are not wanted.")] = None


class TopologySpreadConstraint(Object):
    """The spread of something over places."""

    maxSkew: Annotated[int, Field("Largest difference between two places.", required=True, bits=32)] = 0
    topologyKey: Annotated[str, Field("Label of nodes; equal values are one place.", required=True)] = ""
    whenUnsatisfiable: Annotated[
        str, Field("What happens when it cannot hold.", required=True, enum=("DoNotSchedule", "ScheduleAnyway"))
    ] = ""
    labelSelector: Annotated[LabelSelector | None, Field("Labels of the pods that count.")] = None
    matchLabelKeys: Annotated[list[str] | None, Field("Label keys whose values must be the same as the new pod's.")] = None
    minDomains: Annotated[int | None, Field("Least number of places.", bits=32)] = None
    nodeAffinityPolicy: Annotated[str | None, Field("Whether affinity decides which nodes count.", enum=("Honor", "Ignore"))] = None
    nodeTaintsPolicy: Annotated[str | None, Field("Whether taints decide which nodes count.", enum=("Honor", "Ignore"))] = None


class DNSConfigOption(Object):
    """An option of the resolver."""

    name: Annotated[str | None, Field("Name of the option.")] = None
    value: Annotated[str | None, Field("Value of the option.")] = None


class DNSConfig(Object):
    """Settings of the resolver, merged with those of the DNS policy."""

    nameservers: Annotated[list[str] | None, Field("Addresses of name servers.")] = None
    searches: Annotated[list[str] | None, Field("Search domains.")] = None
    options: Annotated[list[DNSConfigOption] | None, Field("Options of the resolver.")] = None


class ExecAction(Object):
    """A command and its exit code."""

    command: Annotated[list[str] | None, Field("The command and its arguments.")] = None


class HTTPHeader(Object):
    """A header of a request."""

    name: Annotated[str, Field("Name of the header.", required=True)] = ""
    value: Annotated[str, Field("Value of the header.", required=True)] = ""


class HTTPGetAction(Object):
    """An HTTP request and its status."""

    path: Annotated[str | None, Field("Path of the request.")] = None
    port: Annotated[IntOrString, Field("Port, by number or by name.", required=True)] = 0
    host: Annotated[str | None, Field("Host to connect to; default: the machine.")] = None
    scheme: Annotated[str | None, Field("Scheme of the request; default: HTTP.", enum=("HTTP", "HTTPS"))] = None
    httpHeaders: Annotated[list[HTTPHeader] | None, Field("Further headers.")] = None


class TCPSocketAction(Object):
    """A connection to a port."""

    port: Annotated[IntOrString, Field("Port, by number or by name.", required=True)] = 0
    host: Annotated[str | None, Field("Host to connect to; default: the machine.")] = None


class ObjectFieldSelector(Object):
    """A field of the object itself."""

    apiVersion: Annotated[str | None, Field("Version the path is written for; default: v1.")] = None
    fieldPath: Annotated[str, Field("Path of the field.", required=True)] = ""


class ResourceFieldSelector(Object):
    """A resource request or limit."""

    containerName: Annotated[str | None, Field("Name of the container.")] = None
    resource: Annotated[str, Field("The resource, such as limits.cpu.", required=True)] = ""
    divisor: Annotated[Quantity | None, Field("Unit of the value.")] = None


class DownwardAPIFile(Object):
    """A file made of one value."""

    path: Annotated[str, Field("Path of the file, relative.", required=True)] = ""
    fieldRef: Annotated[ObjectFieldSelector | None, Field("A field of the object.")] = None
    resourceFieldRef: Annotated[ResourceFieldSelector | None, Field("A resource request or limit.")] = None
    mode: Annotated[int | None, Field("Permissions of the file.", ge=0, le=511)] = None


class KeySelector(Object):
    """One key of a Secret or a ConfigMap."""

    name: Annotated[str, Field("Name of the object.", zero=True)] = ""
    key: Annotated[str, Field("The key.", required=True)] = ""
    optional: Annotated[bool | None, Field("Whether the object or the key may be missing.")] = None


class EnvVarSource(Object):
    """The source of a value."""

    fieldRef: Annotated[ObjectFieldSelector | None, Field("A field of the pod.")] = None
    resourceFieldRef: Annotated[ResourceFieldSelector | None, Field("A resource request or limit.")] = None
    configMapKeyRef: Annotated[KeySelector | None, Field("A key of a ConfigMap.")] = None
    secretKeyRef: Annotated[KeySelector | None, Field("A key of a Secret.")] = None


class EnvVar(Object):
    """A variable of the environment."""

    name: Annotated[str, Field("Name of the variable.", required=True)] = ""
    value: Annotated[str | None, Field("Its value.")] = None
    valueFrom: Annotated[EnvVarSource | None, Field("Where its value comes from.")] = None
