// Informer follows ConfigMaps of one namespace as controllers do, through one of client-go's three informers, and reports what its
// cache and its handlers see. It also reports each list and each watch request, so that a test sees how it recovers.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os/signal"
	"sort"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"paddock.example/tests/reference/go/report"
)

var resource = corev1.SchemeGroupVersion.WithResource("configmaps")

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the server to ask")
	namespace := flag.String("namespace", "default", "the namespace to follow")
	form := flag.String("form", "typed", "typed, dynamic or metadata")
	flag.Parse()

	stopped, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	report.Must(err)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return requests{next} })
	informer, err := informerOf(*form, config, *namespace)
	report.Must(err)
	_, err = informer.AddEventHandler(handlers())
	report.Must(err)
	started := time.Now()
	go informer.Run(stopped.Done())
	if !cache.WaitForCacheSync(stopped.Done(), informer.HasSynced) {
		report.Say(report.Line{Event: "unsynced"})
		return
	}
	report.Say(report.Line{Event: "synced", Names: names(informer.GetStore()), Millis: time.Since(started).Milliseconds()})
	<-stopped.Done()
	report.Say(report.Line{Event: "end", Names: names(informer.GetStore())})
}

func informerOf(form string, config *rest.Config, namespace string) (cache.SharedIndexInformer, error) {
	switch form {
	case "typed":
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace)).Core().V1().ConfigMaps().Informer(), nil
	case "dynamic":
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil).ForResource(resource).Informer(), nil
	case "metadata":
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return metadatainformer.NewFilteredSharedInformerFactory(client, 0, namespace, nil).ForResource(resource).Informer(), nil
	}
	return nil, fmt.Errorf("there is no form %q", form)
}

func handlers() cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { seen("added", object) },
		UpdateFunc: func(_, object any) { seen("updated", object) },
		DeleteFunc: func(object any) {
			if lost, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = lost.Obj
			}
			seen("deleted", object)
		},
	}
}

func seen(event string, object any) {
	accessor, err := meta.Accessor(object)
	report.Must(err)
	report.Say(report.Line{
		Event:   event,
		Name:    accessor.GetName(),
		Version: accessor.GetResourceVersion(),
		Value:   accessor.GetLabels()["value"],
	})
}

func names(store cache.Store) []string {
	keys := store.ListKeys()
	sort.Strings(keys)
	return keys
}

// requests reports what is asked of the server.
type requests struct{ next http.RoundTripper }

func (r requests) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	answer, err := r.next.RoundTrip(request)
	line := report.Line{Event: "list", Version: query.Get("resourceVersion")}
	if query.Get("watch") != "" {
		line.Event = "watch"
		if query.Get("sendInitialEvents") == "true" {
			line.Event = "stream"
		}
	}
	if err == nil {
		line.Count = answer.StatusCode
	}
	report.Say(line)
	return answer, err
}
