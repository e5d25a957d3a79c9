// Machines makes, follows, changes and deletes a VirtualMachine twice: through KubeVirt's own client-go, and through the dynamic client
// of Kubernetes' client-go. Each follows with a watch of its own and with an informer; what they see is said one JSON document a line.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	kubevirt "kubevirt.io/api/core/v1"
	"kubevirt.io/client-go/kubecli"
)

const patience = time.Minute

var (
	kind = kubevirt.SchemeGroupVersion.WithResource("virtualmachines")
	lock sync.Mutex
)

type line struct {
	Event string `json:"event"`
	By    string `json:"by,omitempty"`
	Name  string `json:"name,omitempty"`
	Value string `json:"value,omitempty"`
}

func say(said line) {
	lock.Lock()
	defer lock.Unlock()
	must(json.NewEncoder(os.Stdout).Encode(said))
}

func must(err error) {
	if err != nil {
		_ = json.NewEncoder(os.Stdout).Encode(line{Event: "failed", Value: err.Error()})
		os.Exit(1)
	}
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the server to ask")
	namespace := flag.String("namespace", "default", "the namespace to work in")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := kubecli.GetKubevirtClientFromFlags("", *kubeconfig)
	must(err)
	anything, err := dynamic.NewForConfig(client.Config())
	must(err)
	ofKubevirt(ctx, client, *namespace)
	ofKubernetes(ctx, anything, *namespace)
	say(line{Event: "end"})
}

func ofKubevirt(ctx context.Context, client kubecli.KubevirtClient, namespace string) {
	machines := client.VirtualMachine(namespace)
	watching, err := machines.Watch(ctx, metav1.ListOptions{})
	must(err)
	defer watching.Stop()
	listing := cache.NewListWatchFromClient(client.RestClient(), kind.Resource, namespace, fields.Everything())
	informer := cache.NewSharedIndexInformer(listing, &kubevirt.VirtualMachine{}, 0, cache.Indexers{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := following(ctx, informer, "kubevirt informer")

	made, err := machines.Create(ctx, typed("typed"), metav1.CreateOptions{})
	must(err)
	say(line{Event: "made", By: "kubevirt", Name: made.Name, Value: string(*made.Spec.RunStrategy)})
	stale := made.DeepCopy()
	must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		found, err := machines.Get(ctx, "typed", metav1.GetOptions{})
		if err != nil {
			return err
		}
		found.Spec.Template.Spec.Domain.CPU = &kubevirt.CPU{Cores: 2}
		_, err = machines.Update(ctx, found, metav1.UpdateOptions{})
		return err
	}))
	stale.Labels = map[string]string{"late": "yes"}
	_, err = machines.Update(ctx, stale, metav1.UpdateOptions{})
	say(line{Event: "refused", By: "kubevirt", Value: string(errors.ReasonForError(err))})
	patch := []byte(`{"metadata":{"labels":{"patched":"yes"}}}`)
	_, err = machines.Patch(ctx, "typed", types.MergePatchType, patch, metav1.PatchOptions{})
	must(err)
	found, err := machines.List(ctx, metav1.ListOptions{LabelSelector: "patched=yes"})
	must(err)
	for _, each := range found.Items {
		say(line{Event: "listed", By: "kubevirt", Name: each.Name})
	}
	must(machines.Delete(ctx, "typed", metav1.DeleteOptions{}))
	drain(watching, "kubevirt")
	await(ctx, gone)
}

func ofKubernetes(ctx context.Context, client dynamic.Interface, namespace string) {
	machines := client.Resource(kind).Namespace(namespace)
	watching, err := machines.Watch(ctx, metav1.ListOptions{})
	must(err)
	defer watching.Stop()
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	gone := following(ctx, factory.ForResource(kind).Informer(), "kubernetes informer")

	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed("plain"))
	must(err)
	made, err := machines.Create(ctx, &unstructured.Unstructured{Object: body}, metav1.CreateOptions{})
	must(err)
	say(line{Event: "made", By: "kubernetes", Name: made.GetName()})
	patch := []byte(`[{"op":"add","path":"/metadata/labels","value":{"patched":"yes"}}]`)
	_, err = machines.Patch(ctx, "plain", types.JSONPatchType, patch, metav1.PatchOptions{})
	must(err)
	must(machines.Delete(ctx, "plain", metav1.DeleteOptions{}))
	drain(watching, "kubernetes")
	await(ctx, gone)
}

func nameOf(object any) string {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err.Error()
	}
	return accessor.GetName()
}

func typed(name string) *kubevirt.VirtualMachine {
	halted, size := kubevirt.RunStrategyHalted, resource.MustParse("128Mi")
	return &kubevirt.VirtualMachine{
		TypeMeta:   metav1.TypeMeta{APIVersion: kubevirt.GroupVersion.String(), Kind: "VirtualMachine"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: kubevirt.VirtualMachineSpec{
			RunStrategy: &halted,
			Template: &kubevirt.VirtualMachineInstanceTemplateSpec{
				Spec: kubevirt.VirtualMachineInstanceSpec{
					Domain: kubevirt.DomainSpec{Memory: &kubevirt.Memory{Guest: &size}},
				},
			},
		},
	}
}

// drain says what a watch brought, up to the end of the machine.
func drain(watching watch.Interface, by string) {
	for event := range watching.ResultChan() {
		say(line{Event: "watched", By: by, Name: nameOf(event.Object), Value: string(event.Type)})
		if event.Type == watch.Deleted {
			return
		}
	}
	say(line{Event: "failed", By: by, Value: "the watch ended"})
}

func await(ctx context.Context, done <-chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
		must(ctx.Err())
	}
}

// following starts an informer that says what it sees, and waits until it is filled. What it returns is closed at the first deletion.
func following(ctx context.Context, informer cache.SharedIndexInformer, by string) <-chan struct{} {
	gone := make(chan struct{})
	var once sync.Once
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { say(line{Event: "added", By: by, Name: nameOf(object)}) },
		DeleteFunc: func(object any) {
			say(line{Event: "deleted", By: by, Name: nameOf(object)})
			once.Do(func() { close(gone) })
		},
	})
	must(err)
	go informer.Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		say(line{Event: "failed", By: by, Value: "not synced"})
	}
	return gone
}
