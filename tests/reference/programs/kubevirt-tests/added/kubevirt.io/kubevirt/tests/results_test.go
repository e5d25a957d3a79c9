package tests_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"k8s.io/client-go/rest"

	"kubevirt.io/client-go/kubecli"
)

// The clean-up after each spec is some three hundred requests, and a client sends five in a second unless told otherwise.
func init() {
	kubecli.RegisterRestConfigHook(func(config *rest.Config) { config.QPS = -1 })
}

type result struct {
	Name    string  `json:"name"`
	State   string  `json:"state"`
	Seconds float64 `json:"seconds"`
	File    string  `json:"file"`
	Where   string  `json:"where"`
	Message string  `json:"message"`
	Output  string  `json:"output"`
}

// A line of the file SPEC_RESULTS says how a spec ended, as soon as it has.
var _ = ginkgo.ReportAfterEach(func(report ginkgo.SpecReport) {
	name := os.Getenv("SPEC_RESULTS")
	if name == "" || report.State.Is(types.SpecStatePending) {
		return
	}
	line := result{
		Name: report.FullText(), State: report.State.String(), Seconds: report.RunTime.Seconds(), File: report.LeafNodeLocation.FileName,
		Message: report.FailureMessage() + report.Failure.ForwardedPanic, Output: report.CapturedGinkgoWriterOutput,
	}
	if report.Failed() {
		line.Where = fmt.Sprintf("%s:%d", report.FailureLocation().FileName, report.FailureLocation().LineNumber)
		failed = line
	} else if report.State.Is(types.SpecStateSkipped) && report.NumAttempts == 0 {
		if !failsWithItsContainer(report) {
			return
		}
		line.State, line.Where, line.Message = failed.State, failed.Where, notTried+failed.Message
	}
	if err := write(name, line); err != nil {
		panic(err)
	}
})

// Begins the message of a spec that Ginkgo did not try, as it tries none of an ordered container behind one that failed.
const notTried = "Not tried: an earlier spec of its container failed. "

// The newest failure. The specs of an ordered container run one after the other.
var failed result

func failsWithItsContainer(report types.SpecReport) bool {
	return strings.HasPrefix(report.Failure.Message, "Spec skipped because a")
}

func write(name string, line result) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Write(append(text, '\n'))
	return err
}
