"""Bootable images made from Debian packages, where nothing else can be downloaded: `tiny`, for tests and trials, and `debian`.

No loop device, no mount, and no daemon: file systems are written into files, and the partition table and the boot loader around them.
"""
