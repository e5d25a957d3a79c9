"""Uploads of disks: tokens for them, and the paths that clients of CDI send images to (docs/spec/kubevirt.md 5.8)."""
