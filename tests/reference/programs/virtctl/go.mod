// Go wants this file to be here; the versions stand in the .mod files beside it, one for each virtctl.
module paddock.example/tests/reference/virtctl

go 1.26.0
