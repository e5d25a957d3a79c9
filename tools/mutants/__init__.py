"""Mutants: small faults put into the product on purpose, each against one item of ``docs/spec``.

``mutants.toml`` lists them. ``python -m tools.mutants`` puts each into a worktree of its own, runs the tests whose marks name the
item, and reports the mutants that no such test noticed.
"""
