// Installation prints what virt-operator makes of a cluster so that virt-api and virt-controller can work in it, one object a line.
// With the word "read" it reads objects of CDI instead, one a line, as CDI's own types, and says of each what they do not know.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	cdi "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/install"
	"kubevirt.io/kubevirt/pkg/virt-operator/util"
)

const (
	namespace = "kubevirt"
	largest   = 1 << 24
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "read" {
		read()
		return
	}
	printAll()
}

// printAll leaves out what needs virt-operator itself to run, pods, and what other projects look after.
func printAll() {
	strategy, err := install.GenerateCurrentInstallStrategy(&util.KubeVirtDeploymentConfig{Namespace: namespace}, "", namespace)
	must(err)
	own, err := components.NewKubeVirtCrd()
	must(err)
	say(own)
	sayEach(strategy.CRDs())
	sayEach(strategy.ServiceAccounts())
	sayEach(strategy.ClusterRoles())
	sayEach(strategy.ClusterRoleBindings())
	sayEach(strategy.Roles())
	sayEach(strategy.RoleBindings())
	sayEach(strategy.ValidatingAdmissionPolicies())
	sayEach(strategy.ValidatingAdmissionPolicyBindings())
	say(components.NewVirtAPIValidatingWebhookConfiguration(namespace))
	say(components.NewVirtAPIMutatingWebhookConfiguration(namespace))
}

func sayEach[T any](objects []T) {
	for _, object := range objects {
		say(object)
	}
}

func say(object any) {
	must(json.NewEncoder(os.Stdout).Encode(object))
}

func read() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, largest)
	for lines.Scan() {
		object := &unstructured.Unstructured{}
		must(object.UnmarshalJSON(lines.Bytes()))
		problem := ""
		if err := strictly(object); err != nil {
			problem = err.Error()
		}
		say(problem)
	}
	must(lines.Err())
}

func strictly(object *unstructured.Unstructured) error {
	kinds := map[string]any{"DataVolume": &cdi.DataVolume{}, "DataSource": &cdi.DataSource{}}
	into, known := kinds[object.GetKind()]
	if !known {
		return fmt.Errorf("nothing is known of %s", object.GetKind())
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true)
}
