"""Descriptions of machines and hosts, read in few calls. For threads."""

import json
from typing import Any

from pyVmomi import vim

from paddock.contract import messages as m
from paddock_drivers.kit import refusals
from paddock_drivers.vsphere import hosts, observed
from paddock_drivers.vsphere.target import VSphereTarget


class VSphereDescriptions:
    def __init__(self, target: VSphereTarget) -> None:
        self._target = target
        # Hosts are renamed seldom; a name that is not known is read anew.
        self._hosts: dict[Any, str] = {}

    def describe(self, request: m.DescribeRequest) -> m.DescribeResponse:
        """Return a machine's state. It does not exist only if the target says so."""
        machine = self._target.find(request.id, observed.DETAILED)
        if machine is None:
            return m.DescribeResponse()
        host = machine.get("runtime.host")
        if host is not None and host not in self._hosts:
            self._read_hosts()
        content = self._target.connection.content
        vcenter = str(content.about.instanceUuid or "") if self._target.connection.is_vcenter else ""
        return m.DescribeResponse(
            exists=True,
            power_state=observed.power_state(machine),
            ips=observed.addresses(machine),
            console_url=observed.console_url(self._target.settings.endpoint.origin, vcenter, machine),
            provider_raw_json=json.dumps(observed.details(machine, self._hosts), sort_keys=True),
        )

    def every(self) -> m.ListVMsResponse:
        """Return all machines that the account sees."""
        self._read_hosts()
        found = sorted(self._target.every(observed.PATHS), key=lambda each: (each.name, each.id))
        return m.ListVMsResponse(vms=tuple(observed.listed(each, self._hosts) for each in found))

    def _read_hosts(self) -> None:
        self._hosts = {each.ref: each.name for each in self._target.inventory.every(vim.HostSystem, ("name",))}

    def hosts(self) -> m.ListHostsResponse:
        inventory = self._target.inventory
        rows = inventory.every(vim.HostSystem, hosts.PATHS)
        guests = hosts.used(self._target.every(hosts.GUESTS))
        stores = {each.ref: int(each.get("summary.freeSpace", 0)) for each in inventory.every(vim.Datastore, ("summary.freeSpace",))}
        clusters = {each.ref: each.name for each in inventory.every(vim.ComputeResource, ("name",))}
        found = sorted(rows, key=lambda each: each.name)
        return m.ListHostsResponse(hosts=tuple(hosts.host_of(each, guests, stores, clusters) for each in found))

    def host(self, request: m.GetHostInfoRequest) -> m.HostInfo:
        """Return one host; raises NotFound when there is none."""
        for each in self.hosts().hosts:
            if each.id == request.host_id:
                return each
        raise refusals.not_found(f"host {request.host_id[:64]} does not exist")
