"""Kinds that say who else has a word in a write (`admissionregistration.k8s.io`): webhooks, policies and their bindings."""

from typing import Annotated

from paddock.meta.conditions import Condition
from paddock.meta.objects import Resource
from paddock.meta.selectors import LabelSelector
from paddock.schema.field import Field, Object
from paddock.schema.kind import AGE, Kind

GROUP = "admissionregistration.k8s.io"
MUTATING, VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"
POLICIES, BINDINGS = "validatingadmissionpolicies", "validatingadmissionpolicybindings"
MUTATING_POLICIES, MUTATING_BINDINGS = "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"
OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
FailurePolicy = Annotated[str | None, Field("What happens when it cannot be asked.", enum=("Fail", "Ignore"))]
MatchPolicy = Annotated[str | None, Field("Whether other versions of the same objects count.", enum=("Equivalent", "Exact"))]
Selector = Annotated[LabelSelector | None, Field("Labels that have to be there.")]


class RuleWithOperations(Object):
    """Which requests."""

    operations: Annotated[list[Annotated[str, Field(enum=OPERATIONS)]] | None, Field("What is done.")] = None
    apiGroups: Annotated[list[str] | None, Field("Groups; `*` is all.")] = None
    apiVersions: Annotated[list[str] | None, Field("Versions; `*` is all.")] = None
    resources: Annotated[list[str] | None, Field("Plurals, with a subresource after a slash; `*` is all.")] = None
    scope: Annotated[str | None, Field("Namespaced, Cluster or both.", enum=("*", "Cluster", "Namespaced"))] = "*"


class NamedRuleWithOperations(RuleWithOperations):
    """Which requests, for which names."""

    resourceNames: Annotated[list[str] | None, Field("Names; default: all.")] = None


class MatchCondition(Object):
    """A condition on a request."""

    name: Annotated[str, Field("Name of the condition.", zero=True)] = ""
    expression: Annotated[str, Field("The condition, in CEL.", zero=True)] = ""


class ServiceReference(Object):
    """A Service of this server."""

    namespace: Annotated[str, Field("Its namespace.", zero=True)] = ""
    name: Annotated[str, Field("Its name.", zero=True)] = ""
    path: Annotated[str | None, Field("Path of the URL.")] = None
    port: Annotated[int | None, Field("Port of the Service.", bits=32)] = 443


class WebhookClientConfig(Object):
    """Where it is: a URL or a Service."""

    url: Annotated[str | None, Field("An https URL.")] = None
    service: Annotated[ServiceReference | None, Field("A Service of this server.")] = None
    caBundle: Annotated[str | None, Field("Authorities of its certificate, PEM in base64; default: those of the host.")] = None


class ValidatingWebhook(Object):
    """Somebody who judges."""

    name: Annotated[str, Field("Its full name, such as a.example.com.", zero=True)] = ""
    clientConfig: Annotated[WebhookClientConfig, Field("Where it is.", required=True)] = WebhookClientConfig()
    rules: Annotated[list[RuleWithOperations] | None, Field("Which requests it wants to see.")] = None
    failurePolicy: FailurePolicy = "Fail"
    matchPolicy: MatchPolicy = "Equivalent"
    namespaceSelector: Selector = LabelSelector()
    objectSelector: Selector = LabelSelector()
    sideEffects: Annotated[str | None, Field("What else a question does.", enum=("None", "NoneOnDryRun"))] = None
    timeoutSeconds: Annotated[int | None, Field("How long to wait for the answer.", bits=32)] = 10
    admissionReviewVersions: Annotated[list[str] | None, Field("Versions of AdmissionReview that it reads, the best first.")] = None
    matchConditions: Annotated[list[MatchCondition] | None, Field("Further conditions; all must hold.")] = None


class MutatingWebhook(ValidatingWebhook):
    """Somebody who changes."""

    reinvocationPolicy: Annotated[
        str | None, Field("Whether it is asked again when others changed the object after it.", enum=("IfNeeded", "Never"))
    ] = "Never"


