"""Stakater's VirtualMachine, kept as it is said (docs/spec/stakater.md)."""
