"""The lowest row: values and rules that know nothing of Kubernetes' API or of virtual machines. Imports the standard library only.

On it stand two libraries that the engine and drivers share: `images` fetches, judges and keeps images of disks, and `seeds` writes the
disks that guests read at their first boot.
"""
