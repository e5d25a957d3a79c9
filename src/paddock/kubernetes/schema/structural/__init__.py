"""The engine behind CustomResourceDefinitions: a structural OpenAPI schema, checked, and what it does to objects.

`rules` checks the schema itself, `node` reads it, `shaping` prunes and fills in defaults, `validating` checks values with
ratcheting, `expressions` runs the CEL rules. Pure.
"""
