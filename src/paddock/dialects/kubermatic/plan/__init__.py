"""Decisions of Kubermatic's dialect: the objects of a translation to write to a cluster, and the status to report. Pure."""
