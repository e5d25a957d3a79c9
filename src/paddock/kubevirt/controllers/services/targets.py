"""The kinds that the controllers of services read and write."""

from paddock.kubernetes.client.target import Target, declared, plain
from paddock.kubernetes.core import service
from paddock.kubernetes.core.service import Service
from paddock.kubevirt.kinds import instance
from paddock.kubevirt.kinds.instance import VirtualMachineInstance

SERVICES: Target[Service] = declared(service.KINDS[0], Service)
INSTANCES: Target[VirtualMachineInstance] = declared(instance.KINDS[0], VirtualMachineInstance)
ENDPOINTS = plain("", "v1", "endpoints", "Endpoints")
SLICES = plain("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
