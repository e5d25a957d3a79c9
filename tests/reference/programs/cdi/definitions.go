//go:build definitions

// Package cdi names what CDI's definitions are made from: its types, and the generator that it uses.
package cdi

import (
	_ "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	_ "sigs.k8s.io/controller-tools/cmd/controller-gen"
)
