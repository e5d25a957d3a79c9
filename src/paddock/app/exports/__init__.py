"""The paths that exported disks are fetched from."""
