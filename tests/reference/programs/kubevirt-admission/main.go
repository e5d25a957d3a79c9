// Admission judges objects as KubeVirt's virt-api does when they are created or changed: its mutating webhooks, the schemas of its
// definitions, its validating webhooks. It reads a request a line and writes a verdict a line. Arguments are feature gates; the argument
// `gates` alone prints those that can be turned on and are not on by themselves.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admission "k8s.io/api/admission/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	kubevirt "kubevirt.io/api/core/v1"
	"kubevirt.io/client-go/kubecli"
	"kubevirt.io/client-go/log"
	network "kubevirt.io/kubevirt/pkg/network/admitter"
	"kubevirt.io/kubevirt/pkg/virt-api/webhooks"
	mutating "kubevirt.io/kubevirt/pkg/virt-api/webhooks/mutating-webhook"
	validating "kubevirt.io/kubevirt/pkg/virt-api/webhooks/validating-webhook"
	configuration "kubevirt.io/kubevirt/pkg/virt-config"
	"kubevirt.io/kubevirt/pkg/virt-config/featuregate"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"sigs.k8s.io/yaml"
)

const (
	namespace = "kubevirt"
	largest   = 1 << 24
)

// Cause is what is wrong with one field.
type Cause struct {
	Reason  string `json:"reason"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// Request is an object to create, or what it becomes and what it was.
type Request struct {
	Object json.RawMessage `json:"object"`
	Old    json.RawMessage `json:"old,omitempty"`
}

// Verdict is what becomes of an object.
type Verdict struct {
	Allowed bool            `json:"allowed"`
	Message string          `json:"message,omitempty"`
	Causes  []Cause         `json:"causes,omitempty"`
	Object  json.RawMessage `json:"object,omitempty"`
}

type handler func(http.ResponseWriter, *http.Request)

// Schema is what the definition of a kind says: what is wrong with an object, and what is there by default.
type Schema struct {
	validator validation.SchemaValidator
	defaults  *structural.Structural
}

// Kind is how virt-api judges the objects of one kind.
type Kind struct {
	resource string
	schema   *Schema
	mutate   handler
	validate handler
	// judges changes; where there is none, the other judges these, too
	change handler
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func informer() cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(&cache.ListWatch{}, nil, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

func config(gates []string) *configuration.ClusterConfig {
	definitions, installations := informer(), informer()
	must(definitions.GetStore().Add(&extensions.CustomResourceDefinition{
		Spec: extensions.CustomResourceDefinitionSpec{
			Group: "cdi.kubevirt.io",
			Names: extensions.CustomResourceDefinitionNames{Kind: "DataVolume"},
		},
	}))
	installation := &kubevirt.KubeVirt{ObjectMeta: meta.ObjectMeta{Name: "kubevirt", Namespace: namespace, ResourceVersion: "1"}}
	installation.Spec.Configuration.DeveloperConfiguration = &kubevirt.DeveloperConfiguration{FeatureGates: gates}
	installation.Status.Phase = kubevirt.KubeVirtPhaseDeployed
	installation.Status.DefaultArchitecture = "amd64"
	must(installations.GetStore().Add(installation))
	made, err := configuration.NewClusterConfigWithCPUArch(definitions, installations, namespace, "amd64")
	must(err)
	return made
}

// cluster answers as one that allows every user everything and holds every snapshot that is asked for, of a machine without a state of its own:
// the patches of a restore are judged only where its snapshot is.
func cluster(answer http.ResponseWriter, request *http.Request) {
	answer.Header().Set("Content-Type", "application/json")
	if request.Method == http.MethodPost {
		body, _ := io.ReadAll(request.Body)
		review := map[string]any{}
		_ = json.Unmarshal(body, &review)
		review["status"] = map[string]any{"allowed": true}
		answer.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(answer).Encode(review)
		return
	}
	for part, held := range map[string]string{
		"/virtualmachinesnapshots/":        `{"status": {"virtualMachineSnapshotContentName": "content"}}`,
		"/virtualmachinesnapshotcontents/": `{"spec": {"source": {"virtualMachine": {"spec": {"template": {"spec": {}}}}}}}`,
	} {
		if strings.Contains(request.URL.Path, part) {
			_, _ = io.WriteString(answer, held)
			return
		}
	}
	status := meta.Status{
		TypeMeta: meta.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   meta.StatusFailure,
		Reason:   meta.StatusReasonNotFound,
		Code:     http.StatusNotFound,
		Message:  request.URL.Path + " not found",
	}
	answer.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(answer).Encode(status)
}

func kinds(config *configuration.ClusterConfig, client kubecli.KubevirtClient) map[string]Kind {
	informers := &webhooks.Informers{
		VMIPresetInformer: informer(), VMRestoreInformer: informer(), VMBackupInformer: informer(),
		DataSourceInformer: informer(), NamespaceInformer: informer(),
	}
	accounts := map[string]struct{}{}
	schemas := components.CRDsValidation
	of := func(name, resource string, mutate, validate handler) Kind {
		return Kind{resource: resource, schema: parsed(schemas[strings.ToLower(name)]), mutate: mutate, validate: validate}
	}
	type Answer = http.ResponseWriter
	type Asked = *http.Request
	checkNetworks := func(path *field.Path, spec *kubevirt.VirtualMachineInstanceSpec, config *configuration.ClusterConfig) []meta.StatusCause {
		return network.Validate(path, spec, config)
	}
	known := map[string]Kind{
		"VirtualMachine": of("VirtualMachine", "virtualmachines",
			func(a Answer, r Asked) { mutating.ServeVMs(a, r, config, client) },
			func(a Answer, r Asked) { validating.ServeVMs(a, r, config, client, informers, accounts) }),
		"VirtualMachineInstance": of("VirtualMachineInstance", "virtualmachineinstances",
			func(a Answer, r Asked) { mutating.ServeVMIs(a, r, config, informers, accounts) },
			func(a Answer, r Asked) { validating.ServeVMICreate(a, r, config, accounts, checkNetworks) }),
		"VirtualMachineInstanceReplicaSet": of("VirtualMachineInstanceReplicaSet", "virtualmachineinstancereplicasets", nil,
			func(a Answer, r Asked) { validating.ServeVMIRS(a, r, config) }),
		"VirtualMachineInstancePreset": of("VirtualMachineInstancePreset", "virtualmachineinstancepresets", nil,
			func(a Answer, r Asked) { validating.ServeVMIPreset(a, r) }),
		"VirtualMachinePool": of("VirtualMachinePool", "virtualmachinepools", nil,
			func(a Answer, r Asked) { validating.ServeVMPool(a, r, config, accounts) }),
		"VirtualMachineInstancetype": of("VirtualMachineInstancetype", "virtualmachineinstancetypes", nil,
			func(a Answer, r Asked) { validating.ServeVmInstancetypes(a, r) }),
		"VirtualMachineClusterInstancetype": of("VirtualMachineClusterInstancetype", "virtualmachineclusterinstancetypes", nil,
			func(a Answer, r Asked) { validating.ServeVmClusterInstancetypes(a, r) }),
		"VirtualMachinePreference": of("VirtualMachinePreference", "virtualmachinepreferences", nil,
			func(a Answer, r Asked) { validating.ServeVmPreferences(a, r) }),
		"VirtualMachineClusterPreference": of("VirtualMachineClusterPreference", "virtualmachineclusterpreferences", nil,
			func(a Answer, r Asked) { validating.ServeVmClusterPreferences(a, r) }),
		"VirtualMachineClone": of("VirtualMachineClone", "virtualmachineclones",
			func(a Answer, r Asked) { mutating.ServeClones(a, r) },
			func(a Answer, r Asked) { validating.ServeVirtualMachineClones(a, r, config, client) }),
		"MigrationPolicy": of("MigrationPolicy", "migrationpolicies", nil,
			func(a Answer, r Asked) { validating.ServeMigrationPolicies(a, r, config) }),
		"VirtualMachineInstanceMigration": of("VirtualMachineInstanceMigration", "virtualmachineinstancemigrations",
			func(a Answer, r Asked) { mutating.ServeMigrationCreate(a, r) },
			func(a Answer, r Asked) { validating.ServeMigrationCreate(a, r, config, client, accounts) }),
		"VirtualMachineSnapshot": of("VirtualMachineSnapshot", "virtualmachinesnapshots", nil,
			func(a Answer, r Asked) { validating.ServeVMSnapshots(a, r, config, client) }),
		"VirtualMachineRestore": of("VirtualMachineRestore", "virtualmachinerestores", nil,
			func(a Answer, r Asked) { validating.ServeVMRestores(a, r, config, client, informers) }),
		"VirtualMachineExport": of("VirtualMachineExport", "virtualmachineexports", nil,
			func(a Answer, r Asked) { validating.ServeVMExports(a, r, config) }),
	}
	change := func(name string, serve handler) {
		kind := known[name]
		kind.change = serve
		known[name] = kind
	}
	change("VirtualMachineInstance", func(a Answer, r Asked) { validating.ServeVMIUpdate(a, r, config, accounts) })
	change("VirtualMachineInstanceMigration", func(a Answer, r Asked) { validating.ServeMigrationUpdate(a, r) })
	return known
}

func parsed(text string) *Schema {
	if text == "" {
		return nil
	}
	into, internal := &extensions.CustomResourceValidation{}, &apiextensions.CustomResourceValidation{}
	must(yaml.Unmarshal([]byte(text), into))
	must(extensions.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(into, internal, nil))
	validator, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
	must(err)
	defaults, err := structural.NewStructural(internal.OpenAPIV3Schema)
	must(err)
	return &Schema{validator: validator, defaults: defaults}
}

func asked(serve handler, kind Kind, object, old *unstructured.Unstructured) (*admission.AdmissionResponse, error) {
	raw, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	dry := true
	about := object.GroupVersionKind()
	review := admission.AdmissionReview{TypeMeta: meta.TypeMeta{Kind: "AdmissionReview", APIVersion: "admission.k8s.io/v1"}}
	review.Request = &admission.AdmissionRequest{
		UID:       "1",
		Kind:      meta.GroupVersionKind{Group: about.Group, Version: about.Version, Kind: about.Kind},
		Resource:  meta.GroupVersionResource{Group: about.Group, Version: about.Version, Resource: kind.resource},
		Name:      object.GetName(),
		Namespace: object.GetNamespace(),
		Operation: admission.Create,
		DryRun:    &dry,
		Object:    runtime.RawExtension{Raw: raw},
	}
	if old != nil {
		before, err := old.MarshalJSON()
		if err != nil {
			return nil, err
		}
		review.Request.Operation = admission.Update
		review.Request.OldObject = runtime.RawExtension{Raw: before}
	}
	body, err := json.Marshal(review)
	if err != nil {
		return nil, err
	}
	request := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	serve(answer, request)
	told := admission.AdmissionReview{}
	if err := json.Unmarshal(answer.Body.Bytes(), &told); err != nil {
		return nil, fmt.Errorf("%d: %s", answer.Code, answer.Body.String())
	}
	return told.Response, nil
}

func refused(status *meta.Status) Verdict {
	verdict := Verdict{Message: "refused"}
	if status == nil {
		return verdict
	}
	verdict.Message = status.Message
	if status.Details != nil {
		for _, each := range status.Details.Causes {
			verdict.Causes = append(verdict.Causes, Cause{string(each.Type), each.Field, each.Message})
		}
	}
	return verdict
}

func checked(kind Kind, object *unstructured.Unstructured) []Cause {
	if kind.schema == nil {
		return nil
	}
	causes := []Cause{}
	for _, each := range validation.ValidateCustomResource(nil, object.UnstructuredContent(), kind.schema.validator) {
		causes = append(causes, Cause{string(each.Type), each.Field, each.ErrorBody()})
	}
	return causes
}

func read(text json.RawMessage) *unstructured.Unstructured {
	if len(text) == 0 {
		return nil
	}
	object := &unstructured.Unstructured{}
	must(object.UnmarshalJSON(text))
	return object
}

// served leaves out what an API server leaves out before webhooks see it: a status that has a subresource of its own.
func served(object, old *unstructured.Unstructured) {
	if object.GetKind() == "VirtualMachineInstance" {
		return
	}
	delete(object.Object, "status")
	if old != nil && old.Object["status"] != nil {
		object.Object["status"] = old.Object["status"]
	}
}

func judged(kinds map[string]Kind, line []byte) (verdict Verdict) {
	defer func() {
		if problem := recover(); problem != nil {
			verdict = Verdict{Message: fmt.Sprintf("panic: %v", problem)}
		}
	}()
	request := Request{}
	must(json.Unmarshal(line, &request))
	object, old := read(request.Object), read(request.Old)
	kind, known := kinds[object.GetKind()]
	if !known {
		return Verdict{Message: "unknown kind " + object.GetKind()}
	}
	served(object, old)
	if kind.schema != nil {
		defaulting.Default(object.UnstructuredContent(), kind.schema.defaults)
		if old != nil {
			defaulting.Default(old.UnstructuredContent(), kind.schema.defaults)
		}
	}
	// The others complete objects that are created.
	changing := object.GetKind() == "VirtualMachine" || object.GetKind() == "VirtualMachineInstance"
	if kind.mutate != nil && (old == nil || changing) {
		answer, err := asked(kind.mutate, kind, object, old)
		if err != nil {
			return Verdict{Message: err.Error()}
		}
		if !answer.Allowed {
			return refused(answer.Result)
		}
		if len(answer.Patch) > 0 {
			object = patched(object, answer.Patch)
		}
	}
	if causes := checked(kind, object); len(causes) > 0 {
		return Verdict{Message: "the definition", Causes: causes}
	}
	validate := kind.validate
	if old != nil && kind.change != nil {
		validate = kind.change
	}
	answer, err := asked(validate, kind, object, old)
	if err != nil {
		return Verdict{Message: err.Error()}
	}
	if !answer.Allowed {
		return refused(answer.Result)
	}
	made, err := object.MarshalJSON()
	must(err)
	return Verdict{Allowed: true, Object: made}
}

func patched(object *unstructured.Unstructured, text []byte) *unstructured.Unstructured {
	before, err := object.MarshalJSON()
	must(err)
	patch, err := jsonpatch.DecodePatch(text)
	must(err)
	after, err := patch.Apply(before)
	must(err)
	into := &unstructured.Unstructured{}
	must(into.UnmarshalJSON(after))
	return into
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "gates" {
		for name, gate := range featuregate.GetRegisteredFeatureGates() {
			if gate.State == featuregate.Alpha {
				fmt.Println(name)
			}
		}
		return
	}
	log.Log.SetIOWriter(io.Discard)
	server := httptest.NewServer(http.HandlerFunc(cluster))
	defer server.Close()
	client, err := kubecli.GetKubevirtClientFromRESTConfig(&rest.Config{Host: server.URL, QPS: 1000, Burst: 1000})
	must(err)
	known := kinds(config(os.Args[1:]), client)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, largest)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		must(out.Encode(judged(known, lines.Bytes())))
	}
	must(lines.Err())
}
