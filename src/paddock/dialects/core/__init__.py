"""The built-in kinds of Kubernetes that machines refer to and that translations produce.

The API server of a cluster has these kinds itself, so they get no CRD (`builtin`), with one exception:
NetworkAttachmentDefinition. Where Kubernetes fills a default in, the text of the field names it and the declaration leaves the
field absent: a manifest is rendered as it was written.
"""
