"""The controllers of Stakater's VirtualMachine (docs/spec/stakater.md)."""
