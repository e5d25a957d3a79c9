"""The protobuf messages of kinds that bound and judge what others write, and of those that are only kept. Read as `messages` says."""

CLUSTER_MESSAGES: dict[str, str] = {
    "ResourceQuota": "1:metadata:ObjectMeta 2:spec:ResourceQuotaSpec 3:status:ResourceQuotaStatus",
    "ResourceQuotaSpec": "1:hard:map:Quantity 2:scopes:*string 3:scopeSelector:ScopeSelector",
    "ScopeSelector": "1:matchExpressions:*ScopedResourceSelectorRequirement",
    "ScopedResourceSelectorRequirement": "1:scopeName 2:operator 3:values:*string",
    "ResourceQuotaStatus": "1:hard:map:Quantity 2:used:map:Quantity",
    "Ingress": "1:metadata:ObjectMeta 2:spec:IngressSpec 3:status:IngressStatus",
    "IngressSpec": "1:defaultBackend:IngressBackend 2:tls:*IngressTLS 3:rules:*IngressRule 4:ingressClassName:string?",
    "IngressBackend": "3:resource:TypedObjectReference 4:service:IngressServiceBackend",
    "IngressServiceBackend": "1:name 2:port:ServiceBackendPort",
    "ServiceBackendPort": "1:name 2:number:int",
    "IngressTLS": "1:hosts:*string 2:secretName",
    "IngressRule": "1:host 2::^IngressRuleValue",
    "IngressRuleValue": "1:http:HTTPIngressRuleValue",
    "HTTPIngressRuleValue": "1:paths:*HTTPIngressPath",
    "HTTPIngressPath": "1:path 2:backend:IngressBackend 3:pathType:string?",
    "IngressStatus": "1:loadBalancer:IngressLoadBalancerStatus",
    "IngressLoadBalancerStatus": "1:ingress:*IngressLoadBalancerIngress",
    "IngressLoadBalancerIngress": "1:ip 2:hostname 4:ports:*IngressPortStatus",
    "IngressPortStatus": "1:port:int 2:protocol 3:error:string?",
    "NetworkPolicy": "1:metadata:ObjectMeta 2:spec:NetworkPolicySpec",
    "NetworkPolicySpec": (
        "1:podSelector:LabelSelector 2:ingress:*NetworkPolicyIngressRule 3:egress:*NetworkPolicyEgressRule 4:policyTypes:*string"
    ),
    "NetworkPolicyIngressRule": "1:ports:*NetworkPolicyPort 2:from:*NetworkPolicyPeer",
    "NetworkPolicyEgressRule": "1:ports:*NetworkPolicyPort 2:to:*NetworkPolicyPeer",
    "NetworkPolicyPeer": "1:podSelector:LabelSelector 2:namespaceSelector:LabelSelector 3:ipBlock:IPBlock",
    "NetworkPolicyPort": "1:protocol:string? 2:port:IntOrString 3:endPort:int?",
    "IPBlock": "1:cidr 2:except:*string",
    "LimitRange": "1:metadata:ObjectMeta 2:spec:LimitRangeSpec",
    "LimitRangeSpec": "1:limits:*LimitRangeItem",
    "LimitRangeItem": (
        "1:type 2:max:map:Quantity 3:min:map:Quantity 4:default:map:Quantity 5:defaultRequest:map:Quantity "
        "6:maxLimitRequestRatio:map:Quantity"
    ),
    "ReplicationController": "1:metadata:ObjectMeta 2:spec:ReplicationControllerSpec 3:status:ReplicationControllerStatus",
    "ReplicationControllerSpec": "1:replicas:int? 2:selector:map 3:template:PodTemplateSpec 4:minReadySeconds:int",
    "ReplicationControllerStatus": (
        "1:replicas:int 2:fullyLabeledReplicas:int 3:observedGeneration:int 4:readyReplicas:int 5:availableReplicas:int "
        "6:conditions:*ReplicationControllerCondition"
    ),
    "ReplicationControllerCondition": "1:type 2:status 3:lastTransitionTime:Time 4:reason 5:message",
    "PodTemplate": "1:metadata:ObjectMeta 2:template:PodTemplateSpec",
    "RuntimeClass": "1:metadata:ObjectMeta 2:handler 3:overhead:Overhead 4:scheduling:Scheduling",
    "Overhead": "1:podFixed:map:Quantity",
    "Scheduling": "1:nodeSelector:map 2:tolerations:*Toleration",
    "IngressClass": "1:metadata:ObjectMeta 2:spec:IngressClassSpec",
    "IngressClassSpec": "1:controller 2:parameters:IngressClassParametersReference",
    "IngressClassParametersReference": "1:apiGroup:string? 2:kind 3:name 4:scope:string? 5:namespace:string?",
    "CSIDriver": "1:metadata:ObjectMeta 2:spec:CSIDriverSpec",
    "CSIDriverSpec": (
        "1:attachRequired:bool? 2:podInfoOnMount:bool? 3:volumeLifecycleModes:*string 4:storageCapacity:bool? 5:fsGroupPolicy:string? "
        "6:tokenRequests:*DriverTokenRequest 7:requiresRepublish:bool? 8:seLinuxMount:bool? 9:nodeAllocatableUpdatePeriodSeconds:int? "
        "10:serviceAccountTokenInSecrets:bool? 11:preventPodSchedulingIfMissing:bool?"
    ),
    "DriverTokenRequest": "1:audience 2:expirationSeconds:int?",
    "CSINode": "1:metadata:ObjectMeta 2:spec:CSINodeSpec",
    "CSINodeSpec": "1:drivers:*CSINodeDriver",
    "CSINodeDriver": "1:name 2:nodeID 3:topologyKeys:*string 4:allocatable:VolumeNodeResources",
    "VolumeNodeResources": "1:count:int?",
    "VolumeAttachment": "1:metadata:ObjectMeta 2:spec:VolumeAttachmentSpec 3:status:VolumeAttachmentStatus",
    "VolumeAttachmentSpec": "1:attacher 2:source:VolumeAttachmentSource 3:nodeName",
    "VolumeAttachmentSource": "1:persistentVolumeName:string? 2:inlineVolumeSpec:PersistentVolumeSpec",
    "VolumeAttachmentStatus": "1:attached:bool 2:attachmentMetadata:map 3:attachError:VolumeError 4:detachError:VolumeError",
    "VolumeError": "1:time:Time 2:message 3:errorCode:int?",
    "CSIStorageCapacity": (
        "1:metadata:ObjectMeta 2:nodeTopology:LabelSelector 3:storageClassName 4:capacity:Quantity 5:maximumVolumeSize:Quantity"
    ),
    "VolumeAttributesClass": "1:metadata:ObjectMeta 2:driverName 3:parameters:map",
    "MutatingWebhookConfiguration": "1:metadata:ObjectMeta 2:webhooks:*MutatingWebhook",
    "MutatingWebhook": (
        "1:name 2:clientConfig:WebhookClientConfig 3:rules:*RuleWithOperations 4:failurePolicy:string? 5:namespaceSelector:LabelSelector "
        "6:sideEffects:string? 7:timeoutSeconds:int? 8:admissionReviewVersions:*string 9:matchPolicy:string? "
        "10:reinvocationPolicy:string? 11:objectSelector:LabelSelector 12:matchConditions:*MatchCondition"
    ),
    "WebhookClientConfig": "1:service:ServiceReference 2:caBundle:bytes 3:url:string?",
    "ServiceReference": "1:namespace 2:name 3:path:string? 4:port:int?",
    "RuleWithOperations": "1:operations:*string 2::^Rule",
    "Rule": "1:apiGroups:*string 2:apiVersions:*string 3:resources:*string 4:scope:string?",
    "MatchCondition": "1:name 2:expression",
    "ValidatingWebhookConfiguration": "1:metadata:ObjectMeta 2:webhooks:*ValidatingWebhook",
    "ValidatingWebhook": (
        "1:name 2:clientConfig:WebhookClientConfig 3:rules:*RuleWithOperations 4:failurePolicy:string? 5:namespaceSelector:LabelSelector "
        "6:sideEffects:string? 7:timeoutSeconds:int? 8:admissionReviewVersions:*string 9:matchPolicy:string? "
        "10:objectSelector:LabelSelector 11:matchConditions:*MatchCondition"
    ),
    "ValidatingAdmissionPolicy": "1:metadata:ObjectMeta 2:spec:ValidatingAdmissionPolicySpec 3:status:ValidatingAdmissionPolicyStatus",
    "ValidatingAdmissionPolicySpec": (
        "1:paramKind:ParamKind 2:matchConstraints:MatchResources 3:validations:*Validation 4:failurePolicy:string? "
        "5:auditAnnotations:*AuditAnnotation 6:matchConditions:*MatchCondition 7:variables:*Variable"
    ),
    "ParamKind": "1:apiVersion 2:kind",
    "MatchResources": (
        "1:namespaceSelector:LabelSelector 2:objectSelector:LabelSelector 3:resourceRules:*NamedRuleWithOperations "
        "4:excludeResourceRules:*NamedRuleWithOperations 7:matchPolicy:string?"
    ),
    "NamedRuleWithOperations": "1:resourceNames:*string 2::^RuleWithOperations",
    "Validation": "1:expression 2:message 3:reason:string? 4:messageExpression",
    "AuditAnnotation": "1:key 2:valueExpression",
    "Variable": "1:name 2:expression",
    "ValidatingAdmissionPolicyStatus": "1:observedGeneration:int 2:typeChecking:TypeChecking 3:conditions:*Condition",
    "TypeChecking": "1:expressionWarnings:*ExpressionWarning",
    "ExpressionWarning": "2:fieldRef 3:warning",
    "ValidatingAdmissionPolicyBinding": "1:metadata:ObjectMeta 2:spec:ValidatingAdmissionPolicyBindingSpec",
    "ValidatingAdmissionPolicyBindingSpec": "1:policyName 2:paramRef:ParamRef 3:matchResources:MatchResources 4:validationActions:*string",
    "MutatingAdmissionPolicy": "1:metadata:ObjectMeta 2:spec:MutatingAdmissionPolicySpec",
    "MutatingAdmissionPolicySpec": (
        "1:paramKind:ParamKind 2:matchConstraints:MatchResources 3:variables:*Variable 4:mutations:*Mutation 5:failurePolicy:string? "
        "6:matchConditions:*MatchCondition 7:reinvocationPolicy"
    ),
    "Mutation": "2:patchType 3:applyConfiguration:PatchExpression 4:jsonPatch:PatchExpression",
    "PatchExpression": "1:expression",
    "MutatingAdmissionPolicyBinding": "1:metadata:ObjectMeta 2:spec:MutatingAdmissionPolicyBindingSpec",
    "MutatingAdmissionPolicyBindingSpec": "1:policyName 2:paramRef:ParamRef 3:matchResources:MatchResources",
    "ParamRef": "1:name 2:namespace 3:selector:LabelSelector 4:parameterNotFoundAction:string?",
    "PodDisruptionBudgetStatus": (
        "1:observedGeneration:int 2:disruptedPods:map:Time 3:disruptionsAllowed:int 4:currentHealthy:int 5:desiredHealthy:int "
        "6:expectedPods:int 7:conditions:*Condition"
    ),
    "PersistentVolume": "1:metadata:ObjectMeta 2:spec:PersistentVolumeSpec 3:status:PersistentVolumeStatus",
    "PersistentVolumeStatus": "1:phase 2:message 3:reason 4:lastPhaseTransitionTime:Time",
    "ControllerRevision": "1:metadata:ObjectMeta 2:data:FieldsV1 3:revision:int",
}
