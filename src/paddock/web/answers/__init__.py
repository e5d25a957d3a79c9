"""Answers of the console's API. `tools/webtypes` writes the page's types from these structs.

Nothing is optional: an empty text, 0, -1 or an empty list stands for a value that is not known.
"""
