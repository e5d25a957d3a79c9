// Go wants this file to be here; the versions stand in the .mod files beside it, one for each kubectl.
module paddock.example/tests/reference/kubectl

go 1.24.0
