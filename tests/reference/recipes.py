"""The programs beside the real server that the embedded one is tried with: old kubectls, helm, virtctl, operators, e2e.test."""

from dataclasses import replace
from pathlib import Path

from tests.reference.build import Program, Protocol, Recipe
from tests.reference.clones import Clone, CloneRecipe
from tests.reference.corpus.published import clone

HERE = Path(__file__).parent / "programs"
CLUSTER = Path(__file__).parent / "conformance"

# The newest kubectl comes with the real server. The oldest insists on OpenAPI v2, 1.29 speaks the beta of aggregated discovery, 1.30
# the final one, 1.32 sends its own typed bodies as protobuf.
OLD_KUBECTLS = {
    release: Recipe(
        name=f"kubectl-{release}",
        module=HERE / "kubectl",
        programs=(Program("kubectl", "."),),
        release="k8s.io/kubectl",
        modfile=f"{release}.mod",
    )
    for release in ("1.27", "1.29", "1.30", "1.32", "1.33")
}

HELMS = {
    major: Recipe(
        name=f"helm-{major}",
        module=HERE / "helm",
        programs=(Program("helm", f"helm.sh/helm/v{major}/cmd/helm"),),
        release=f"helm.sh/helm/v{major}",
        variables=(f"helm.sh/helm/v{major}/internal/version.version",),
    )
    for major in ("3", "4")
}

# The first virtctl of the major version, and that of the release which the server says it implements. The proxy lacks three modules of
# the latter, which only `virtctl template` uses: small ones stand in for them.
VIRTCTLS = {
    release: Recipe(
        name=f"virtctl-{release}",
        module=HERE / folder,
        programs=(Program("virtctl", "kubevirt.io/kubevirt/cmd/virtctl"),),
        release="kubevirt.io/kubevirt",
        variables=("kubevirt.io/client-go/version.gitVersion",),
        modfile=modfile,
    )
    for release, folder, modfile in (("1.0", "virtctl", "1.0.mod"), ("1.9", "virtctl-1.9", "go.mod"))
}

# KubeVirt as it works in a cluster, and a program of our own that prints what it needs there. The stand-ins are those of virtctl.
KUBEVIRT = Recipe(
    name="kubevirt-cluster",
    module=HERE / "kubevirt-cluster",
    programs=(
        Program("installation", "."),
        Program("virt-api", "kubevirt.io/kubevirt/cmd/virt-api"),
        Program("virt-controller", "kubevirt.io/kubevirt/cmd/virt-controller"),
    ),
    release="kubevirt.io/kubevirt",
    variables=("kubevirt.io/client-go/version.gitVersion",),
    stand_ins=HERE / "virtctl-1.9" / "templates",
)

# KubeVirt's functional tests, with alterations of their harness.
FUNCTIONAL = Recipe(
    name="kubevirt-tests",
    module=HERE / "kubevirt-tests",
    programs=(Program("functional", "kubevirt.io/kubevirt/tests"),),
    release="kubevirt.io/kubevirt",
    variables=("kubevirt.io/client-go/version.gitVersion",),
    command=("go", "test", "-c", "-vet=off", "-trimpath", "-buildvcs=false"),
    stand_ins=HERE / "virtctl-1.9" / "templates",
    alters=True,
)

# KubeVirt's webhooks as a program that reads objects and writes verdicts.
KUBEVIRT_ADMISSION = Recipe(
    name="kubevirt-admission",
    module=HERE / "kubevirt-admission",
    programs=(Program("admission", "."),),
    release="kubevirt.io/kubevirt",
    variables=("kubevirt.io/client-go/version.gitVersion",),
    stand_ins=HERE / "virtctl-1.9" / "templates",
)

# Older releases: what virt-operator installs, and virt-api. A module of ours stands in for the glog that KubeVirt 1.3 has of its own.
OLDER_KUBEVIRTS = {
    release: replace(
        KUBEVIRT,
        name=f"kubevirt-cluster-{release}",
        programs=KUBEVIRT.programs[:2],
        modfile=f"{release}.mod",
        stand_ins=HERE / "kubevirt-older",
    )
    for release in ("1.3", "1.6")
}

