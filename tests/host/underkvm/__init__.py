"""Machines under KVM: a bare guest wherever /dev/kvm opens, and real guests where a processor runs them."""
