// Package libnbd stands in for the binding of the same name, which the Go module proxy lacks. virt-launcher uses it for
// backups that others pull; here each of them fails with a reason, and everything else of virt-launcher works.
package libnbd

import "errors"

var errAbsent = errors.New("this virt-launcher was built without libnbd, so it cannot serve pull-mode backups")

const (
	CONTEXT_BASE_ALLOCATION   = "base:allocation"
	CONTEXT_QEMU_DIRTY_BITMAP = "qemu:dirty-bitmap:"

	STATE_HOLE  uint32 = 1
	STATE_ZERO  uint32 = 2
	STATE_DIRTY uint32 = 1
)

type LibnbdExtent struct {
	Length uint64
	Flags  uint64
}

type (
	Libnbd               struct{}
	PreadOptargs         struct{}
	BlockStatus64Optargs struct{}
	ExtentCallback       func(metacontext string, offset uint64, entries []LibnbdExtent, nbdErr *int) int
)

func Create() (*Libnbd, error) { return nil, errAbsent }

func (*Libnbd) Close() error                              { return nil }
func (*Libnbd) AddMetaContext(string) error               { return errAbsent }
func (*Libnbd) CanMetaContext(string) (bool, error)       { return false, errAbsent }
func (*Libnbd) GetSize() (uint64, error)                  { return 0, errAbsent }
func (*Libnbd) SetExportName(string) error                { return errAbsent }
func (*Libnbd) ConnectUnix(string) error                  { return errAbsent }
func (*Libnbd) Pread([]byte, uint64, *PreadOptargs) error { return errAbsent }
func (*Libnbd) BlockStatus64(uint64, uint64, ExtentCallback, *BlockStatus64Optargs) error {
	return errAbsent
}