# The rest of a cluster with KubeVirt in it (`cluster/`): what runs on a node, virt-operator, and what goes into the images. The second
# recipe of KubeVirt's links libvirt. A binding of libnbd stands in for the one that the proxy lacks.
NODE = Recipe(
    name="node",
    module=HERE / "node",
    programs=tuple(Program(name, f"k8s.io/kubernetes/cmd/{name}") for name in ("kube-scheduler", "kube-proxy", "kubelet")),
    release="k8s.io/kubernetes",
)
PAUSE = Recipe(name="pause", module=HERE / "pause", programs=(Program("pause", "."),), release="go", variables=())
_KUBEVIRT_NODE = Recipe(
    name="kubevirt-node",
    module=HERE / "kubevirt-node",
    programs=(
        Program("installer", "."),
        Program("libvirt-hook-client", "kubevirt.io/kubevirt/cmd/virt-launcher/libvirt-hook-client"),
        *(
            Program(f"virt-{name}", f"kubevirt.io/kubevirt/cmd/virt-{name}")
            for name in ("operator", "exportproxy", "exportserver", "chroot", "launcher-monitor", "probe", "freezer", "tail")
        ),
    ),
    release="kubevirt.io/kubevirt",
    variables=("kubevirt.io/client-go/version.gitVersion",),
    stand_ins=HERE / "virtctl-1.9" / "templates",
)
KUBEVIRT_NODE = (
    _KUBEVIRT_NODE,
    replace(
        _KUBEVIRT_NODE,
        name="kubevirt-node-cgo",
        programs=tuple(Program(f"virt-{name}", f"kubevirt.io/kubevirt/cmd/virt-{name}") for name in ("launcher", "handler")),
        cgo=True,
    ),
)

# A program of our own that uses machines through KubeVirt's client-go and through Kubernetes'.
MACHINES = Recipe(
    name="kubevirt-client",
    module=HERE / "kubevirt",
    programs=(Program("machines", "."),),
    release="kubevirt.io/client-go",
)

# A program of our own that calls and serves provider.v1 with Go's gRPC and protobuf, and makes Go code of it with both plugins.
PROVIDER = Recipe(
    name="provider",
    module=HERE / "provider",
    programs=(
        Program("provider", "."),
        Program("protoc-gen-go", "google.golang.org/protobuf/cmd/protoc-gen-go"),
        Program("protoc-gen-go-grpc", "google.golang.org/grpc/cmd/protoc-gen-go-grpc"),
    ),
    release="google.golang.org/grpc",
    variables=(),
)

# VirtRigaud's own manager and providers. The proxy lacks two of its modules: a small one of ours stands in for `sdk`, and what the
# plugins make of our file for `proto`.
UPSTREAM = "github.com/projectbeskar/virtrigaud"
VIRTRIGAUD = Recipe(
    name="virtrigaud",
    module=HERE / "virtrigaud",
    programs=tuple(
        Program(name, f"{UPSTREAM}/cmd/{name}") for name in ("provider-mock", "manager", "provider-vsphere", "provider-libvirt")
    ),
    release=UPSTREAM,
    variables=(f"{UPSTREAM}/internal/version.Version",),
    protocol=Protocol(
        PROVIDER.module / "provider.proto", f"{UPSTREAM}/proto/rpc/provider/v1;providerv1", "proto/rpc/provider/v1", PROVIDER
    ),
)

# VMware's simulator of vCenter, with commands for the faults that the vSphere driver is tried with.
VCSIM = Recipe(
    name="vcsim",
    module=HERE / "vsphere",
    programs=(Program("vcsim", "."),),
    release="github.com/vmware/govmomi",
    variables=(),
)

# An S3 server over a directory, for the transfers of migrations.
S3_GATEWAY = Recipe(
    name="versitygw",
    module=HERE / "s3",
    programs=(Program("versitygw", "github.com/versity/versitygw/cmd/versitygw"),),
    release="github.com/versity/versitygw",
    variables=(),
)

# Programs that people bring to a Kubernetes API, each with a page in docs/manifests or docs/testing.
FLUX = Recipe(
    name="flux",
    module=HERE / "flux",
    programs=(Program("kustomize-controller", "github.com/fluxcd/kustomize-controller"),),
    release="github.com/fluxcd/kustomize-controller",
    variables=(),
)
OPENTOFU = Recipe(
    name="opentofu",
    module=HERE / "opentofu",
    programs=(Program("tofu", "github.com/opentofu/opentofu/cmd/tofu"),),
    release="github.com/opentofu/opentofu",
    variables=(),
)
OPENTOFU_KUBECTL = Recipe(
    name="opentofu-kubectl",
    module=HERE / "opentofu-kubectl",
    programs=(Program("terraform-provider-kubectl", "github.com/gavinbunney/terraform-provider-kubectl"),),
    release="github.com/gavinbunney/terraform-provider-kubectl",
    variables=(),
)
CLUSTER_API = Recipe(
    name="cluster-api",
    module=HERE / "cluster-api",
    programs=(Program("manager", "sigs.k8s.io/cluster-api/core"),),
    release="sigs.k8s.io/cluster-api",
    variables=("sigs.k8s.io/cluster-api/version.gitVersion",),
)
K9S = Recipe(
    name="k9s",
    module=HERE / "k9s",
    programs=(Program("k9s", "github.com/derailed/k9s"),),
    release="github.com/derailed/k9s",
    variables=("github.com/derailed/k9s/cmd.version",),
)

