// Package report writes what a program saw: one JSON document a line on standard output, so that a test can wait for it and compare.
package report

import (
	"encoding/json"
	"os"
	"sync"
)

// Line is one thing that happened. Fields without a meaning for an event are left out.
type Line struct {
	Event   string   `json:"event"`
	Who     string   `json:"who,omitempty"`
	Kind    string   `json:"kind,omitempty"`
	Name    string   `json:"name,omitempty"`
	Version string   `json:"version,omitempty"`
	Value   string   `json:"value,omitempty"`
	Names   []string `json:"names,omitempty"`
	Count   int      `json:"count,omitempty"`
	Millis  int64    `json:"millis,omitempty"`
}

var lock sync.Mutex

// Say writes a line at once; goroutines may call it at the same time.
func Say(line Line) {
	lock.Lock()
	defer lock.Unlock()
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		os.Exit(3)
	}
}

// Must ends the program with the reason when something failed that a test does not expect to fail.
func Must(err error) {
	if err != nil {
		Say(Line{Event: "failed", Value: err.Error()})
		os.Exit(1)
	}
}
