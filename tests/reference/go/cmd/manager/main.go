// Manager runs the operator against a server that exists: cache, leader election, reconciler. It reports what the operator does and
// every list and watch that its caches ask for.
package main

import (
	"flag"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"paddock.example/tests/reference/go/operator"
	"paddock.example/tests/reference/go/report"
)

func main() {
	// controller-runtime has this flag already
	path := flag.Lookup("kubeconfig")
	namespace := flag.String("namespace", "default", "where the Lease is")
	flag.Parse()

	ctrl.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", path.Value.String())
	report.Must(err)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return requests{next} })
	lease, deadline, retry := 15*time.Second, 10*time.Second, 500*time.Millisecond
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        operator.Scheme(),
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "post-office",
		LeaderElectionNamespace:       *namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease,
		RenewDeadline:                 &deadline,
		RetryPeriod:                   &retry,
	})
	report.Must(err)
	report.Must((&operator.Reconciler{Client: manager.GetClient()}).SetupWithManager(manager))
	go func() {
		<-manager.Elected()
		report.Say(report.Line{Event: "leading"})
	}()
	report.Must(manager.Start(ctrl.SetupSignalHandler()))
	report.Say(report.Line{Event: "end"})
}

// requests reports lists and watches by resource.
type requests struct{ next http.RoundTripper }

func (r requests) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := r.next.RoundTrip(request)
	kind := request.URL.Path[strings.LastIndex(request.URL.Path, "/")+1:]
	if request.Method == http.MethodGet && (kind == "parcels" || kind == "configmaps") {
		line := report.Line{Event: "list", Kind: kind}
		if query := request.URL.Query(); query.Get("watch") != "" {
			line.Event = "watch"
			if query.Get("sendInitialEvents") == "true" {
				line.Event = "stream"
			}
		}
		if err == nil {
			line.Count = answer.StatusCode
		}
		report.Say(line)
	}
	return answer, err
}