# Programs of our own that use the API as operators do: client-go, controller-runtime, and a suite for envtest.
OPERATORS = Recipe(
    name="operators",
    module=Path(__file__).parent / "go",
    programs=tuple(Program(name, f"./cmd/{name}") for name in ("informer", "election", "manager", "upgrade")),
    release="k8s.io/client-go",
)
SUITE = Recipe(
    name="envtest-suite",
    module=Path(__file__).parent / "go",
    programs=(Program("suite", "./operator/suite"),),
    release="k8s.io/client-go",
    command=("go", "test", "-c", "-vet=off", "-trimpath", "-buildvcs=false"),
)

# The Go package for tests of others, with its own tests.
ENVTEST_PACKAGE = Recipe(
    name="envtest-package",
    module=Path(__file__).parents[2] / "envtest",
    programs=(Program("envtest", "."),),
    release="k8s.io/client-go",
    variables=(),
    command=("go", "test", "-c", "-vet=off", "-trimpath", "-buildvcs=false"),
)

# Suites of controller-runtime's own tests that start an environment of envtest; each runs in the folder of its package.
RUNTIME = "sigs.k8s.io/controller-runtime"
RUNTIME_SUITES = Recipe(
    name="controller-runtime",
    module=Path(__file__).parent / "suites",
    programs=tuple(
        Program(path.replace("/", "-"), f"{RUNTIME}/pkg/{path}")
        for path in (
            *("client", "cache", "builder", "cluster", "controller", "controller/controllerutil", "envtest", "handler"),
            *("internal/controller", "internal/recorder", "manager", "manager/internal/integration", "source", "webhook"),
        )
    ),
    release=RUNTIME,
    command=("go", "test", "-c", "-vet=off", "-trimpath", "-buildvcs=false"),
)

# Kubernetes' own end-to-end tests: of the minor version that the server says it is, and of the newest.
CONFORMANCE = {
    release: Recipe(
        name=f"conformance-{release}",
        module=CLUSTER,
        programs=(Program("e2e.test", "k8s.io/kubernetes/test/e2e"),),
        release="k8s.io/kubernetes",
        modfile=modfile,
        command=("go", "test", "-c", "-vet=off", "-trimpath", "-buildvcs=false"),
    )
    for release, modfile in (("1.35", "1.35.mod"), ("1.36", "go.mod"))
}

# The controllers of a real cluster, of the newest release.
CONTROLLERS = Recipe(
    name="kube-controller-manager",
    module=CLUSTER,
    programs=(Program("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),),
    release="k8s.io/kubernetes",
)

# Vitistack's own operator. The proxy has neither its module nor the one with its kinds, which it requires as v0.8.59.
VITISTACK = CloneRecipe(
    name="vitistack",
    clone=clone("vitistack/kubevirt-operator"),
    programs=(Program("kubevirt-operator", "./cmd"),),
    beside=(Clone("vitistack/common", "5cf9264defba84c408852da60c3cd3af8cbf5b2f", "github.com/vitistack/common"),),
)

# CDI as a cluster runs it. The proxy has no module of it but that of its kinds, and not the binding of libnbd, which its repository holds.
# The second recipe links libnbd, newer than many hosts have it: whoever builds says where it lies.
_CDI = Clone("kubevirt/containerized-data-importer", "938af7c54b2491321156bad2daa707b54bbdb214")
CDI = CloneRecipe(
    name="cdi",
    clone=_CDI,
    programs=(
        Program("manifest-generator", "./tools/manifest-generator"),
        *(Program(f"cdi-{name}", f"./cmd/cdi-{name}") for name in ("operator", "controller", "apiserver", "uploadproxy", "cloner")),
        *(Program(f"cdi-{name}", f"./tools/cdi-{name}") for name in ("containerimage-server", "image-size-detection")),
    ),
    # without the other vendored modules, which the proxy serves
    paths=("cmd", "pkg", "staging", "tools", "go.mod", "go.sum"),
    files=("cmd/cdi-cloner/cloner_startup.sh",),
)
CDI_LINKED = replace(
    CDI,
    name="cdi-linked",
    programs=(
        *(Program(f"cdi-{name}", f"./cmd/cdi-{name}") for name in ("importer", "uploadserver")),
        Program("cdi-source-update-poller", "./tools/cdi-source-update-poller"),
    ),
    beside=(replace(_CDI, module="libguestfs.org/libnbd", folder="vendor/libguestfs.org/libnbd"),),
    files=(),
    cgo=True,
)
