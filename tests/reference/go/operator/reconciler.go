package operator

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"paddock.example/tests/reference/go/report"
)

const (
	// Finalizer holds a Parcel back until the reconciler has let go of it.
	Finalizer = "post.example.com/delivery"
	// Owner is the field manager of what the reconciler applies.
	Owner = "post-office"
)

// Reconciler keeps one ConfigMap for each copy of a Parcel.
type Reconciler struct {
	Client client.Client
}

// SetupWithManager makes a manager run it.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).For(&Parcel{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile brings one Parcel to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var parcel Parcel
	if err := r.Client.Get(ctx, request.NamespacedName, &parcel); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !parcel.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.let(ctx, &parcel)
	}
	before := parcel.DeepCopyObject().(*Parcel)
	if controllerutil.AddFinalizer(&parcel, Finalizer) {
		if err := r.Client.Patch(ctx, &parcel, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return ctrl.Result{}, err
		}
	}
	for number := range parcel.Spec.Copies {
		if err := r.Client.Apply(ctx, copyOf(&parcel, number), client.FieldOwner(Owner), client.ForceOwnership); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.Client.DeleteAllOf(ctx, &corev1.ConfigMap{}, tooMany(&parcel)...); err != nil {
		return ctrl.Result{}, err
	}
	before = parcel.DeepCopyObject().(*Parcel)
	parcel.Status = ParcelStatus{Phase: "Delivered", Made: parcel.Spec.Copies, ObservedGeneration: parcel.Generation}
	if parcel.Status == before.Status {
		return ctrl.Result{}, nil
	}
	report.Say(report.Line{Event: "delivered", Name: parcel.Name, Count: parcel.Spec.Copies})
	return ctrl.Result{}, r.Client.Status().Patch(ctx, &parcel, client.MergeFrom(before))
}

func (r *Reconciler) let(ctx context.Context, parcel *Parcel) error {
	before := parcel.DeepCopyObject().(*Parcel)
	if !controllerutil.RemoveFinalizer(parcel, Finalizer) {
		return nil
	}
	report.Say(report.Line{Event: "finalized", Name: parcel.Name})
	return client.IgnoreNotFound(r.Client.Patch(ctx, parcel, client.MergeFrom(before)))
}

// copyOf is one ConfigMap as server-side apply takes it, owned by its Parcel.
func copyOf(parcel *Parcel, number int) *corev1apply.ConfigMapApplyConfiguration {
	owner := metav1apply.OwnerReference().
		WithAPIVersion(GroupVersion.String()).WithKind("Parcel").WithName(parcel.Name).WithUID(types.UID(parcel.UID)).
		WithController(true).WithBlockOwnerDeletion(true)
	return corev1apply.ConfigMap(fmt.Sprintf("%s-%d", parcel.Name, number), parcel.Namespace).
		WithLabels(map[string]string{"parcel": parcel.Name, "number": strconv.Itoa(number)}).
		WithOwnerReferences(owner).
		WithData(map[string]string{"address": parcel.Spec.Address})
}

// tooMany selects the copies beyond those that are asked for.
func tooMany(parcel *Parcel) []client.DeleteAllOfOption {
	wanted := ""
	for number := range parcel.Spec.Copies {
		wanted += fmt.Sprintf("%d,", number)
	}
	selector := "parcel=" + parcel.Name
	if wanted != "" {
		selector += ",number notin (" + wanted[:len(wanted)-1] + ")"
	}
	return []client.DeleteAllOfOption{client.InNamespace(parcel.Namespace), selectorOption(selector)}
}
