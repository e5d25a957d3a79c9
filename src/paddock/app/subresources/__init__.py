"""`subresources.kubevirt.io`: what can be done with machines that run (docs/spec/kubevirt.md section 4)."""
