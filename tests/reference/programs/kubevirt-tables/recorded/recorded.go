// Package recorded writes down what tests hand to the functions that judge or complete objects, a JSON document a line.
package recorded

import (
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"sync"

	admission "k8s.io/api/admission/v1"
)

// callers of a function that records: itself, the function, and whoever calls it
const caller = 3

var (
	lock   sync.Mutex
	output *os.File
)

// Document is a request, or the spec of an instance.
type Document struct {
	Test    string                      `json:"test"`
	Request *admission.AdmissionRequest `json:"request,omitempty"`
	Spec    any                         `json:"spec,omitempty"`
}

// Review records a request.
func Review(review *admission.AdmissionReview) {
	if place := test(); place != "" && review != nil {
		write(Document{Test: place, Request: review.Request})
	}
}

// Spec records the spec of an instance.
func Spec(spec any) {
	if place := test(); place != "" {
		write(Document{Test: place, Spec: spec})
	}
}

// test returns the file of the calling test. A function that is called by KubeVirt itself was handed something that is recorded already.
func test() string {
	_, file, _, known := runtime.Caller(caller)
	if !known || !strings.HasSuffix(file, "_test.go") {
		return ""
	}
	return file[strings.LastIndex(file, "/pkg/")+1:]
}

func write(document Document) {
	lock.Lock()
	defer lock.Unlock()
	if output == nil {
		opened, err := os.OpenFile(os.Getenv("RECORDED"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			panic(err)
		}
		output = opened
	}
	text, err := json.Marshal(document)
	if err != nil {
		// A request whose object is no JSON is what the test is about; nobody can send it.
		return
	}
	if _, err := output.Write(append(text, '\n')); err != nil {
		panic(err)
	}
}
