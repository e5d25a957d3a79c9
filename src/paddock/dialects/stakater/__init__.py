"""Stakater's infrastructure API: `infrastructure.stakater.com/v1 VirtualMachine` (docs/spec/stakater.md)."""
