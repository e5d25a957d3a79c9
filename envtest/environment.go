// Package envtest starts a living KubeVirt for tests: `paddock up --guests simulated`, as a process of its own.
//
//	env := &envtest.Environment{KubeVirtRelease: "1.6", Nodes: 2}
//	config, err := env.Start()
//	...
//	defer env.Stop()
//
// It needs the program `paddock`, and no root, no KVM, no container and no download.
package envtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// programVariable names the program in the environment.
	programVariable = "PADDOCK"
	startTimeout    = 60 * time.Second
	stopTimeout     = 20 * time.Second
	ready           = "paddock: ready at "
	// lastLines of the log stand in the error of a start.
	lastLines = 5
)

// Environment is one control plane in a temporary directory. Its fields are read by Start.
type Environment struct {
	// Program is the path of `paddock`; empty: that of the variable PADDOCK, or the one on PATH.
	Program string
	// KubeVirtRelease is the release of KubeVirt to be, such as "1.3"; empty: Paddock itself.
	KubeVirtRelease string
	// Nodes is the number of simulated nodes; 0: one.
	Nodes int
	// Args are further options of `paddock up`.
	Args []string
	// Output gets the log of the control plane; nil: nobody.
	Output io.Writer
	// StartTimeout and StopTimeout bound a start and an end; 0: 60 and 20 seconds.
	StartTimeout, StopTimeout time.Duration

	// Config reaches the control plane with all rights, after Start.
	Config *rest.Config

	directory string
	command   *exec.Cmd
	ended     chan struct{}
}

// Kubeconfig is the path of a kubeconfig for programs that want a file. It goes with Stop.
func (e *Environment) Kubeconfig() string {
	return filepath.Join(e.directory, "server", "kubeconfig")
}

// Start returns the configuration of a client when the control plane and its controllers are ready.
func (e *Environment) Start() (*rest.Config, error) {
	if e.command != nil {
		return nil, errors.New("envtest: the environment has started already; Stop it first")
	}
	program, err := e.program()
	if err != nil {
		return nil, err
	}
	if e.directory, err = os.MkdirTemp("", "paddock-envtest-"); err != nil {
		return nil, fmt.Errorf("envtest: cannot make a directory: %w", err)
	}
	if err = e.run(program); err == nil {
		e.Config, err = clientcmd.BuildConfigFromFlags("", e.Kubeconfig())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("envtest: paddock up did not start: %w", err), e.Stop())
	}
	return e.Config, nil
}

// Stop ends the control plane and removes all that it had. It may be called again, and after a Start that failed.
func (e *Environment) Stop() error {
	var problem error
	if e.command != nil {
		problem = e.end()
		e.command = nil
	}
	e.Config = nil
	return errors.Join(problem, os.RemoveAll(e.directory))
}

func (e *Environment) program() (string, error) {
	name := e.Program
	if name == "" {
		name = os.Getenv(programVariable)
	}
	if name == "" {
		name = "paddock"
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("envtest: cannot find the program %s: %w; install Paddock, or name it in %s", name, err, programVariable)
	}
	return found, nil
}

func (e *Environment) options() []string {
	options := []string{"up", "--dir", filepath.Join(e.directory, "server"), "--listen", "127.0.0.1:0", "--in-memory", "--guests", "simulated"}
	if e.KubeVirtRelease != "" {
		options = append(options, "--as-kubevirt", e.KubeVirtRelease)
	}
	if e.Nodes > 0 {
		options = append(options, "--nodes", strconv.Itoa(e.Nodes))
	}
	return append(options, e.Args...)
}

// run starts the program and returns when it is ready, or why it is not.
func (e *Environment) run(program string) error {
	e.command = exec.Command(program, e.options()...)
	// A signal that ends the tests ends it by Stop, and not on its own way.
	e.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := e.command.StderrPipe()
	if err != nil {
		return err
	}
	if err := e.command.Start(); err != nil {
		e.command = nil
		return err
	}
	said := make(chan error, 1)
	e.ended = make(chan struct{})
	go e.follow(log, said)
	select {
	case err := <-said:
		return err
	case <-time.After(bound(e.StartTimeout, startTimeout)):
		return fmt.Errorf("it was not ready within %s", bound(e.StartTimeout, startTimeout))
	}
}

// follow reads the log to its end, and sends whether the program became ready.
func (e *Environment) follow(log io.Reader, said chan<- error) {
	var last []string
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if e.Output != nil {
			_, _ = fmt.Fprintln(e.Output, lines.Text())
		}
		last = append(last, lines.Text())[max(0, len(last)+1-lastLines):]
		if strings.HasPrefix(lines.Text(), ready) {
			said <- nil
			said = make(chan error, 1)
		}
	}
	// The pipe stays empty from here on, so that the program never waits for a reader.
	_, _ = io.Copy(io.Discard, log)
	_ = e.command.Wait()
	said <- fmt.Errorf("it ended: %s", strings.Join(last, "\n"))
	close(e.ended)
}

func (e *Environment) end() error {
	if err := e.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("envtest: cannot end paddock up: %w", err)
	}
	select {
	case <-e.ended:
		return nil
	case <-time.After(bound(e.StopTimeout, stopTimeout)):
		_ = e.command.Process.Kill()
		<-e.ended
		return fmt.Errorf("envtest: paddock up did not end within %s and was killed", bound(e.StopTimeout, stopTimeout))
	}
}

func bound(given, otherwise time.Duration) time.Duration {
	if given > 0 {
		return given
	}
	return otherwise
}
