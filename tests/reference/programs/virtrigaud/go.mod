// Upstream's manager and providers. The proxy lacks two of their modules: `proto` is generated, and `sdk` is a small one of ours.
module paddock.example/tests/reference/virtrigaud

go 1.26.4

require github.com/projectbeskar/virtrigaud v0.3.11

replace (
	github.com/projectbeskar/virtrigaud/proto => ./proto
	github.com/projectbeskar/virtrigaud/sdk => ./sdk
)
