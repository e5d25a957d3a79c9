// Command kindtable prints what the Go types of Kubernetes' built-in kinds say of their fields, as JSON.
//
// Of each message: its fields by name, with the protobuf number, the type, and what encoding/json and strategic merge
// patches are told by the tags. Nothing of the texts is printed.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

type field struct {
	Number   string `json:"number"`
	Type     string `json:"type"`
	Pointer  bool   `json:"pointer,omitempty"`
	Always   bool   `json:"always,omitempty"`
	Strategy string `json:"strategy,omitempty"`
	Key      string `json:"key,omitempty"`
	Inline   bool   `json:"inline,omitempty"`
}

const extensions = "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

var (
	messages = map[string]map[string]field{}
	leaves   = map[string]string{
		"k8s.io/apimachinery/pkg/apis/meta/v1.Time":       "Time",
		"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":  "MicroTime",
		"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":   "Duration",
		"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":   "FieldsV1",
		"k8s.io/apimachinery/pkg/api/resource.Quantity":   "Quantity",
		"k8s.io/apimachinery/pkg/util/intstr.IntOrString": "IntOrString",
		"k8s.io/apimachinery/pkg/runtime.RawExtension":    "Raw",
		extensions + ".JSON":                              "Json",
		extensions + ".JSONSchemaPropsOrArray":            "SchemaOrSchemas",
		extensions + ".JSONSchemaPropsOrBool":             "SchemaOrBool",
		extensions + ".JSONSchemaPropsOrStringArray":      "SchemaOrNames",
	}
)

func name(t reflect.Type) string {
	path := strings.TrimPrefix(t.PkgPath(), "k8s.io/api/")
	path = strings.TrimPrefix(path, "k8s.io/apimachinery/pkg/apis/")
	path = strings.TrimPrefix(path, "k8s.io/apiextensions-apiserver/pkg/apis/")
	return path + "." + t.Name()
}

func typeOf(t reflect.Type) string {
	if leaf, found := leaves[t.PkgPath()+"."+t.Name()]; found {
		return leaf
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeOf(t.Elem())
	case reflect.Struct:
		read(t)
		return name(t)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + typeOf(t.Elem())
	case reflect.Map:
		if t.Elem().Kind() == reflect.Slice && t.Elem().Elem().Kind() == reflect.String {
			return "map:Strings"
		}
		return "map:" + typeOf(t.Elem())
	case reflect.Bool, reflect.String, reflect.Int32, reflect.Int64, reflect.Float64:
		return t.Kind().String()
	case reflect.Int:
		return "int64"
	}
	panic(fmt.Sprintf("no type for %v", t))
}

func read(t reflect.Type) {
	if _, known := messages[name(t)]; known {
		return
	}
	found := map[string]field{}
	messages[name(t)] = found
	for i := range t.NumField() {
		each := t.Field(i)
		tag := strings.Split(each.Tag.Get("json"), ",")
		if tag[0] == "-" || !each.IsExported() {
			continue
		}
		number := ""
		if parts := strings.Split(each.Tag.Get("protobuf"), ","); len(parts) > 1 {
			number = parts[1]
		}
		if tag[0] == "" {
			if each.Type.Name() == "TypeMeta" {
				// Protobuf has them around the message.
				found["apiVersion"], found["kind"] = field{Type: "string"}, field{Type: "string"}
				continue
			}
			found["~"+each.Name] = field{Number: number, Type: typeOf(each.Type), Inline: true}
			continue
		}
		empty, zero := false, false
		for _, word := range tag[1:] {
			empty = empty || word == "omitempty"
			zero = zero || word == "omitzero"
		}
		isStruct := each.Type.Kind() == reflect.Struct
		found[tag[0]] = field{
			Number:   number,
			Type:     typeOf(each.Type),
			Pointer:  each.Type.Kind() == reflect.Pointer,
			Always:   !zero && (isStruct || !empty),
			Strategy: each.Tag.Get("patchStrategy"),
			Key:      each.Tag.Get("patchMergeKey"),
		}
	}
}

func main() {
	kinds := map[string]string{}
	if err := apiextensions.AddToScheme(scheme.Scheme); err != nil {
		panic(err)
	}
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		if _, has := t.FieldByName("ObjectMeta"); !has || gvk.Version == "__internal" {
			continue
		}
		read(t)
		kinds[key(gvk)] = name(t)
	}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"kinds": kinds, "messages": messages}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func key(gvk schema.GroupVersionKind) string {
	return gvk.GroupVersion().String() + "." + gvk.Kind
}
