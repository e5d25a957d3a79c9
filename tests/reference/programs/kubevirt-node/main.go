// Installer prints what an administrator applies to install KubeVirt, one object a line: the definition of KubeVirt, virt-operator
// with its rights, and the object that asks for the rest. Its argument is the prefix of the images, which carry KubeVirt's version.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/rbac"
)

const (
	namespace  = "kubevirt"
	mostUrgent = 1000000000
	infra      = uint8(1)
	failures   = 60
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func say(object any) {
	must(json.NewEncoder(os.Stdout).Encode(object))
}

func main() {
	if len(os.Args) != 3 {
		must(fmt.Errorf("usage: installer REGISTRY VERSION"))
	}
	registry, version := os.Args[1], os.Args[2]
	say(corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}},
	})
	say(schedulingv1.PriorityClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"},
		ObjectMeta: metav1.ObjectMeta{Name: "kubevirt-cluster-critical"},
		Value:      mostUrgent,
	})
	definition, err := components.NewKubeVirtCrd()
	must(err)
	say(definition)
	for _, each := range rbac.GetAllOperator(namespace) {
		say(each)
	}
	operator := components.NewOperatorDeployment(
		namespace, registry, "", version, "2", version, "", "", "", "", "", "", "", "", "", "", "", "", "", "", corev1.PullNever)
	// One node has no use for a second copy.
	*operator.Spec.Replicas = 1
	// It computes for seconds before it listens, which takes a busy machine longer than its own probe allows.
	operator.Spec.Template.Spec.Containers[0].LivenessProbe.FailureThreshold = failures
	say(operator)
	say(cluster())
}

func cluster() virtv1.KubeVirt {
	replicas, templates := infra, false
	return virtv1.KubeVirt{
		TypeMeta:   metav1.TypeMeta{APIVersion: "kubevirt.io/v1", Kind: "KubeVirt"},
		ObjectMeta: metav1.ObjectMeta{Name: "kubevirt", Namespace: namespace},
		Spec: virtv1.KubeVirtSpec{
			ImagePullPolicy: corev1.PullNever,
			Infra:           &virtv1.ComponentConfig{Replicas: &replicas},
			Configuration: virtv1.KubeVirtConfiguration{
				// The proxy lacks the modules of virt-template.
				VirtTemplateDeployment: &virtv1.VirtTemplateDeployment{Enabled: &templates},
				DeveloperConfiguration: &virtv1.DeveloperConfiguration{
					UseEmulation: true,
					// containerd does not find what it mounts so by the digest of an imported image.
					DisabledFeatureGates: []string{"ImageVolume"},
				},
			},
		},
	}
}
