"""Images: from a source that somebody named to a checked, read-only file that disks are laid over.

`library.Images` is what other parts use. What it rests on, from the bottom: `sources` (what can be named), `reach` and `http` (bytes
from a server), `registry` and `layers` (files in container images), `unpack` (wrappers), `formats` and the modules of headers
(what a file says it is, read by us before any other program sees it), `convert` (qemu-img, confined). `build` makes images out of
Debian packages.
"""
