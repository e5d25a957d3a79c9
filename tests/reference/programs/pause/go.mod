// The process that holds the namespaces of a pod.
module paddock.example/tests/reference/pause

go 1.26.0
