// Package capabilities collects what a provider can do into the answer of GetCapabilities.
package capabilities

import (
	"context"

	providerv1 "github.com/projectbeskar/virtrigaud/proto/rpc/provider/v1"
)

// Manager answers GetCapabilities.
type Manager struct{ response providerv1.GetCapabilitiesResponse }

// GetCapabilities is the call.
func (m *Manager) GetCapabilities(context.Context, *providerv1.GetCapabilitiesRequest) (*providerv1.GetCapabilitiesResponse, error) {
	return &m.response, nil
}

// Builder names one ability after the other.
type Builder struct{ manager *Manager }

// NewBuilder begins with nothing.
func NewBuilder() *Builder { return &Builder{manager: &Manager{}} }

// Build ends it.
func (b *Builder) Build() *Manager { return b.manager }

func (b *Builder) with(set func(*providerv1.GetCapabilitiesResponse)) *Builder {
	set(&b.manager.response)
	return b
}

// These say nothing that the answer carries.
func (b *Builder) Core() *Builder       { return b }
func (b *Builder) Mock() *Builder       { return b }
func (b *Builder) VSphere() *Builder    { return b }
func (b *Builder) TaskStatus() *Builder { return b }

func (b *Builder) Snapshots() *Builder {
	return b.with(func(r *providerv1.GetCapabilitiesResponse) { r.SupportsSnapshots = true })
}

func (b *Builder) MemorySnapshots() *Builder {
	return b.with(func(r *providerv1.GetCapabilitiesResponse) { r.SupportsMemorySnapshots = true })
}

func (b *Builder) LinkedClones() *Builder {
	return b.with(func(r *providerv1.GetCapabilitiesResponse) { r.SupportsLinkedClones = true })
}

func (b *Builder) OnlineReconfigure() *Builder {
	return b.with(func(r *providerv1.GetCapabilitiesResponse) { r.SupportsReconfigureOnline = true })
}

func (b *Builder) OnlineDiskExpansion() *Builder {
	return b.with(func(r *providerv1.GetCapabilitiesResponse) { r.SupportsDiskExpansionOnline = true })
}

func (b *Builder) ImageImport() *Builder {
	return b.with(func(r *providerv1.GetCapabilitiesResponse) { r.SupportsImageImport = true })
}

func (b *Builder) DiskExport(formats ...string) *Builder {
	return b.with(func(r *providerv1.GetCapabilitiesResponse) { r.SupportsDiskExport, r.SupportedExportFormats = true, formats })
}

func (b *Builder) DiskImport(formats ...string) *Builder {
	return b.with(func(r *providerv1.GetCapabilitiesResponse) { r.SupportsDiskImport, r.SupportedImportFormats = true, formats })
}

func (b *Builder) ExportCompression() *Builder {
	return b.with(func(r *providerv1.GetCapabilitiesResponse) { r.SupportsExportCompression = true })
}

func (b *Builder) ExportBackends(names ...string) *Builder {
	return b.with(func(r *providerv1.GetCapabilitiesResponse) { r.SupportedExportBackends = names })
}

func (b *Builder) ImportBackends(names ...string) *Builder {
	return b.with(func(r *providerv1.GetCapabilitiesResponse) { r.SupportedImportBackends = names })
}

func (b *Builder) TransferModes(names ...string) *Builder {
	return b.with(func(r *providerv1.GetCapabilitiesResponse) { r.SupportedTransferModes = names })
}

func (b *Builder) DiskTypes(names ...string) *Builder {
	return b.with(func(r *providerv1.GetCapabilitiesResponse) { r.SupportedDiskTypes = names })
}

func (b *Builder) NetworkTypes(names ...string) *Builder {
	return b.with(func(r *providerv1.GetCapabilitiesResponse) { r.SupportedNetworkTypes = names })
}
