"""Vitistack's Machine, NetworkConfiguration and MachineTemplate (docs/spec/vitistack.md)."""
