"""The protobuf messages of devices and of the networks of Services. Read as `messages` says."""

DEVICE_MESSAGES: dict[str, str] = {
    "IPAddress": "1:metadata:ObjectMeta 2:spec:IPAddressSpec",
    "IPAddressSpec": "1:parentRef:ParentReference",
    "ParentReference": "1:group 2:resource 3:namespace 4:name",
    "ServiceCIDR": "1:metadata:ObjectMeta 2:spec:ServiceCIDRSpec 3:status:ServiceCIDRStatus",
    "ServiceCIDRSpec": "1:cidrs:*string",
    "ServiceCIDRStatus": "1:conditions:*Condition",
    "DeviceClass": "1:metadata:ObjectMeta 2:spec:DeviceClassSpec",
    "DeviceClassSpec": "1:selectors:*DeviceSelector 2:config:*DeviceClassConfiguration 4:extendedResourceName:string?",
    "DeviceSelector": "1:cel:CELDeviceSelector",
    "CELDeviceSelector": "1:expression",
    "DeviceClassConfiguration": "1::^DeviceConfiguration",
    "DeviceConfiguration": "1:opaque:OpaqueDeviceConfiguration",
    "OpaqueDeviceConfiguration": "1:driver 2:parameters:FieldsV1",
    "ResourceClaim": "1:metadata:ObjectMeta 2:spec:ResourceClaimSpec 3:status:ResourceClaimStatus",
    "ResourceClaimSpec": "1:devices:DeviceClaim",
    "DeviceClaim": "1:requests:*DeviceRequest 2:constraints:*DeviceConstraint 3:config:*DeviceClaimConfiguration",
    "DeviceRequest": "1:name 2:exactly:ExactDeviceRequest 3:firstAvailable:*DeviceSubRequest",
    "ExactDeviceRequest": (
        "1:deviceClassName 2:selectors:*DeviceSelector 3:allocationMode 4:count:int 5:adminAccess:bool? 6:tolerations:*DeviceToleration "
        "7:capacity:CapacityRequirements"
    ),
    "DeviceSubRequest": (
        "1:name 2:deviceClassName 3:selectors:*DeviceSelector 4:allocationMode 5:count:int 6:tolerations:*DeviceToleration "
        "7:capacity:CapacityRequirements"
    ),
    "DeviceToleration": "1:key 2:operator 3:value 4:effect 5:tolerationSeconds:int?",
    "CapacityRequirements": "1:requests:map:Quantity",
    "DeviceConstraint": "1:requests:*string 2:matchAttribute:string? 3:distinctAttribute:string?",
    "DeviceClaimConfiguration": "1:requests:*string 2::^DeviceConfiguration",
    "ResourceClaimStatus": "1:allocation:AllocationResult 2:reservedFor:*ResourceClaimConsumerReference 4:devices:*AllocatedDeviceStatus",
    "AllocationResult": "1:devices:DeviceAllocationResult 3:nodeSelector:NodeSelector 5:allocationTimestamp:Time",
    "DeviceAllocationResult": "1:results:*DeviceRequestAllocationResult 2:config:*DeviceAllocationConfiguration",
    "DeviceRequestAllocationResult": (
        "1:request 2:driver 3:pool 4:device 5:adminAccess:bool? 6:tolerations:*DeviceToleration 7:bindingConditions:*string "
        "8:bindingFailureConditions:*string 9:shareID:string? 10:consumedCapacity:map:Quantity"
    ),
    "DeviceAllocationConfiguration": "1:source 2:requests:*string 3::^DeviceConfiguration",
    "ResourceClaimConsumerReference": "1:apiGroup 3:resource 4:name 5:uid",
    "AllocatedDeviceStatus": (
        "1:driver 2:pool 3:device 4:conditions:*Condition 5:data:FieldsV1 6:networkData:NetworkDeviceData 7:shareID:string?"
    ),
    "NetworkDeviceData": "1:interfaceName 2:ips:*string 3:hardwareAddress",
    "ResourceClaimTemplate": "1:metadata:ObjectMeta 2:spec:ResourceClaimTemplateSpec",
    "ResourceClaimTemplateSpec": "1:metadata:ObjectMeta 2:spec:ResourceClaimSpec",
    "ResourceSlice": "1:metadata:ObjectMeta 2:spec:ResourceSliceSpec",
    "ResourceSliceSpec": (
        "1:driver 2:pool:ResourcePool 3:nodeName:string? 4:nodeSelector:NodeSelector 5:allNodes:bool? 6:devices:*Device "
        "7:perDeviceNodeSelection:bool? 8:sharedCounters:*CounterSet"
    ),
    "ResourcePool": "1:name 2:generation:int 3:resourceSliceCount:int",
    "CounterSet": "1:name 2:counters:map:Counter",
    "Counter": "1:value:Quantity",
    "Device": (
        "1:name 2:attributes:map:DeviceAttribute 3:capacity:map:DeviceCapacity 4:consumesCounters:*DeviceCounterConsumption "
        "5:nodeName:string? 6:nodeSelector:NodeSelector 7:allNodes:bool? 8:taints:*DeviceTaint 9:bindsToNode:bool? "
        "10:bindingConditions:*string 11:bindingFailureConditions:*string 12:allowMultipleAllocations:bool? "
        "13:nodeAllocatableResourceMappings:map:NodeAllocatableResourceMapping"
    ),
    "DeviceAttribute": (
        "2:int:int? 3:bool:bool? 4:string:string? 5:version:string? 6:ints:*int 7:bools:*bool 8:strings:*string 9:versions:*string"
    ),
    "DeviceCapacity": "1:value:Quantity 2:requestPolicy:CapacityRequestPolicy",
    "CapacityRequestPolicy": "1:default:Quantity 3:validValues:*Quantity 4:validRange:CapacityRequestPolicyRange",
    "CapacityRequestPolicyRange": "1:min:Quantity 2:max:Quantity 3:step:Quantity",
    "DeviceCounterConsumption": "1:counterSet 2:counters:map:Counter",
    "DeviceTaint": "1:key 2:value 3:effect 4:timeAdded:Time",
    "NodeAllocatableResourceMapping": "1:capacityKey:string? 2:allocationMultiplier:Quantity",
}
