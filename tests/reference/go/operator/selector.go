package operator

import (
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// selectorOption is a label selector that is known to be right.
func selectorOption(text string) client.MatchingLabelsSelector {
	selector, err := labels.Parse(text)
	if err != nil {
		panic(err)
	}
	return client.MatchingLabelsSelector{Selector: selector}
}
