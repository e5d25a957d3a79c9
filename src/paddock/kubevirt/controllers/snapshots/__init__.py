"""Machines and volumes at one moment: VolumeSnapshots, VirtualMachineSnapshots, and restores from them.

A VirtualMachineSnapshot makes a content, which has a copy of the machine and a VolumeSnapshot for each persistent volume. The engine's
name of a snapshot is the UID of its VolumeSnapshot. A restore makes claims whose data source is a VolumeSnapshot, and leaves it to
the controller of claims to fill them.
"""
