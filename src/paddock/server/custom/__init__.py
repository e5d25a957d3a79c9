"""Kinds that users bring: the CustomResourceDefinition, what it must be, and the resources that it makes."""
