// Package template stands in for what makes machines of templates, as far as virtctl names it. It makes none.
package template

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"
	virtv1 "kubevirt.io/api/core/v1"

	"kubevirt.io/virt-template-api/core/v1beta1"
)

var errMissing = errors.New("this virtctl was built without the modules of VirtualMachineTemplates")

// Processor makes machines.
type Processor struct{}

// GetDefaultProcessor is the only one.
func GetDefaultProcessor() Processor { return Processor{} }

// Process says that it cannot.
func (Processor) Process(*v1beta1.VirtualMachineTemplate) (*virtv1.VirtualMachine, string, error) {
	return nil, "", errMissing
}

// MergeParameters says that it cannot.
func MergeParameters([]v1beta1.Parameter, map[string]string) ([]v1beta1.Parameter, error) {
	return nil, errMissing
}

// ValidateParameterReferences finds nothing.
func ValidateParameterReferences(*v1beta1.VirtualMachineTemplate) ([]string, field.ErrorList) {
	return nil, nil
}
