"""Manifests that people wrote: read, judged, rendered, converted, compared."""
