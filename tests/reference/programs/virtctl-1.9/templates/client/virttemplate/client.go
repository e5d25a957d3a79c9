// Package virttemplate stands in for the client of VirtualMachineTemplates, as far as virtctl and KubeVirt's tests name it. There is none in this build.
package virttemplate

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"kubevirt.io/virt-template-api/core/subresourcesv1beta1"
	"kubevirt.io/virt-template-api/core/v1beta1"
)

// Interface leads to the versions.
type Interface interface {
	TemplateV1beta1() TemplateV1beta1Interface
}

// TemplateV1beta1Interface leads to the resources.
type TemplateV1beta1Interface interface {
	RESTClient() rest.Interface
	VirtualMachineTemplates(namespace string) VirtualMachineTemplateInterface
	VirtualMachineTemplateRequests(namespace string) VirtualMachineTemplateRequestInterface
}

// VirtualMachineTemplateInterface is about templates.
type VirtualMachineTemplateInterface interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*v1beta1.VirtualMachineTemplate, error)
	Process(ctx context.Context, name string, opts subresourcesv1beta1.ProcessOptions) (*subresourcesv1beta1.ProcessedVirtualMachineTemplate, error)
	CreateVirtualMachine(ctx context.Context, name string, opts subresourcesv1beta1.ProcessOptions) (*subresourcesv1beta1.ProcessedVirtualMachineTemplate, error)
}

// VirtualMachineTemplateRequestInterface is about requests for templates.
type VirtualMachineTemplateRequestInterface interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*v1beta1.VirtualMachineTemplateRequest, error)
	Create(ctx context.Context, request *v1beta1.VirtualMachineTemplateRequest, opts metav1.CreateOptions) (*v1beta1.VirtualMachineTemplateRequest, error)
}

// NewForConfig says that there is no client.
func NewForConfig(*rest.Config) (Interface, error) {
	return nil, errors.New("this virtctl was built without the modules of VirtualMachineTemplates")
}
