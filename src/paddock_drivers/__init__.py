"""Drivers: what carries out a provider's calls on one kind of hypervisor. Each implements `contract.driver.Driver`."""
