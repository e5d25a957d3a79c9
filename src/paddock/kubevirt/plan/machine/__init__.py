"""Decisions about a VirtualMachine: its run strategy, its hardware, its status."""
