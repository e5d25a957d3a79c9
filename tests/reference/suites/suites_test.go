// Package suites names what the test suites of controller-runtime import, so that go.mod holds it.
package suites

import (
	_ "github.com/onsi/ginkgo/v2"
	_ "github.com/onsi/gomega"
	_ "sigs.k8s.io/controller-runtime/pkg/envtest"
	_ "sigs.k8s.io/controller-runtime/pkg/webhook"
)