class ValidatingWebhookConfiguration(Resource):
    """Webhooks that judge what is written."""

    webhooks: Annotated[list[ValidatingWebhook] | None, Field("The webhooks.")] = None


class MutatingWebhookConfiguration(Resource):
    """Webhooks that change what is written."""

    webhooks: Annotated[list[MutatingWebhook] | None, Field("The webhooks.")] = None


class MatchResources(Object):
    """Which requests."""

    namespaceSelector: Selector = LabelSelector()
    objectSelector: Selector = LabelSelector()
    resourceRules: Annotated[list[NamedRuleWithOperations] | None, Field("Requests that count.")] = None
    excludeResourceRules: Annotated[list[NamedRuleWithOperations] | None, Field("Requests that do not count.")] = None
    matchPolicy: MatchPolicy = "Equivalent"


class ParamKind(Object):
    """The kind of the parameters."""

    apiVersion: Annotated[str, Field("Group and version.", zero=True)] = ""
    kind: Annotated[str, Field("Kind.", zero=True)] = ""


class Validation(Object):
    """What must hold."""

    expression: Annotated[str, Field("What must hold, in CEL.", zero=True)] = ""
    message: Annotated[str | None, Field("What is said when it does not.")] = None
    reason: Annotated[str | None, Field("One word for programs.", enum=("Forbidden", "Invalid", "RequestEntityTooLarge"))] = None
    messageExpression: Annotated[str | None, Field("Makes what is said, in CEL.")] = None


class AuditAnnotation(Object):
    """What the audit log shall hold."""

    key: Annotated[str, Field("The key, behind the name of the policy.", zero=True)] = ""
    valueExpression: Annotated[str, Field("Makes the value, in CEL.", zero=True)] = ""


class Variable(Object):
    """A value with a name."""

    name: Annotated[str, Field("The name, used as variables.NAME.", zero=True)] = ""
    expression: Annotated[str, Field("Makes the value, in CEL.", zero=True)] = ""


class PolicySpec(Object):
    """What must hold for which requests."""

    paramKind: Annotated[ParamKind | None, Field("The kind of the parameters, if there are any.")] = None
    matchConstraints: Annotated[MatchResources | None, Field("Which requests.")] = None
    validations: Annotated[list[Validation] | None, Field("What must hold.")] = None
    failurePolicy: FailurePolicy = "Fail"
    auditAnnotations: Annotated[list[AuditAnnotation] | None, Field("What the audit log shall hold.")] = None
    matchConditions: Annotated[list[MatchCondition] | None, Field("Further conditions; all must hold.")] = None
    variables: Annotated[list[Variable] | None, Field("Values for the expressions, in order.")] = None


class ExpressionWarning(Object):
    """Something odd about an expression."""

    fieldRef: Annotated[str, Field("Where the expression is.", required=True)] = ""
    warning: Annotated[str, Field("What is odd.", required=True)] = ""


class TypeChecking(Object):
    """What a look at the expressions showed."""

    expressionWarnings: Annotated[list[ExpressionWarning] | None, Field("What is odd.")] = None


class PolicyStatus(Object):
    """What was observed."""

    observedGeneration: Annotated[int | None, Field("The generation that this is about.")] = None
    typeChecking: Annotated[TypeChecking | None, Field("What a look at the expressions showed.")] = None
    conditions: Annotated[list[Condition] | None, Field("Conditions.", keys=("type",))] = None


class ValidatingAdmissionPolicy(Resource):
    """What must hold for what is written; bindings say where."""

    spec: Annotated[PolicySpec | None, Field("What must hold.")] = None
    status: Annotated[PolicyStatus | None, Field("What was observed.")] = None


