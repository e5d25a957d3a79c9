"""The conformance suite: judges any `Driver` by what it does to machines.

Each case does its operation for real, looks for the effect with Describe, ListVMs and GetDiskInfo, and deletes what it made.
"""
