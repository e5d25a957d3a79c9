"""The rules across fields of a Machine, each a pure function (docs/spec/vitistack.md sections 1.1, 4.2 and 5)."""

from paddock.dialects.vitistack.rules import boot, changes, cloudinit, disks, domain, form, networks, template

RULES = (*form.RULES, *template.RULES, *disks.RULES, *networks.RULES, *cloudinit.RULES, *domain.RULES, *boot.RULES)
TRANSITIONS = changes.TRANSITIONS
