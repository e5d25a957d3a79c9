// Package core stands in for kubevirt.io/virt-template-api/core, which the Go module proxy does not have. It has what virtctl and
// virt-controller name of it, so that they can be built: everything but `virtctl template` and exports of templates is their own.
package core

const (
	// GroupName is the group of VirtualMachineTemplates.
	GroupName = "template.kubevirt.io"
	// SingularResourceName is what a template is called.
	SingularResourceName = "virtualmachinetemplate"
	// PluralResourceName is what several are called.
	PluralResourceName = "virtualmachinetemplates"
	// SingularRequestResourceName is what a request for a template is called.
	SingularRequestResourceName = "virtualmachinetemplaterequest"
)
