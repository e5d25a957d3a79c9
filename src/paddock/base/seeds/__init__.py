"""Small disks that tell a guest what it is: cloud-init, sysprep, and the keys of config maps and secrets as files.

Pure: the same facts give the same bytes, so that a guest does not take itself for a new one after a restart.
"""
