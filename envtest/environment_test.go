package envtest_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"paddock.example/envtest"
)

const longest = time.Minute

var machines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}

type object = map[string]any

func machine(name string) *unstructured.Unstructured {
	disks := []any{object{"name": "root", "disk": object{"bus": "virtio"}}}
	volumes := []any{object{"name": "root", "containerDisk": object{"image": "registry.example.com/disk:1"}}}
	domain := object{"memory": object{"guest": "128Mi"}, "devices": object{"disks": disks}}
	spec := object{"domain": domain, "volumes": volumes}
	return &unstructured.Unstructured{Object: object{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
		"metadata": object{"name": name},
		"spec":     object{"runStrategy": "Always", "template": object{"spec": spec}},
	}}
}

// started returns a client of an environment that ends with the test.
func started(t *testing.T, env *envtest.Environment) dynamic.Interface {
	t.Helper()
	began := time.Now()
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("started in %s", time.Since(began).Round(time.Millisecond))
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestAMachineRuns(t *testing.T) {
	ctx := context.Background()
	inDefault := started(t, &envtest.Environment{Nodes: 2}).Resource(machines).Namespace("default")
	if _, err := inDefault.Create(ctx, machine("web"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	isRunning := func(ctx context.Context) (bool, error) {
		found, err := inDefault.Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		status, _, err := unstructured.NestedString(found.Object, "status", "printableStatus")
		return status == "Running", err
	}
	if err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, longest, true, isRunning); err != nil {
		t.Fatal(err)
	}
}

func TestAReleaseKnowsItsFieldsAlone(t *testing.T) {
	later := machine("later")
	if err := unstructured.SetNestedField(later.Object, "Reboot", "spec", "template", "spec", "domain", "rebootPolicy"); err != nil {
		t.Fatal(err)
	}
	client := started(t, &envtest.Environment{KubeVirtRelease: "1.6"})
	_, err := client.Resource(machines).Namespace("default").Create(context.Background(), later, metav1.CreateOptions{FieldValidation: "Strict"})
	if err == nil || !strings.Contains(err.Error(), `unknown field "spec.template.spec.domain.rebootPolicy"`) {
		t.Fatalf("the field came with 1.8, and 1.6 says: %v", err)
	}
}

func TestAnEndLeavesNothing(t *testing.T) {
	env := &envtest.Environment{}
	if _, err := env.Start(); err != nil {
		t.Fatal(err)
	}
	kubeconfig := env.Kubeconfig()
	if _, err := os.Stat(kubeconfig); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := env.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(kubeconfig); !os.IsNotExist(err) {
		t.Fatalf("the directory is still there: %v", err)
	}
}

func TestAStartThatFailsSaysWhy(t *testing.T) {
	env := &envtest.Environment{KubeVirtRelease: "1.2"}
	if _, err := env.Start(); err == nil || !strings.Contains(err.Error(), "no release of KubeVirt from 1.3 to 1.9") {
		t.Fatalf("got %v", err)
	}
	missing := &envtest.Environment{Program: "/nowhere/paddock"}
	if _, err := missing.Start(); err == nil || !strings.Contains(err.Error(), "install Paddock") {
		t.Fatalf("got %v", err)
	}
}
