"""The kinds that the controllers of services read and write."""

from paddock.client.target import Target, declared, plain
from paddock.dialects.core import service
from paddock.dialects.core.service import Service
from paddock.dialects.kubevirt import instance
from paddock.dialects.kubevirt.instance import VirtualMachineInstance

SERVICES: Target[Service] = declared(service.KINDS[0], Service)
INSTANCES: Target[VirtualMachineInstance] = declared(instance.KINDS[0], VirtualMachineInstance)
ENDPOINTS = plain("", "v1", "endpoints", "Endpoints")
SLICES = plain("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
