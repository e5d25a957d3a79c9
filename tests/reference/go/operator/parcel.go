// Package operator is an operator as kubebuilder would scaffold it: one kind with a definition, a reconciler that owns ConfigMaps.
package operator

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// GroupVersion is where the kind lives.
var GroupVersion = schema.GroupVersion{Group: "post.example.com", Version: "v1"}

// ParcelSpec is what somebody asks for.
type ParcelSpec struct {
	Address string `json:"address"`
	Copies  int    `json:"copies,omitempty"`
}

// ParcelStatus is what the reconciler saw last.
type ParcelStatus struct {
	Phase              string `json:"phase,omitempty"`
	Made               int    `json:"made,omitempty"`
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
}

// Parcel is the kind.
type Parcel struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ParcelSpec   `json:"spec,omitempty"`
	Status ParcelStatus `json:"status,omitempty"`
}

// ParcelList is a list of them.
type ParcelList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Parcel `json:"items"`
}

// DeepCopyObject copies.
func (p *Parcel) DeepCopyObject() runtime.Object {
	made := *p
	p.ObjectMeta.DeepCopyInto(&made.ObjectMeta)
	return &made
}

// DeepCopyObject copies.
func (l *ParcelList) DeepCopyObject() runtime.Object {
	made := ParcelList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&made.ListMeta)
	for i := range l.Items {
		made.Items = append(made.Items, *l.Items[i].DeepCopyObject().(*Parcel))
	}
	return &made
}

// Scheme knows the kind and the built-in ones it works with.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	scheme.AddKnownTypes(GroupVersion, &Parcel{}, &ParcelList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return scheme
}
