"""The checklist items of ``docs/spec`` that are met, from the results of the tests.

``checklist`` reads the items, ``plugin`` records what pytest ran, ``reasons`` reads why other items are not met,
``verdict`` puts these together and ``page`` prints ``docs/evidence/conformance.md``. ``python -m tools.conformance``
runs the last four on the results of a test run.
"""
