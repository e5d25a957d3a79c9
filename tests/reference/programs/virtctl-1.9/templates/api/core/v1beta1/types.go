// Package v1beta1 stands in for the types of VirtualMachineTemplates, as far as virtctl, virt-controller and KubeVirt's tests name them.
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kubevirt.io/virt-template-api/core"
)

// GroupVersion is that of the types.
var GroupVersion = schema.GroupVersion{Group: core.GroupName, Version: "v1beta1"}

// Parameter is filled in when a template is processed.
type Parameter struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName,omitempty"`
	Description string `json:"description,omitempty"`
	Value       string `json:"value,omitempty"`
	Generate    string `json:"generate,omitempty"`
	From        string `json:"from,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// VirtualMachineTemplateSpec is a machine with parameters.
type VirtualMachineTemplateSpec struct {
	VirtualMachine *runtime.RawExtension `json:"virtualMachine"`
	Parameters     []Parameter           `json:"parameters,omitempty"`
	Message        string                `json:"message,omitempty"`
}

// ConditionReady is the condition that says whether a template can be used.
const ConditionReady = "Ready"

// VirtualMachineTemplateStatus is what is known of a template.
type VirtualMachineTemplateStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// VirtualMachineTemplate is a template.
type VirtualMachineTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              VirtualMachineTemplateSpec   `json:"spec"`
	Status            VirtualMachineTemplateStatus `json:"status,omitempty"`
}

// DeepCopy copies the outermost level: nobody changes more of it here.
func (t *VirtualMachineTemplate) DeepCopy() *VirtualMachineTemplate {
	copied := *t
	return &copied
}

// DeepCopyObject is the same for whoever does not know what it is.
func (t *VirtualMachineTemplate) DeepCopyObject() runtime.Object {
	return t.DeepCopy()
}

// VirtualMachineReference names a machine.
type VirtualMachineReference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// VirtualMachineTemplateRequestSpec says what becomes a template.
type VirtualMachineTemplateRequestSpec struct {
	VirtualMachineRef VirtualMachineReference `json:"virtualMachineRef"`
	TemplateName      string                  `json:"templateName,omitempty"`
}

// TemplateReference names a template.
type TemplateReference struct {
	Name string `json:"name"`
}

// VirtualMachineTemplateRequestStatus says what became of it.
type VirtualMachineTemplateRequestStatus struct {
	TemplateRef *TemplateReference `json:"templateRef,omitempty"`
	Conditions  []metav1.Condition `json:"conditions,omitempty"`
}

// VirtualMachineTemplateRequest asks for a template of a machine.
type VirtualMachineTemplateRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              VirtualMachineTemplateRequestSpec   `json:"spec"`
	Status            VirtualMachineTemplateRequestStatus `json:"status,omitempty"`
}
