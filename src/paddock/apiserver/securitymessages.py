"""The protobuf messages of flow control, aggregation and certificates. Read as `messages` says."""

SECURITY_MESSAGES: dict[str, str] = {
    "FlowSchema": "1:metadata:ObjectMeta 2:spec:FlowSchemaSpec 3:status:FlowSchemaStatus",
    "FlowSchemaSpec": (
        "1:priorityLevelConfiguration:FlowLevelReference 2:matchingPrecedence:int 3:distinguisherMethod:FlowDistinguisherMethod "
        "4:rules:*FlowPolicyRules"
    ),
    "FlowDistinguisherMethod": "1:type",
    "FlowLevelReference": "1:name",
    "FlowPolicyRules": "1:subjects:*FlowSubject 2:resourceRules:*FlowResourceRule 3:nonResourceRules:*FlowPathRule",
    "FlowSubject": "1:kind 2:user:FlowNamed 3:group:FlowNamed 4:serviceAccount:FlowAccount",
    "FlowNamed": "1:name",
    "FlowAccount": "1:namespace 2:name",
    "FlowResourceRule": "1:verbs:*string 2:apiGroups:*string 3:resources:*string 4:clusterScope:bool 5:namespaces:*string",
    "FlowPathRule": "1:verbs:*string 6:nonResourceURLs:*string",
    "FlowSchemaStatus": "1:conditions:*FlowCondition",
    "FlowCondition": "1:type 2:status 3:lastTransitionTime:Time 4:reason 5:message",
    "PriorityLevelConfiguration": "1:metadata:ObjectMeta 2:spec:PriorityLevelSpec 3:status:PriorityLevelStatus",
    "PriorityLevelSpec": "1:type 2:limited:PriorityLevelLimited 3:exempt:PriorityLevelExempt",
    "PriorityLevelLimited": (
        "1:nominalConcurrencyShares:int? 2:limitResponse:PriorityLevelResponse 3:lendablePercent:int? 4:borrowingLimitPercent:int?"
    ),
    "PriorityLevelExempt": "1:nominalConcurrencyShares:int? 2:lendablePercent:int?",
    "PriorityLevelResponse": "1:type 2:queuing:PriorityLevelQueuing",
    "PriorityLevelQueuing": "1:queues:int 2:handSize:int 3:queueLengthLimit:int",
    "CertificateSigningRequest": "1:metadata:ObjectMeta 2:spec:CertificateRequestSpec 3:status:CertificateRequestStatus",
    "CertificateRequestSpec": (
        "1:request:bytes 7:signerName 8:expirationSeconds:int? 5:usages:*string 2:username 3:uid 4:groups:*string 6:extra:map:Strings"
    ),
    "CertificateRequestStatus": "1:conditions:*CertificateRequestCondition 2:certificate:bytes",
    "CertificateRequestCondition": "1:type 6:status 2:reason 3:message 4:lastUpdateTime:Time 5:lastTransitionTime:Time",
    "APIService": "1:metadata:ObjectMeta 2:spec:APIServiceSpec 3:status:APIServiceStatus",
    "APIServiceSpec": (
        "1:service:APIServiceReference 2:group 3:version 4:insecureSkipTLSVerify:bool 5:caBundle:bytes 7:groupPriorityMinimum:int "
        "8:versionPriority:int"
    ),
    "APIServiceReference": "1:namespace 2:name 3:port:int?",
    "APIServiceStatus": "1:conditions:*FlowCondition",
    "PriorityLevelStatus": "1:conditions:*FlowCondition",
}
