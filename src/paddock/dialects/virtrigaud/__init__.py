"""The VirtRigaud dialect: ten kinds of `infra.virtrigaud.io/v1beta1` (docs/spec/virtrigaud.md section 1)."""
