"""Volumes: disks of machines as files, and what is done with them while no machine uses them."""
