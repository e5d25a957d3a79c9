// Package glog stands in for the module of this name, which older releases of KubeVirt replace by one of their own that the proxy lacks.
// It has the functions that their programs call, and the flag that they look for.
package glog

import (
	"flag"
	"fmt"
	"os"
)

func init() {
	flag.Int("v", 0, "Log level; has no effect")
}

// Verbose says whether a level is logged; none is.
type Verbose bool

// Level is a level of the log.
type Level int32

// V returns whether a level is logged.
func V(Level) Verbose { return false }

// Info logs nothing.
func (Verbose) Info(...any) {}

// Infof logs nothing.
func (Verbose) Infof(string, ...any) {}

// Infoln logs nothing.
func (Verbose) Infoln(...any) {}

// Info logs a message.
func Info(parts ...any) { fmt.Fprintln(os.Stderr, parts...) }

// Infof logs a message.
func Infof(format string, parts ...any) { fmt.Fprintf(os.Stderr, format+"\n", parts...) }

// Warning logs a message.
func Warning(parts ...any) { Info(parts...) }

// Warningf logs a message.
func Warningf(format string, parts ...any) { Infof(format, parts...) }

// Error logs a message.
func Error(parts ...any) { Info(parts...) }

// Errorf logs a message.
func Errorf(format string, parts ...any) { Infof(format, parts...) }

// Fatal logs a message and ends the program.
func Fatal(parts ...any) {
	Info(parts...)
	os.Exit(1)
}

// Fatalf logs a message and ends the program.
func Fatalf(format string, parts ...any) {
	Infof(format, parts...)
	os.Exit(1)
}

// Flush has nothing to write.
func Flush() {}

// CopyStandardLogTo leaves Go's own log where it is.
func CopyStandardLogTo(string) {}
