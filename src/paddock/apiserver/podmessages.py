"""The protobuf messages inside pods and volumes, which templates hold whole. Read as `messages` says."""

POD_MESSAGES: dict[str, str] = {
    "PodTemplateSpec": "1:metadata:ObjectMeta 2:spec:PodSpec",
    "PodSpec": (
        "1:volumes:*Volume 2:containers:*Container 3:restartPolicy 4:terminationGracePeriodSeconds:int? 5:activeDeadlineSeconds:int? "
        "6:dnsPolicy 7:nodeSelector:map 8:serviceAccountName 9:serviceAccount 10:nodeName 11:hostNetwork:bool 12:hostPID:bool "
        "13:hostIPC:bool 14:securityContext:PodSecurityContext 15:imagePullSecrets:*LocalObjectReference 16:hostname 17:subdomain "
        "18:affinity:Affinity 19:schedulerName 20:initContainers:*Container 21:automountServiceAccountToken:bool? "
        "22:tolerations:*Toleration 23:hostAliases:*HostAlias 24:priorityClassName 25:priority:int? 26:dnsConfig:PodDNSConfig "
        "27:shareProcessNamespace:bool? 28:readinessGates:*PodReadinessGate 29:runtimeClassName:string? 30:enableServiceLinks:bool? "
        "31:preemptionPolicy:string? 32:overhead:map:Quantity 33:topologySpreadConstraints:*TopologySpreadConstraint "
        "34:ephemeralContainers:*EphemeralContainer 35:setHostnameAsFQDN:bool? 36:os:PodOS 37:hostUsers:bool? "
        "38:schedulingGates:*PodSchedulingGate 39:resourceClaims:*PodResourceClaim 40:resources:ResourceRequirements "
        "41:hostnameOverride:string? 43:schedulingGroup:PodSchedulingGroup"
    ),
    "Volume": "1:name 2::^VolumeSource",
    "VolumeSource": (
        "1:hostPath:HostPathVolumeSource 2:emptyDir:EmptyDirVolumeSource 3:gcePersistentDisk:GCEPersistentDiskVolumeSource "
        "4:awsElasticBlockStore:AWSElasticBlockStoreVolumeSource 5:gitRepo:GitRepoVolumeSource 6:secret:SecretVolumeSource "
        "7:nfs:NFSVolumeSource 8:iscsi:ISCSIVolumeSource 9:glusterfs:GlusterfsVolumeSource "
        "10:persistentVolumeClaim:PersistentVolumeClaimVolumeSource 11:rbd:RBDVolumeSource 12:flexVolume:FlexVolumeSource "
        "13:cinder:CinderVolumeSource 14:cephfs:CephFSVolumeSource 15:flocker:FlockerVolumeSource 16:downwardAPI:DownwardAPIVolumeSource "
        "17:fc:FCVolumeSource 18:azureFile:AzureFileVolumeSource 19:configMap:ConfigMapVolumeSource "
        "20:vsphereVolume:VsphereVirtualDiskVolumeSource 21:quobyte:QuobyteVolumeSource 22:azureDisk:AzureDiskVolumeSource "
        "23:photonPersistentDisk:PhotonPersistentDiskVolumeSource 24:portworxVolume:PortworxVolumeSource 25:scaleIO:ScaleIOVolumeSource "
        "26:projected:ProjectedVolumeSource 27:storageos:StorageOSVolumeSource 28:csi:CSIVolumeSource 29:ephemeral:EphemeralVolumeSource "
        "30:image:ImageVolumeSource"
    ),
    "HostPathVolumeSource": "1:path 2:type:string?",
    "EmptyDirVolumeSource": "1:medium 2:sizeLimit:Quantity",
    "GCEPersistentDiskVolumeSource": "1:pdName 2:fsType 3:partition:int 4:readOnly:bool",
    "AWSElasticBlockStoreVolumeSource": "1:volumeID 2:fsType 3:partition:int 4:readOnly:bool",
    "GitRepoVolumeSource": "1:repository 2:revision 3:directory",
    "SecretVolumeSource": "1:secretName 2:items:*KeyToPath 3:defaultMode:int? 4:optional:bool?",
    "KeyToPath": "1:key 2:path 3:mode:int?",
    "NFSVolumeSource": "1:server 2:path 3:readOnly:bool",
    "ISCSIVolumeSource": (
        "1:targetPortal 2:iqn 3:lun:int 4:iscsiInterface 5:fsType 6:readOnly:bool 7:portals:*string 8:chapAuthDiscovery:bool "
        "10:secretRef:LocalObjectReference 11:chapAuthSession:bool 12:initiatorName:string?"
    ),
    "GlusterfsVolumeSource": "1:endpoints 2:path 3:readOnly:bool",
    "PersistentVolumeClaimVolumeSource": "1:claimName 2:readOnly:bool",
    "RBDVolumeSource": "1:monitors:*string 2:image 3:fsType 4:pool 5:user 6:keyring 7:secretRef:LocalObjectReference 8:readOnly:bool",
    "FlexVolumeSource": "1:driver 2:fsType 3:secretRef:LocalObjectReference 4:readOnly:bool 5:options:map",
    "CinderVolumeSource": "1:volumeID 2:fsType 3:readOnly:bool 4:secretRef:LocalObjectReference",
    "CephFSVolumeSource": "1:monitors:*string 2:path 3:user 4:secretFile 5:secretRef:LocalObjectReference 6:readOnly:bool",
    "FlockerVolumeSource": "1:datasetName 2:datasetUUID",
    "DownwardAPIVolumeSource": "1:items:*DownwardAPIVolumeFile 2:defaultMode:int?",
    "DownwardAPIVolumeFile": "1:path 2:fieldRef:ObjectFieldSelector 3:resourceFieldRef:ResourceFieldSelector 4:mode:int?",
    "ObjectFieldSelector": "1:apiVersion 2:fieldPath",
    "ResourceFieldSelector": "1:containerName 2:resource 3:divisor:Quantity",
    "FCVolumeSource": "1:targetWWNs:*string 2:lun:int? 3:fsType 4:readOnly:bool 5:wwids:*string",
    "AzureFileVolumeSource": "1:secretName 2:shareName 3:readOnly:bool",
    "ConfigMapVolumeSource": "1::^LocalObjectReference 2:items:*KeyToPath 3:defaultMode:int? 4:optional:bool?",
    "VsphereVirtualDiskVolumeSource": "1:volumePath 2:fsType 3:storagePolicyName 4:storagePolicyID",
    "QuobyteVolumeSource": "1:registry 2:volume 3:readOnly:bool 4:user 5:group 6:tenant",
    "AzureDiskVolumeSource": "1:diskName 2:diskURI 3:cachingMode:string? 4:fsType:string? 5:readOnly:bool? 6:kind:string?",
    "PhotonPersistentDiskVolumeSource": "1:pdID 2:fsType",
    "ProjectedVolumeSource": "1:sources:*VolumeProjection 2:defaultMode:int?",
    "VolumeProjection": (
        "1:secret:SecretProjection 2:downwardAPI:DownwardAPIProjection 3:configMap:ConfigMapProjection "
        "4:serviceAccountToken:ServiceAccountTokenProjection 5:clusterTrustBundle:ClusterTrustBundleProjection "
        "6:podCertificate:PodCertificateProjection"
    ),
    "SecretProjection": "1::^LocalObjectReference 2:items:*KeyToPath 4:optional:bool?",
    "DownwardAPIProjection": "1:items:*DownwardAPIVolumeFile",
    "ConfigMapProjection": "1::^LocalObjectReference 2:items:*KeyToPath 4:optional:bool?",
    "ServiceAccountTokenProjection": "1:audience 2:expirationSeconds:int? 3:path",
    "ClusterTrustBundleProjection": "1:name:string? 2:signerName:string? 3:labelSelector:LabelSelector 4:path 5:optional:bool?",
    "PodCertificateProjection": (
        "1:signerName 2:keyType 3:maxExpirationSeconds:int? 4:credentialBundlePath 5:keyPath 6:certificateChainPath 7:userAnnotations:map"
    ),
    "PortworxVolumeSource": "1:volumeID 2:fsType 3:readOnly:bool",
    "ScaleIOVolumeSource": (
        "1:gateway 2:system 3:secretRef:LocalObjectReference 4:sslEnabled:bool 5:protectionDomain 6:storagePool 7:storageMode "
        "8:volumeName 9:fsType 10:readOnly:bool"
    ),
    "StorageOSVolumeSource": "1:volumeName 2:volumeNamespace 3:fsType 4:readOnly:bool 5:secretRef:LocalObjectReference",
    "CSIVolumeSource": "1:driver 2:readOnly:bool? 3:fsType:string? 4:volumeAttributes:map 5:nodePublishSecretRef:LocalObjectReference",
    "EphemeralVolumeSource": "1:volumeClaimTemplate:PersistentVolumeClaimTemplate",
    "PersistentVolumeClaimTemplate": "1:metadata:ObjectMeta 2:spec:PersistentVolumeClaimSpec",
    "ImageVolumeSource": "1:reference 2:pullPolicy",
    "Container": (
        "1:name 2:image 3:command:*string 4:args:*string 5:workingDir 6:ports:*ContainerPort 7:env:*EnvVar "
        "8:resources:ResourceRequirements 9:volumeMounts:*VolumeMount 10:livenessProbe:Probe 11:readinessProbe:Probe "
        "12:lifecycle:Lifecycle 13:terminationMessagePath 14:imagePullPolicy 15:securityContext:SecurityContext 16:stdin:bool "
        "17:stdinOnce:bool 18:tty:bool 19:envFrom:*EnvFromSource 20:terminationMessagePolicy 21:volumeDevices:*VolumeDevice "
        "22:startupProbe:Probe 23:resizePolicy:*ContainerResizePolicy 24:restartPolicy:string? "
        "25:restartPolicyRules:*ContainerRestartRule"
    ),
    "ContainerPort": "1:name 2:hostPort:int 3:containerPort:int 4:protocol 5:hostIP",
    "EnvFromSource": "1:prefix 2:configMapRef:ConfigMapEnvSource 3:secretRef:SecretEnvSource",
    "ConfigMapEnvSource": "1::^LocalObjectReference 2:optional:bool?",
    "SecretEnvSource": "1::^LocalObjectReference 2:optional:bool?",
    "EnvVar": "1:name 2:value 3:valueFrom:EnvVarSource",
    "EnvVarSource": (
        "1:fieldRef:ObjectFieldSelector 2:resourceFieldRef:ResourceFieldSelector 3:configMapKeyRef:ConfigMapKeySelector "
        "4:secretKeyRef:SecretKeySelector 5:fileKeyRef:FileKeySelector"
    ),
    "ConfigMapKeySelector": "1::^LocalObjectReference 2:key 3:optional:bool?",
    "SecretKeySelector": "1::^LocalObjectReference 2:key 3:optional:bool?",
    "FileKeySelector": "1:volumeName 2:path 3:key 4:optional:bool?",
    "ContainerResizePolicy": "1:resourceName 2:restartPolicy",
    "ContainerRestartRule": "1:action 2:exitCodes:ContainerRestartRuleOnExitCodes",
    "ContainerRestartRuleOnExitCodes": "1:operator 2:values:*int",
    "VolumeMount": "1:name 2:readOnly:bool 3:mountPath 4:subPath 5:mountPropagation:string? 6:subPathExpr 7:recursiveReadOnly:string?",
    "VolumeDevice": "1:name 2:devicePath",
    "Probe": (
        "1::^ProbeHandler 2:initialDelaySeconds:int 3:timeoutSeconds:int 4:periodSeconds:int 5:successThreshold:int "
        "6:failureThreshold:int 7:terminationGracePeriodSeconds:int?"
    ),
    "ProbeHandler": "1:exec:ExecAction 2:httpGet:HTTPGetAction 3:tcpSocket:TCPSocketAction 4:grpc:GRPCAction",
    "ExecAction": "1:command:*string",
    "HTTPGetAction": "1:path 2:port:IntOrString 3:host 4:scheme 5:httpHeaders:*HTTPHeader",
    "HTTPHeader": "1:name 2:value",
    "TCPSocketAction": "1:port:IntOrString 2:host",
    "GRPCAction": "1:port:int 2:service:string?",
    "Lifecycle": "1:postStart:LifecycleHandler 2:preStop:LifecycleHandler 3:stopSignal:string?",
    "LifecycleHandler": "1:exec:ExecAction 2:httpGet:HTTPGetAction 3:tcpSocket:TCPSocketAction 4:sleep:SleepAction",
    "SleepAction": "1:seconds:int",
    "SecurityContext": (
        "1:capabilities:Capabilities 2:privileged:bool? 3:seLinuxOptions:SELinuxOptions 4:runAsUser:int? 5:runAsNonRoot:bool? "
        "6:readOnlyRootFilesystem:bool? 7:allowPrivilegeEscalation:bool? 8:runAsGroup:int? 9:procMount:string? "
        "10:windowsOptions:WindowsSecurityContextOptions 11:seccompProfile:SeccompProfile 12:appArmorProfile:AppArmorProfile"
    ),
    "Capabilities": "1:add:*string 2:drop:*string",
    "SELinuxOptions": "1:user 2:role 3:type 4:level",
    "WindowsSecurityContextOptions": (
        "1:gmsaCredentialSpecName:string? 2:gmsaCredentialSpec:string? 3:runAsUserName:string? 4:hostProcess:bool?"
    ),
    "SeccompProfile": "1:type 2:localhostProfile:string?",
    "AppArmorProfile": "1:type 2:localhostProfile:string?",
    "EphemeralContainer": "1::^EphemeralContainerCommon 2:targetContainerName",
    "EphemeralContainerCommon": (
        "1:name 2:image 3:command:*string 4:args:*string 5:workingDir 6:ports:*ContainerPort 7:env:*EnvVar "
        "8:resources:ResourceRequirements 9:volumeMounts:*VolumeMount 10:livenessProbe:Probe 11:readinessProbe:Probe "
        "12:lifecycle:Lifecycle 13:terminationMessagePath 14:imagePullPolicy 15:securityContext:SecurityContext 16:stdin:bool "
        "17:stdinOnce:bool 18:tty:bool 19:envFrom:*EnvFromSource 20:terminationMessagePolicy 21:volumeDevices:*VolumeDevice "
        "22:startupProbe:Probe 23:resizePolicy:*ContainerResizePolicy 24:restartPolicy:string? "
        "25:restartPolicyRules:*ContainerRestartRule"
    ),
    "PodSecurityContext": (
        "1:seLinuxOptions:SELinuxOptions 2:runAsUser:int? 3:runAsNonRoot:bool? 4:supplementalGroups:*int 5:fsGroup:int? 6:runAsGroup:int? "
        "7:sysctls:*Sysctl 8:windowsOptions:WindowsSecurityContextOptions 9:fsGroupChangePolicy:string? 10:seccompProfile:SeccompProfile "
        "11:appArmorProfile:AppArmorProfile 12:supplementalGroupsPolicy:string? 13:seLinuxChangePolicy:string?"
    ),
    "Sysctl": "1:name 2:value",
    "Affinity": "1:nodeAffinity:NodeAffinity 2:podAffinity:PodAffinity 3:podAntiAffinity:PodAntiAffinity",
    "NodeAffinity": (
        "1:requiredDuringSchedulingIgnoredDuringExecution:NodeSelector "
        "2:preferredDuringSchedulingIgnoredDuringExecution:*PreferredSchedulingTerm"
    ),
    "NodeSelector": "1:nodeSelectorTerms:*NodeSelectorTerm",
    "NodeSelectorTerm": "1:matchExpressions:*NodeSelectorRequirement 2:matchFields:*NodeSelectorRequirement",
    "NodeSelectorRequirement": "1:key 2:operator 3:values:*string",
    "PreferredSchedulingTerm": "1:weight:int 2:preference:NodeSelectorTerm",
    "PodAffinity": (
        "1:requiredDuringSchedulingIgnoredDuringExecution:*PodAffinityTerm "
        "2:preferredDuringSchedulingIgnoredDuringExecution:*WeightedPodAffinityTerm"
    ),
    "PodAffinityTerm": (
        "1:labelSelector:LabelSelector 2:namespaces:*string 3:topologyKey 4:namespaceSelector:LabelSelector 5:matchLabelKeys:*string "
        "6:mismatchLabelKeys:*string"
    ),
    "WeightedPodAffinityTerm": "1:weight:int 2:podAffinityTerm:PodAffinityTerm",
    "PodAntiAffinity": (
        "1:requiredDuringSchedulingIgnoredDuringExecution:*PodAffinityTerm "
        "2:preferredDuringSchedulingIgnoredDuringExecution:*WeightedPodAffinityTerm"
    ),
    "Toleration": "1:key 2:operator 3:value 4:effect 5:tolerationSeconds:int?",
    "HostAlias": "1:ip 2:hostnames:*string",
    "PodDNSConfig": "1:nameservers:*string 2:searches:*string 3:options:*PodDNSConfigOption",
    "PodDNSConfigOption": "1:name 2:value:string?",
    "PodReadinessGate": "1:conditionType",
    "TopologySpreadConstraint": (
        "1:maxSkew:int 2:topologyKey 3:whenUnsatisfiable 4:labelSelector:LabelSelector 5:minDomains:int? 6:nodeAffinityPolicy:string? "
        "7:nodeTaintsPolicy:string? 8:matchLabelKeys:*string"
    ),
    "PodOS": "1:name",
    "PodSchedulingGate": "1:name",
    "PodResourceClaim": "1:name 3:resourceClaimName:string? 4:resourceClaimTemplateName:string?",
    "PodSchedulingGroup": "1:podGroupName:string?",
    "PersistentVolumeSpec": (
        "1:capacity:map:Quantity 2::^PersistentVolumeSource 3:accessModes:*string 4:claimRef:ObjectReference "
        "5:persistentVolumeReclaimPolicy 6:storageClassName 7:mountOptions:*string 8:volumeMode:string? 9:nodeAffinity:VolumeNodeAffinity "
        "10:volumeAttributesClassName:string?"
    ),
    "PersistentVolumeSource": (
        "1:gcePersistentDisk:GCEPersistentDiskVolumeSource 2:awsElasticBlockStore:AWSElasticBlockStoreVolumeSource "
        "3:hostPath:HostPathVolumeSource 4:glusterfs:GlusterfsPersistentVolumeSource 5:nfs:NFSVolumeSource "
        "6:rbd:RBDPersistentVolumeSource 7:iscsi:ISCSIPersistentVolumeSource 8:cinder:CinderPersistentVolumeSource "
        "9:cephfs:CephFSPersistentVolumeSource 10:fc:FCVolumeSource 11:flocker:FlockerVolumeSource "
        "12:flexVolume:FlexPersistentVolumeSource 13:azureFile:AzureFilePersistentVolumeSource "
        "14:vsphereVolume:VsphereVirtualDiskVolumeSource 15:quobyte:QuobyteVolumeSource 16:azureDisk:AzureDiskVolumeSource "
        "17:photonPersistentDisk:PhotonPersistentDiskVolumeSource 18:portworxVolume:PortworxVolumeSource "
        "19:scaleIO:ScaleIOPersistentVolumeSource 20:local:LocalVolumeSource 21:storageos:StorageOSPersistentVolumeSource "
        "22:csi:CSIPersistentVolumeSource"
    ),
    "GlusterfsPersistentVolumeSource": "1:endpoints 2:path 3:readOnly:bool 4:endpointsNamespace:string?",
    "RBDPersistentVolumeSource": "1:monitors:*string 2:image 3:fsType 4:pool 5:user 6:keyring 7:secretRef:SecretReference 8:readOnly:bool",
    "SecretReference": "1:name 2:namespace",
    "ISCSIPersistentVolumeSource": (
        "1:targetPortal 2:iqn 3:lun:int 4:iscsiInterface 5:fsType 6:readOnly:bool 7:portals:*string 8:chapAuthDiscovery:bool "
        "10:secretRef:SecretReference 11:chapAuthSession:bool 12:initiatorName:string?"
    ),
    "CinderPersistentVolumeSource": "1:volumeID 2:fsType 3:readOnly:bool 4:secretRef:SecretReference",
    "CephFSPersistentVolumeSource": "1:monitors:*string 2:path 3:user 4:secretFile 5:secretRef:SecretReference 6:readOnly:bool",
    "FlexPersistentVolumeSource": "1:driver 2:fsType 3:secretRef:SecretReference 4:readOnly:bool 5:options:map",
    "AzureFilePersistentVolumeSource": "1:secretName 2:shareName 3:readOnly:bool 4:secretNamespace:string?",
    "ScaleIOPersistentVolumeSource": (
        "1:gateway 2:system 3:secretRef:SecretReference 4:sslEnabled:bool 5:protectionDomain 6:storagePool 7:storageMode 8:volumeName "
        "9:fsType 10:readOnly:bool"
    ),
    "LocalVolumeSource": "1:path 2:fsType:string?",
    "StorageOSPersistentVolumeSource": "1:volumeName 2:volumeNamespace 3:fsType 4:readOnly:bool 5:secretRef:ObjectReference",
    "CSIPersistentVolumeSource": (
        "1:driver 2:volumeHandle 3:readOnly:bool 4:fsType 5:volumeAttributes:map 6:controllerPublishSecretRef:SecretReference "
        "7:nodeStageSecretRef:SecretReference 8:nodePublishSecretRef:SecretReference 9:controllerExpandSecretRef:SecretReference "
        "10:nodeExpandSecretRef:SecretReference"
    ),
    "VolumeNodeAffinity": "1:required:NodeSelector",
}
