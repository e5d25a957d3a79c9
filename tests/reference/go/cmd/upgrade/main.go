// Upgrade takes an object that was written by updates over to server-side apply, as operators do when they change their way of
// writing, and reports who owns what before and after.
package main

import (
	"context"
	"flag"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"paddock.example/tests/reference/go/operator"
	"paddock.example/tests/reference/go/report"
)

const manager = "post-office"

func main() {
	// controller-runtime has this flag already
	path := flag.Lookup("kubeconfig")
	namespace := flag.String("namespace", "default", "where the object is")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", path.Value.String())
	report.Must(err)
	server, err := client.New(config, client.Options{Scheme: operator.Scheme()})
	report.Must(err)

	ctx := context.Background()
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: *namespace, Name: "upgraded"},
		Data:       map[string]string{"kept": "1", "dropped": "1"},
	}
	report.Must(server.Create(ctx, object, client.FieldOwner(manager)))
	say("created", object)

	patch, err := csaupgrade.UpgradeManagedFieldsPatch(object, sets.New(manager), manager)
	report.Must(err)
	report.Must(server.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch)))
	say("upgraded", object)

	wanted := corev1apply.ConfigMap("upgraded", *namespace).WithData(map[string]string{"kept": "2"})
	report.Must(server.Apply(ctx, wanted, client.FieldOwner(manager)))
	report.Must(server.Get(ctx, client.ObjectKeyFromObject(object), object))
	say("applied", object)

	other := corev1apply.ConfigMap("upgraded", *namespace).WithData(map[string]string{"kept": "3"})
	report.Say(report.Line{Event: "refused", Value: fmt.Sprint(server.Apply(ctx, other, client.FieldOwner("somebody-else")))})
}

func say(event string, object *corev1.ConfigMap) {
	line := report.Line{Event: event, Value: fmt.Sprint(object.Data), Version: object.ResourceVersion}
	for _, entry := range object.ManagedFields {
		line.Names = append(line.Names, fmt.Sprintf("%s %s %s", entry.Manager, entry.Operation, entry.FieldsV1.Raw))
	}
	report.Say(line)
}
