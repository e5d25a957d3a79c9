"""What KubeVirt's own programs would be seen as, made of the objects that are stored (docs/design/0026-views.md)."""