class ParamRef(Object):
    """Which parameters."""

    name: Annotated[str | None, Field("Name of the object.", empty_is_unset=True)] = None
    namespace: Annotated[str | None, Field("Its namespace; default: that of the request.", empty_is_unset=True)] = None
    selector: Annotated[LabelSelector | None, Field("Labels of the objects.")] = None
    parameterNotFoundAction: Annotated[str | None, Field("What happens when there are none.", enum=("Allow", "Deny"))] = None


class BindingSpec(Object):
    """A policy, the requests it applies to, and its parameters."""

    policyName: Annotated[str, Field("Name of the policy.", zero=True)] = ""
    paramRef: Annotated[ParamRef | None, Field("Which parameters.")] = None
    matchResources: Annotated[MatchResources | None, Field("Which requests, within those of the policy.")] = None
    validationActions: Annotated[
        list[Annotated[str, Field(enum=("Audit", "Deny", "Warn"))]] | None, Field("What happens to what is wrong.")
    ] = None


class ValidatingAdmissionPolicyBinding(Resource):
    """Puts a policy into effect."""

    spec: Annotated[BindingSpec | None, Field("Which policy, where.")] = None


class PatchExpression(Object):
    """An expression that makes a patch."""

    expression: Annotated[str | None, Field("Makes the patch, in CEL.")] = None


class Mutation(Object):
    """One change."""

    patchType: Annotated[str, Field("What the expression makes.", zero=True)] = ""
    applyConfiguration: Annotated[PatchExpression | None, Field("Makes an Object, which is merged as apply merges.")] = None
    jsonPatch: Annotated[PatchExpression | None, Field("Makes a list of JSONPatch, the operations of a JSON patch.")] = None


class MutatingPolicySpec(Object):
    """Mutations, and the requests they apply to."""

    paramKind: Annotated[ParamKind | None, Field("The kind of the parameters, if there are any.")] = None
    matchConstraints: Annotated[MatchResources | None, Field("Which requests.")] = None
    variables: Annotated[list[Variable] | None, Field("Values for the expressions, in order.")] = None
    mutations: Annotated[list[Mutation] | None, Field("What changes, in order.")] = None
    failurePolicy: FailurePolicy = "Fail"
    matchConditions: Annotated[list[MatchCondition] | None, Field("Further conditions; all must hold.")] = None
    reinvocationPolicy: Annotated[
        str | None, Field("Whether it works again when others changed the object after it.", enum=("IfNeeded", "Never"))
    ] = None


class MutatingAdmissionPolicy(Resource):
    """Mutations of objects that are written; bindings select the requests."""

    spec: Annotated[MutatingPolicySpec | None, Field("What changes.")] = None


class MutatingBindingSpec(Object):
    """A policy, the requests it applies to, and its parameters."""

    policyName: Annotated[str, Field("Name of the policy.", zero=True)] = ""
    paramRef: Annotated[ParamRef | None, Field("Which parameters.")] = None
    matchResources: Annotated[MatchResources | None, Field("Which requests, within those of the policy.")] = None


class MutatingAdmissionPolicyBinding(Resource):
    """Puts a mutating policy into effect."""

    spec: Annotated[MutatingBindingSpec | None, Field("Which policy, where.")] = None


def _kind(cls: type[Resource], plural: str, *, status: bool = False) -> Kind:
    return Kind(
        group=GROUP,
        kind=cls.__name__,
        plural=plural,
        singular=cls.__name__.lower(),
        cls=cls,
        dialect="core",
        namespaced=False,
        categories=("api-extensions",),
        columns=(AGE,),
        status=status,
        builtin=True,
    )


KINDS = (
    _kind(MutatingWebhookConfiguration, MUTATING),
    _kind(ValidatingWebhookConfiguration, VALIDATING),
    _kind(ValidatingAdmissionPolicy, POLICIES, status=True),
    _kind(ValidatingAdmissionPolicyBinding, BINDINGS),
    _kind(MutatingAdmissionPolicy, MUTATING_POLICIES),
    _kind(MutatingAdmissionPolicyBinding, MUTATING_BINDINGS),
)
