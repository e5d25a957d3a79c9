"""The Common Expression Language, as Kubernetes has it (docs/design/0006-cel.md): text in, a function with a budget out.

`syntax` reads, `typing` checks, `program` makes closures, `values` and `functions` are what they compute with. Pure.
"""
