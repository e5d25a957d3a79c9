"""The controller of VirtRigaud's VMSnapshots."""
