// What upstream's providers call of the module `sdk`, which the Go module proxy lacks.
module github.com/projectbeskar/virtrigaud/sdk

go 1.26.0
