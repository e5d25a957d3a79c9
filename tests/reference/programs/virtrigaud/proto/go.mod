// The module `proto`, which the Go module proxy lacks: the build generates its one package from programs/provider/provider.proto.
module github.com/projectbeskar/virtrigaud/proto

go 1.26.0
