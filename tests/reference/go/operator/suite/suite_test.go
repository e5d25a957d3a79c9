// Package suite tests the operator as kubebuilder's scaffold does: envtest starts a server with the definitions of a directory, adds
// users, and the reconciler runs against it. Which programs envtest starts is for TEST_ASSET_KUBE_APISERVER and its like to say.
package suite

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"paddock.example/tests/reference/go/operator"
	"paddock.example/tests/reference/go/report"
)

const patience = 20 * time.Second

func started(t *testing.T) *envtest.Environment {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	environment := &envtest.Environment{
		CRDDirectoryPaths:        []string{os.Getenv("CRD_DIRECTORY")},
		ErrorIfCRDPathMissing:    true,
		AttachControlPlaneOutput: os.Getenv("VERBOSE") != "",
	}
	begin := time.Now()
	if _, err := environment.Start(); err != nil {
		t.Fatalf("start: %v", err)
	}
	report.Say(report.Line{Event: "started", Name: t.Name(), Millis: time.Since(begin).Milliseconds()})
	t.Cleanup(func() {
		begin := time.Now()
		if err := environment.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		report.Say(report.Line{Event: "stopped", Name: t.Name(), Millis: time.Since(begin).Milliseconds()})
	})
	return environment
}

func connect(t *testing.T, environment *envtest.Environment) client.Client {
	t.Helper()
	made, err := client.New(environment.Config, client.Options{Scheme: operator.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if done() {
			return
		}
	}
	t.Fatalf("not within %s: %s", patience, what)
}

func TestReconciler(t *testing.T) {
	environment := started(t)
	server := connect(t, environment)
	run(t, environment)
	ctx := t.Context()
	parcel := &operator.Parcel{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "books"},
		Spec:       operator.ParcelSpec{Address: "1 Main Street", Copies: 3},
	}
	must(t, server.Create(ctx, parcel))
	key := client.ObjectKeyFromObject(parcel)
	eventually(t, "status", func() bool {
		return server.Get(ctx, key, parcel) == nil && parcel.Status.Made == 3 && parcel.Status.ObservedGeneration == parcel.Generation
	})
	copies := func() int {
		var found corev1.ConfigMapList
		must(t, server.List(ctx, &found, client.InNamespace("default"), client.MatchingLabels{"parcel": "books"}))
		return len(found.Items)
	}
	if count := copies(); count != 3 {
		t.Fatalf("%d copies", count)
	}
	parcel.Spec.Copies = 1
	must(t, server.Update(ctx, parcel))
	eventually(t, "fewer copies", func() bool { return copies() == 1 })
	// A copy that somebody takes away comes back.
	must(t, server.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default"), client.MatchingLabels{"parcel": "books"}))
	eventually(t, "the copy again", func() bool { return copies() == 1 })
	must(t, server.Delete(ctx, parcel))
	eventually(t, "the end", func() bool { return errors.IsNotFound(server.Get(ctx, key, parcel)) })
}

func TestValidation(t *testing.T) {
	server := connect(t, started(t))
	parcel := &operator.Parcel{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "none"}}
	if err := server.Create(t.Context(), parcel); !errors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.address") {
		t.Fatalf("not refused: %v", err)
	}
	parcel.Spec = operator.ParcelSpec{Address: "here"}
	must(t, server.Create(t.Context(), parcel))
	if parcel.Spec.Copies != 1 {
		t.Fatalf("no default: %+v", parcel.Spec)
	}
}

func TestUsers(t *testing.T) {
	environment := started(t)
	user, err := environment.AddUser(envtest.User{Name: "jane", Groups: []string{"readers"}}, nil)
	must(t, err)
	jane, err := client.New(user.Config(), client.Options{Scheme: operator.Scheme()})
	must(t, err)
	var found corev1.ConfigMapList
	if err := jane.List(t.Context(), &found, client.InNamespace("default")); !errors.IsForbidden(err) {
		t.Fatalf("not forbidden: %v", err)
	}
	scheme := operator.Scheme()
	must(t, rbacv1.AddToScheme(scheme))
	admin, err := client.New(environment.Config, client.Options{Scheme: scheme})
	must(t, err)
	must(t, admin.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "readers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "readers"}},
	}))
	eventually(t, "jane may read", func() bool { return jane.List(t.Context(), &found, client.InNamespace("default")) == nil })
	kubectl, err := user.Kubectl()
	must(t, err)
	out, _, err := kubectl.Run("auth", "whoami", "-o", "json")
	must(t, err)
	var said struct {
		Status struct{ UserInfo struct{ Username string } }
	}
	must(t, json.NewDecoder(out).Decode(&said))
	if said.Status.UserInfo.Username != "jane" {
		t.Fatalf("kubectl is %q", said.Status.UserInfo.Username)
	}
}

func run(t *testing.T, environment *envtest.Environment) {
	t.Helper()
	manager, err := ctrl.NewManager(environment.Config, ctrl.Options{
		Scheme:  operator.Scheme(),
		Metrics: server.Options{BindAddress: "0"},
	})
	must(t, err)
	must(t, (&operator.Reconciler{Client: manager.GetClient()}).SetupWithManager(manager))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		must(t, <-ended)
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
