"""Exit codes, the same for every command (docs/manifests/cli.md)."""

GOOD = 0
# the manifests have findings: errors, or differences where a command looks for differences
FINDINGS = 1
# the command line is wrong, or an input cannot be read
UNUSABLE = 2
# something was lost in translation, and --strict was given
LOSSES = 3
# nothing was found, and not everything could be checked
UNJUDGED = 4
# a server, an operator or a provider whose event loop stood still has ended itself (`EX_SOFTWARE` of sysexits.h)
STALLED = 70
