package main

import (
	"os"
	"path"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// Disks as large as vCenter's: the simulator's are empty files, whatever their descriptors say. Their bytes are zeros until somebody stores
// others through /folder.
type disks struct {
	types.ManagedObjectReference
	registry *simulator.Registry
}

// watch gives disks their sizes from now on, and those that are there.
func watch(registry *simulator.Registry) {
	d := &disks{types.ManagedObjectReference{Type: "Disks", Value: "disks"}, registry}
	registry.AddHandler(d)
	for _, each := range registry.All("VirtualMachine") {
		d.UpdateObject(nil, each, []types.PropertyChange{{Name: "config.hardware.device"}})
	}
}

func (d *disks) PutObject(*simulator.Context, mo.Reference)                    {}
func (d *disks) RemoveObject(*simulator.Context, types.ManagedObjectReference) {}
func (d *disks) UpdateObject(_ *simulator.Context, o mo.Reference, changes []types.PropertyChange) {
	vm, ok := d.registry.Get(o.Reference()).(*simulator.VirtualMachine)
	if !ok || vm.Config == nil {
		return
	}
	for _, change := range changes {
		if change.Name != "config.hardware.device" {
			continue
		}
		for _, device := range vm.Config.Hardware.Device {
			if disk, ok := device.(*types.VirtualDisk); ok {
				d.fill(disk)
			}
		}
	}
}

func (d *disks) fill(disk *types.VirtualDisk) {
	backing, ok := disk.Backing.(*types.VirtualDiskFlatVer2BackingInfo)
	if !ok || backing.Datastore == nil {
		return
	}
	store, ok := d.registry.Get(*backing.Datastore).(*simulator.Datastore)
	if !ok {
		return
	}
	_, name, _ := strings.Cut(backing.FileName, "] ")
	file := path.Join(store.Summary.Url, strings.Replace(name, ".vmdk", "-flat.vmdk", 1))
	found, err := os.Stat(file)
	if err != nil {
		return
	}
	// A disk that was there before its machine is as large as it is.
	if disk.CapacityInBytes == 0 {
		disk.CapacityInBytes, disk.CapacityInKB = found.Size(), found.Size()/1024
	}
	if found.Size() < disk.CapacityInBytes {
		_ = os.Truncate(file, disk.CapacityInBytes)
	}
}

// storage notes which snapshots have memory, and brings back processors, memory and power before a revert: the simulator's only moves a mark.
func (s *state) storage(ctx *simulator.Context, method *simulator.Method) {
	switch body := method.Body.(type) {
	case *types.CreateSnapshot_Task:
		s.Lock()
		s.memory[method.This.Value+"/"+body.Name] = body.Memory
		s.Unlock()
	case *types.RevertToSnapshot_Task:
		if found, ok := ctx.Map.Get(method.This).(*simulator.VirtualMachineSnapshot); ok {
			if vm, ok := ctx.Map.Get(found.Vm).(*simulator.VirtualMachine); ok && vm.Snapshot != nil {
				s.revert(ctx, vm, found)
			}
		}
	}
}

func (s *state) revert(ctx *simulator.Context, vm *simulator.VirtualMachine, to *simulator.VirtualMachineSnapshot) {
	power := types.VirtualMachinePowerStatePoweredOff
	s.Lock()
	memory := s.memory[vm.Self.Value+"/"+nameOf(vm.Snapshot.RootSnapshotList, to.Self)]
	s.Unlock()
	if memory {
		power = types.VirtualMachinePowerStatePoweredOn
	}
	hardware := to.Config.Hardware
	ctx.WithLock(vm, func() {
		ctx.Update(vm, []types.PropertyChange{
			{Name: "config.hardware.numCPU", Val: hardware.NumCPU},
			{Name: "config.hardware.memoryMB", Val: hardware.MemoryMB},
			{Name: "summary.config.numCpu", Val: hardware.NumCPU},
			{Name: "summary.config.memorySizeMB", Val: hardware.MemoryMB},
			{Name: "runtime.powerState", Val: power},
			{Name: "summary.runtime.powerState", Val: power},
		})
	})
}

func nameOf(nodes []types.VirtualMachineSnapshotTree, ref types.ManagedObjectReference) string {
	for _, node := range nodes {
		if node.Snapshot == ref {
			return node.Name
		}
		if found := nameOf(node.ChildSnapshotList, ref); found != "" {
			return found
		}
	}
	return ""
}
