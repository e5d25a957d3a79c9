"""Paddock: virtual machines declared as Kubernetes resources, in five dialects.

The package itself holds no code: each folder below is one layer, and the contracts in ``.importlinter`` say which
layer may import which (``docs/design/0001-layout-and-layers.md`` gives the reasons).
"""

__version__ = "0.1.0"
