// VMware's own simulator of vCenter, as the tests of the vSphere driver use it.
//
//	vcsim MODEL
//
// MODEL is a JSON object with members of govmomi's simulator.Model ("cluster", "host", "machine", "datastore", ...), and
//
//	"listen"    HOST:PORT, default 127.0.0.1:0
//	"user"      the name that may log in, default "root"
//	"password"  its password, default "secret"
//	"stopped"   true: the model's machines are off
//	"api"       the version of the API, default "8.0.2.0"
//	"carrying"  true: clones have what their specification says from their first moment
//	"unaltered" true: the simulator as govmomi has it. Of the commands, only "works" and "forget" count
//
// It prints {"event": "serving", "url", "authority"}; "authority" is the certificate to trust, in PEM. Then it reads commands, one JSON object
// a line, and answers each with {"event": "done"} or {"event": "failed", "why"}:
//
//	{"password": "new"}             the password from now on; sessions stay
//	{"logout": true}                ends all sessions
//	{"delays": {"METHOD": 100}}     milliseconds before these methods answer
//	{"works": {"TASK": 100}}        milliseconds that these tasks take beside their work; a task is called as its method, without _Task
//	{"faults": [{"method": "METHOD", "type": "NoPermission", "count": 1}]}   the next calls fail
//	{"forget": true}                ended tasks are gone, as vCenter forgets them after ten minutes
//	{"calls": true}                 answers {"event": "calls", "methods": {"METHOD": 3}} and counts anew
//
// Unless it is unaltered, it answers nothing but the service content to whoever has not logged in, as vCenter does; disks have bytes, and a
// revert brings back processors, memory and power. It ends with its standard input.
package main

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	_ "github.com/vmware/govmomi/lookup/simulator"
	_ "github.com/vmware/govmomi/pbm/simulator"
	_ "github.com/vmware/govmomi/sts/simulator"
	_ "github.com/vmware/govmomi/vapi/simulator"
)

type options struct {
	*simulator.Model
	Listen    string `json:"listen"`
	User      string `json:"user"`
	Password  string `json:"password"`
	Stopped   bool   `json:"stopped"`
	API       string `json:"api"`
	Unaltered bool   `json:"unaltered"`
	Carrying  bool   `json:"carrying"`
}

type fault struct {
	Method string `json:"method"`
	Type   string `json:"type"`
	Count  int    `json:"count"`
}

type command struct {
	Password *string        `json:"password"`
	Logout   bool           `json:"logout"`
	Delays   map[string]int `json:"delays"`
	Works    map[string]int `json:"works"`
	Faults   []*fault       `json:"faults"`
	Forget   bool           `json:"forget"`
	Calls    bool           `json:"calls"`
}

// What the commands change, and every call sees.
type state struct {
	sync.Mutex
	user, password string
	// sessions from before are over
	since  time.Time
	delays map[string]int
	faults []*fault
	calls  map[string]int
	// which snapshots have memory
	memory map[string]bool
	// the specifications of clones that are not there yet, by folder and name; nil: clones do not carry them
	cloned map[string]*types.VirtualMachineConfigSpec
}

// Methods that need no session.
var open = map[string]bool{
	"Login": true, "LoginByToken": true, "RetrieveServiceContent": true, "CloneSession": true, "List": true, "CurrentTime": true,
}

var faults = map[string]func(*simulator.Method) types.BaseMethodFault{
	"NotAuthenticated": func(m *simulator.Method) types.BaseMethodFault { return notAuthenticated(m) },
	"NoPermission": func(m *simulator.Method) types.BaseMethodFault {
		return &types.NoPermission{Object: &m.This, PrivilegeId: "VirtualMachine.Inventory.Create"}
	},
	"ManagedObjectNotFound": func(m *simulator.Method) types.BaseMethodFault { return &types.ManagedObjectNotFound{Obj: m.This} },
	"TaskInProgress": func(*simulator.Method) types.BaseMethodFault {
		return &types.TaskInProgress{Task: types.ManagedObjectReference{Type: "Task", Value: "task-1"}}
	},
	"ConcurrentAccess":  func(*simulator.Method) types.BaseMethodFault { return &types.ConcurrentAccess{} },
	"HostNotConnected":  func(*simulator.Method) types.BaseMethodFault { return &types.HostNotConnected{} },
	"NoDiskSpace":       func(*simulator.Method) types.BaseMethodFault { return &types.NoDiskSpace{Datastore: "LocalDS_0"} },
	"RestrictedVersion": func(*simulator.Method) types.BaseMethodFault { return &types.RestrictedVersion{} },
	"SystemError":       func(*simulator.Method) types.BaseMethodFault { return &types.SystemError{Reason: "injected"} },
}

func notAuthenticated(m *simulator.Method) types.BaseMethodFault {
	return &types.NotAuthenticated{NoPermission: types.NoPermission{Object: &m.This, PrivilegeId: "System.View"}}
}

