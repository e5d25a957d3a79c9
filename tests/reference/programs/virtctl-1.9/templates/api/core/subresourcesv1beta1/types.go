// Package subresourcesv1beta1 stands in for what is asked of a template, as far as virtctl names it.
package subresourcesv1beta1

import virtv1 "kubevirt.io/api/core/v1"

// ProcessOptions are the values of a template's parameters.
type ProcessOptions struct {
	Parameters map[string]string `json:"parameters,omitempty"`
}

// ProcessedVirtualMachineTemplate is what a template has become.
type ProcessedVirtualMachineTemplate struct {
	VirtualMachine *virtv1.VirtualMachine `json:"virtualMachine"`
	Message        string                 `json:"message,omitempty"`
}
