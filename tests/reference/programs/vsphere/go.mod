// VMware's simulator of vCenter, for the tests of the vSphere driver.
module paddock.example/tests/reference/vsphere

go 1.26.0

require github.com/vmware/govmomi v0.52.0

require (
	github.com/google/uuid v1.6.0 // indirect
	golang.org/x/text v0.28.0 // indirect
)
