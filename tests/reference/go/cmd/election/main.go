// Election takes part in the election of a leader on a Lease, and reports when it begins and ends to lead and whom it sees leading.
// SIGTERM makes it let go of the Lease; a test that wants a crash kills it.
package main

import (
	"context"
	"flag"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"paddock.example/tests/reference/go/report"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the server to ask")
	namespace := flag.String("namespace", "default", "the namespace of the Lease")
	name := flag.String("name", "leader", "the name of the Lease")
	identity := flag.String("identity", "", "who takes part")
	lease := flag.Duration("lease", 3*time.Second, "how long a leader that is silent stays leader")
	flag.Parse()

	stopped, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	report.Must(err)
	client, err := kubernetes.NewForConfig(config)
	report.Must(err)
	say := func(event, value string) { report.Say(report.Line{Event: event, Who: *identity, Value: value}) }
	leaderelection.RunOrDie(stopped, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: *namespace, Name: *name},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: *identity},
		},
		ReleaseOnCancel: true,
		LeaseDuration:   *lease,
		RenewDeadline:   *lease * 2 / 3,
		RetryPeriod:     *lease / 10,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { say("leading", "") },
			OnStoppedLeading: func() { say("stopped", "") },
			OnNewLeader:      func(leader string) { say("leader", leader) },
		},
	})
}