// handle sees every call before the simulator does.
func (s *state) handle(ctx *simulator.Context, method *simulator.Method) (mo.Reference, types.BaseMethodFault) {
	s.Lock()
	// The simulator's calls of its own have a session without a user.
	if ctx.Session != nil && ctx.Session.UserName != "" && ctx.Session.LoginTime.Before(s.since) {
		ctx.Session = nil
	}
	s.calls[method.Name]++
	delay := s.delays[method.Name]
	var failing types.BaseMethodFault
	for _, each := range s.faults {
		if each.Count > 0 && each.Method == method.Name {
			each.Count--
			failing = faults[each.Type](method)
			break
		}
	}
	s.Unlock()
	time.Sleep(time.Duration(delay) * time.Millisecond)
	content := method.Name == "Fetch" || (method.This.Type == "PropertyCollector" && ctx.Session == nil && isContent(method))
	if ctx.Session == nil && !open[method.Name] && !content {
		return nil, notAuthenticated(method)
	}
	if failing == nil {
		s.storage(ctx, method)
		if s.cloned != nil {
			s.Lock()
			s.machines(ctx, method)
			s.Unlock()
		}
	}
	return nil, failing
}

// isContent tells a read of the service instance alone, which is open.
func isContent(method *simulator.Method) bool {
	var sets []types.PropertyFilterSpec
	switch body := method.Body.(type) {
	case *types.RetrieveProperties:
		sets = body.SpecSet
	case *types.RetrievePropertiesEx:
		sets = body.SpecSet
	default:
		return false
	}
	for _, set := range sets {
		for _, object := range set.ObjectSet {
			if object.Obj.Type != "ServiceInstance" || len(object.SelectSet) > 0 {
				return false
			}
		}
	}
	return true
}

func (s *state) obey(model *simulator.Model, given command) (any, error) {
	s.Lock()
	defer s.Unlock()
	if given.Password != nil {
		s.password = *given.Password
	}
	if given.Logout {
		s.since = time.Now().UTC()
	}
	if given.Delays != nil {
		s.delays = given.Delays
	}
	if given.Works != nil {
		// Properties can be read while a task works.
		works := map[string]int{"LockHandoff": 0}
		for name, delay := range given.Works {
			works[name] = delay
		}
		simulator.TaskDelay = simulator.DelayConfig{MethodDelay: works}
	}
	for _, each := range given.Faults {
		if faults[each.Type] == nil {
			return nil, fmt.Errorf("there is no fault %s", each.Type)
		}
	}
	if given.Faults != nil {
		s.faults = given.Faults
	}
	if given.Forget {
		forget(model)
	}
	if given.Calls {
		found := s.calls
		s.calls = map[string]int{}
		return map[string]any{"event": "calls", "methods": found}, nil
	}
	return map[string]any{"event": "done"}, nil
}

func forget(model *simulator.Model) {
	for _, each := range model.Map().AllReference("Task") {
		task := each.(*simulator.Task)
		if task.Info.State == types.TaskInfoStateSuccess || task.Info.State == types.TaskInfoStateError {
			model.Map().Remove(model.Service.Context, task.Reference())
		}
	}
}

// alter makes the simulator obey commands, and puts right what vCenter does in another way.
func alter(registry *simulator.Registry, s *state) {
	registry.Handler = s.handle
	watch(registry)
	registry.SessionManager().ValidLogin = func(req *types.Login) bool {
		s.Lock()
		defer s.Unlock()
		return req.UserName == s.user && req.Password == s.password
	}
}

func main() {
	if err := run(os.Args[1], os.Stdin, json.NewEncoder(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(text string, in io.Reader, out *json.Encoder) error {
	log.SetOutput(os.Stderr)
	given := options{Model: simulator.VPX(), Listen: "127.0.0.1:0", User: "root", Password: "secret", API: "8.0.2.0"}
	if err := json.Unmarshal([]byte(text), &given); err != nil {
		return err
	}
	model := given.Model
	model.Autostart = !given.Stopped
	model.ServiceContent.About.ApiVersion = given.API
	defer model.Remove()
	if err := model.Create(); err != nil {
		return err
	}
	s := &state{user: given.User, password: given.Password, calls: map[string]int{}, memory: map[string]bool{}}
	if !given.Unaltered {
		alter(model.Map(), s)
	}
	if given.Carrying {
		s.cloned = map[string]*types.VirtualMachineConfigSpec{}
		attend(model.Map(), s)
	}
	service := model.Service
	service.Listen = &url.URL{Host: given.Listen, User: url.UserPassword(given.User, given.Password)}
	service.TLS = new(tls.Config)
	service.RegisterEndpoints = true
	server := service.NewServer()
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	address := url.URL{Scheme: server.URL.Scheme, Host: server.URL.Host, Path: server.URL.Path}
	if err := out.Encode(map[string]any{"event": "serving", "url": address.String(), "authority": string(authority)}); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var asked command
		answer, err := any(nil), json.Unmarshal(lines.Bytes(), &asked)
		if err == nil {
			answer, err = s.obey(model, asked)
		}
		if err != nil {
			answer = map[string]any{"event": "failed", "why": err.Error()}
		}
		if err := out.Encode(answer); err != nil {
			return err
		}
	}
	return lines.Err()
}
