package main

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// Clones that have what their specification says from their first moment: the simulator's have their devices alone.
type clones struct {
	types.ManagedObjectReference
	*state
	registry *simulator.Registry
}

// attend gives clones their identity and settings from now on.
func attend(registry *simulator.Registry, s *state) {
	registry.AddHandler(&clones{types.ManagedObjectReference{Type: "Clones", Value: "clones"}, s, registry})
}

func (c *clones) PutObject(*simulator.Context, mo.Reference)                    {}
func (c *clones) RemoveObject(*simulator.Context, types.ManagedObjectReference) {}
func (c *clones) UpdateObject(_ *simulator.Context, o mo.Reference, _ []types.PropertyChange) {
	vm, ok := c.registry.Get(o.Reference()).(*simulator.VirtualMachine)
	if !ok || vm.Config == nil || vm.Parent == nil {
		return
	}
	place := vm.Parent.Value + "/" + vm.Name
	c.Lock()
	config := c.cloned[place]
	delete(c.cloned, place)
	c.Unlock()
	if config == nil {
		return
	}
	if config.InstanceUuid != "" {
		vm.Config.InstanceUuid = config.InstanceUuid
		vm.Summary.Config.InstanceUuid = config.InstanceUuid
	}
	if config.NumCPUs != 0 {
		vm.Config.Hardware.NumCPU, vm.Summary.Config.NumCpu = config.NumCPUs, config.NumCPUs
	}
	if config.MemoryMB != 0 {
		vm.Config.Hardware.MemoryMB, vm.Summary.Config.MemorySizeMB = int32(config.MemoryMB), int32(config.MemoryMB)
	}
	vm.Config.ExtraConfig = append(vm.Config.ExtraConfig, config.ExtraConfig...)
}

// machines notes the specifications of clones.
func (s *state) machines(ctx *simulator.Context, method *simulator.Method) {
	if body, ok := method.Body.(*types.CloneVM_Task); ok {
		place := body.Folder.Value + "/" + body.Name
		// Of two at once the first one makes the machine, and of one that is there none.
		if folder, ok := ctx.Map.Get(body.Folder).(*simulator.Folder); ok && s.cloned[place] == nil {
			if ctx.Map.FindByName(body.Name, folder.ChildEntity) == nil {
				s.cloned[place] = body.Spec.Config
			}
		}
	}
}
