module paddock.dev/bench/kine

go 1.26

require github.com/k3s-io/kine v0.14.9
