"""The kinds that are looked at and written here."""

from paddock.client.target import Target, plain
from paddock.dialects.core.service import Service
from paddock.dialects.kubevirt.instance import VirtualMachineInstance

SERVICES = Target("", "v1", "services", "Service", Service)
INSTANCES = Target("kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance", VirtualMachineInstance)
ENDPOINTS = plain("", "v1", "endpoints", "Endpoints")
SLICES = plain("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
