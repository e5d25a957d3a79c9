"""The promises of a provider of machines: the messages and calls of `provider.v1`, and both ends of its wire.

A driver implements `driver.Driver`; `client.ProviderClient` implements it too, for a provider at an address. The package
knows no hypervisor, and of Kubernetes how fields are declared (docs/design/0017-provider-contract.md).
"""
