"""The protobuf messages of built-in kinds, as tables (docs/spec/kube-api.md section 0.2).

`number:name:TYPE`; `*TYPE` is repeated, `TYPE?` is kept when it is a zero value; no type means a string. A type is string, int,
bool, bytes, Time, MicroTime, Quantity, IntOrString, Strings, FieldsV1, `map` (of strings), `map:TYPE`, or the name of a message.
`^TYPE` is a message whose members stand among those of the message that holds it.
"""

MESSAGES: dict[str, str] = {
    "ObjectMeta": (
        "1:name 2:generateName 3:namespace 4:selfLink 5:uid 6:resourceVersion 7:generation:int 8:creationTimestamp:Time "
        "9:deletionTimestamp:Time 10:deletionGracePeriodSeconds:int? 11:labels:map 12:annotations:map "
        "13:ownerReferences:*OwnerReference 14:finalizers:*string 17:managedFields:*ManagedFieldsEntry"
    ),
    "OwnerReference": "1:kind 3:name 4:uid 5:apiVersion 6:controller:bool? 7:blockOwnerDeletion:bool?",
    "ManagedFieldsEntry": "1:manager 2:operation 3:apiVersion 4:time:Time 6:fieldsType 7:fieldsV1:FieldsV1 8:subresource",
    "LabelSelector": "1:matchLabels:map 2:matchExpressions:*LabelSelectorRequirement",
    "LabelSelectorRequirement": "1:key 2:operator 3:values:*string",
    "Condition": "1:type 2:status 3:observedGeneration:int 4:lastTransitionTime:Time 5:reason 6:message",
    "Preconditions": "1:uid:string? 2:resourceVersion:string?",
    "DeleteOptions": (
        "1:gracePeriodSeconds:int? 2:preconditions:Preconditions 3:orphanDependents:bool? 4:propagationPolicy:string? 5:dryRun:*string"
    ),
    "Namespace": "1:metadata:ObjectMeta 2:spec:NamespaceSpec 3:status:NamespaceStatus",
    "NamespaceSpec": "1:finalizers:*string",
    "NamespaceStatus": "1:phase 2:conditions:*NamespaceCondition",
    "NamespaceCondition": "1:type 2:status 4:lastTransitionTime:Time 5:reason 6:message",
    "Secret": "1:metadata:ObjectMeta 2:data:map:bytes 3:type 4:stringData:map 5:immutable:bool?",
    "ConfigMap": "1:metadata:ObjectMeta 2:data:map 3:binaryData:map:bytes 4:immutable:bool?",
    "ServiceAccount": (
        "1:metadata:ObjectMeta 2:secrets:*ObjectReference 3:imagePullSecrets:*LocalObjectReference 4:automountServiceAccountToken:bool?"
    ),
    "LocalObjectReference": "1:name",
    "ObjectReference": "1:kind 2:namespace 3:name 4:uid 5:apiVersion 6:resourceVersion 7:fieldPath",
    "v1.Event": (
        "1:metadata:ObjectMeta 2:involvedObject:ObjectReference 3:reason 4:message 5:source:EventSource 6:firstTimestamp:Time "
        "7:lastTimestamp:Time 8:count:int 9:type 10:eventTime:MicroTime 11:series:EventSeries 12:action "
        "13:related:ObjectReference 14:reportingComponent 15:reportingInstance"
    ),
    "EventSource": "1:component 2:host",
    "EventSeries": "1:count:int 2:lastObservedTime:MicroTime",
    "events.k8s.io/v1.Event": (
        "1:metadata:ObjectMeta 2:eventTime:MicroTime 3:series:EventSeries 4:reportingController 5:reportingInstance 6:action "
        "7:reason 8:regarding:ObjectReference 9:related:ObjectReference 10:note 11:type 12:deprecatedSource:EventSource "
        "13:deprecatedFirstTimestamp:Time 14:deprecatedLastTimestamp:Time 15:deprecatedCount:int"
    ),
    "Lease": "1:metadata:ObjectMeta 2:spec:LeaseSpec",
    "LeaseSpec": (
        "1:holderIdentity:string? 2:leaseDurationSeconds:int? 3:acquireTime:MicroTime 4:renewTime:MicroTime "
        "5:leaseTransitions:int? 6:strategy:string? 7:preferredHolder:string?"
    ),
    "PersistentVolumeClaim": "1:metadata:ObjectMeta 2:spec:PersistentVolumeClaimSpec 3:status:PersistentVolumeClaimStatus",
    "PersistentVolumeClaimSpec": (
        "1:accessModes:*string 2:resources:ResourceRequirements 3:volumeName 4:selector:LabelSelector 5:storageClassName:string? "
        "6:volumeMode:string? 7:dataSource:TypedObjectReference 8:dataSourceRef:TypedObjectReference "
        "9:volumeAttributesClassName:string?"
    ),
    "ResourceRequirements": "1:limits:map:Quantity 2:requests:map:Quantity",
    "TypedObjectReference": "1:apiGroup:string? 2:kind 3:name 4:namespace:string?",
    "PersistentVolumeClaimStatus": (
        "1:phase 2:accessModes:*string 3:capacity:map:Quantity 4:conditions:*PersistentVolumeClaimCondition "
        "5:allocatedResources:map:Quantity 7:allocatedResourceStatuses:map 8:currentVolumeAttributesClassName:string?"
    ),
    "PersistentVolumeClaimCondition": "1:type 2:status 3:lastProbeTime:Time 4:lastTransitionTime:Time 5:reason 6:message",
    "Service": "1:metadata:ObjectMeta 2:spec:ServiceSpec 3:status:ServiceStatus",
    "ServiceSpec": (
        "1:ports:*ServicePort 2:selector:map 3:clusterIP 4:type 5:externalIPs:*string 7:sessionAffinity 8:loadBalancerIP "
        "9:loadBalancerSourceRanges:*string 10:externalName 11:externalTrafficPolicy 12:healthCheckNodePort:int "
        "13:publishNotReadyAddresses:bool 14:sessionAffinityConfig:SessionAffinityConfig 17:ipFamilyPolicy:string? "
        "18:clusterIPs:*string 19:ipFamilies:*string 20:allocateLoadBalancerNodePorts:bool? 21:loadBalancerClass:string? "
        "22:internalTrafficPolicy:string? 23:trafficDistribution:string?"
    ),
    "SessionAffinityConfig": "1:clientIP:ClientIPConfig",
    "ClientIPConfig": "1:timeoutSeconds:int?",
    "ServicePort": "1:name 2:protocol 3:port:int 4:targetPort:IntOrString 5:nodePort:int 6:appProtocol:string?",
    "ServiceStatus": "1:loadBalancer:LoadBalancerStatus 2:conditions:*Condition",
    "LoadBalancerStatus": "1:ingress:*LoadBalancerIngress",
    "LoadBalancerIngress": "1:ip 2:hostname 3:ipMode:string? 4:ports:*PortStatus",
    "PortStatus": "1:port:int? 2:protocol 3:error:string?",
    "Endpoints": "1:metadata:ObjectMeta 2:subsets:*EndpointSubset",
    "EndpointSubset": "1:addresses:*EndpointAddress 2:notReadyAddresses:*EndpointAddress 3:ports:*EndpointPort",
    "EndpointAddress": "1:ip 2:targetRef:ObjectReference 3:hostname 4:nodeName:string?",
    "EndpointPort": "1:name 2:port:int 3:protocol 4:appProtocol:string?",
    "EndpointSlice": "1:metadata:ObjectMeta 2:endpoints:*SliceEndpoint 3:ports:*SlicePort 4:addressType",
    "SliceEndpoint": (
        "1:addresses:*string 2:conditions:SliceConditions 3:hostname:string? 4:targetRef:ObjectReference 5:deprecatedTopology:map "
        "6:nodeName:string? 7:zone:string?"
    ),
    "SliceConditions": "1:ready:bool? 2:serving:bool? 3:terminating:bool?",
    "SlicePort": "1:name:string? 2:protocol:string? 3:port:int? 4:appProtocol:string?",
    "Role": "1:metadata:ObjectMeta 2:rules:*PolicyRule",
    "ClusterRole": "1:metadata:ObjectMeta 2:rules:*PolicyRule 3:aggregationRule:AggregationRule",
    "AggregationRule": "1:clusterRoleSelectors:*LabelSelector",
    "PolicyRule": "1:verbs:*string 2:apiGroups:*string 3:resources:*string 4:resourceNames:*string 5:nonResourceURLs:*string",
    "RoleBinding": "1:metadata:ObjectMeta 2:subjects:*Subject 3:roleRef:RoleRef",
    "ClusterRoleBinding": "1:metadata:ObjectMeta 2:subjects:*Subject 3:roleRef:RoleRef",
    "Subject": "1:kind 2:apiGroup 3:name 4:namespace",
    "RoleRef": "1:apiGroup 2:kind 3:name",
    "TokenRequest": "1:metadata:ObjectMeta 2:spec:TokenRequestSpec 3:status:TokenRequestStatus",
    "TokenRequestSpec": "1:audiences:*string 3:boundObjectRef:BoundObjectReference 4:expirationSeconds:int?",
    "BoundObjectReference": "1:kind 2:apiVersion 3:name 4:uid",
    "TokenRequestStatus": "1:token 2:expirationTimestamp:Time",
    "TokenReview": "1:metadata:ObjectMeta 2:spec:TokenReviewSpec 3:status:TokenReviewStatus",
    "TokenReviewSpec": "1:token 2:audiences:*string",
    "TokenReviewStatus": "1:authenticated:bool 2:user:UserInfo 3:error 4:audiences:*string",
    "UserInfo": "1:username 2:uid 3:groups:*string 4:extra:map:Strings",
    "SelfSubjectReview": "1:metadata:ObjectMeta 2:status:SelfSubjectReviewStatus",
    "SelfSubjectReviewStatus": "1:userInfo:UserInfo",
    "SelfSubjectRulesReview": "1:metadata:ObjectMeta 2:spec:SelfSubjectRulesReviewSpec",
    "SelfSubjectRulesReviewSpec": "1:namespace",
    "SelfSubjectAccessReview": "1:metadata:ObjectMeta 2:spec:SelfSubjectAccessReviewSpec",
    "SelfSubjectAccessReviewSpec": "1:resourceAttributes:ResourceAttributes 2:nonResourceAttributes:NonResourceAttributes",
    "SubjectAccessReview": "1:metadata:ObjectMeta 2:spec:SubjectAccessReviewSpec",
    "LocalSubjectAccessReview": "1:metadata:ObjectMeta 2:spec:SubjectAccessReviewSpec",
    "SubjectAccessReviewSpec": (
        "1:resourceAttributes:ResourceAttributes 2:nonResourceAttributes:NonResourceAttributes 3:user 4:groups:*string "
        "5:extra:map:Strings 6:uid"
    ),
    "ResourceAttributes": (
        "1:namespace 2:verb 3:group 4:version 5:resource 6:subresource 7:name 8:fieldSelector:SelectorAttributes "
        "9:labelSelector:SelectorAttributes"
    ),
    "SelectorAttributes": "1:rawSelector 2:requirements:*LabelSelectorRequirement",
    "NonResourceAttributes": "1:path 2:verb",
    "StorageClass": (
        "1:metadata:ObjectMeta 2:provisioner 3:parameters:map 4:reclaimPolicy:string? 5:mountOptions:*string "
        "6:allowVolumeExpansion:bool? 7:volumeBindingMode:string? 8:allowedTopologies:*TopologySelectorTerm"
    ),
    "TopologySelectorTerm": "1:matchLabelExpressions:*TopologySelectorRequirement",
    "TopologySelectorRequirement": "1:key 2:values:*string",
    "Node": "1:metadata:ObjectMeta 2:spec:NodeSpec 3:status:NodeStatus",
    "NodeSpec": "1:podCIDR 3:providerID 4:unschedulable:bool 5:taints:*Taint 7:podCIDRs:*string",
    "Taint": "1:key 2:value 3:effect 4:timeAdded:Time",
    "NodeStatus": (
        "1:capacity:map:Quantity 2:allocatable:map:Quantity 3:phase 4:conditions:*NodeCondition 5:addresses:*NodeAddress "
        "6:daemonEndpoints:NodeDaemonEndpoints 7:nodeInfo:NodeSystemInfo 8:images:*ContainerImage 9:volumesInUse:*string "
        "10:volumesAttached:*AttachedVolume"
    ),
    "NodeDaemonEndpoints": "1:kubeletEndpoint:DaemonEndpoint",
    "DaemonEndpoint": "1:Port:int?",
    "NodeSystemInfo": (
        "1:machineID:string? 2:systemUUID:string? 3:bootID:string? 4:kernelVersion:string? 5:osImage:string? "
        "6:containerRuntimeVersion:string? 7:kubeletVersion:string? 8:kubeProxyVersion:string? 9:operatingSystem:string? "
        "10:architecture:string?"
    ),
    "ContainerImage": "1:names:*string 2:sizeBytes:int",
    "AttachedVolume": "1:name 2:devicePath",
    "NodeCondition": "1:type 2:status 3:lastHeartbeatTime:Time 4:lastTransitionTime:Time 5:reason 6:message",
    "NodeAddress": "1:type 2:address",
    "PriorityClass": "1:metadata:ObjectMeta 2:value:int? 3:globalDefault:bool 4:description 5:preemptionPolicy:string?",
    "PodDisruptionBudget": "1:metadata:ObjectMeta 2:spec:PodDisruptionBudgetSpec 3:status:PodDisruptionBudgetStatus",
    "PodDisruptionBudgetSpec": (
        "1:minAvailable:IntOrString 2:selector:LabelSelector 3:maxUnavailable:IntOrString 4:unhealthyPodEvictionPolicy:string?"
    ),
    # Pods and what is made of them are refused whatever they hold.
    **dict.fromkeys(("Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"), "1:metadata:ObjectMeta"),
    "Scale": "1:metadata:ObjectMeta 2:spec:ScaleSpec 3:status:ScaleStatus",
    "ScaleSpec": "1:replicas:int",
    "ScaleStatus": "1:replicas:int 2:selector",
}
