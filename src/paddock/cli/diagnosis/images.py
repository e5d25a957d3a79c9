"""Causes that lie with an image, or with the way to it: words of this engine, of CDI's importer, of container runtimes."""

from paddock.cli.diagnosis.rule import CauseDepth
from paddock.cli.diagnosis.told import EventCause

IMAGES: tuple[EventCause, ...] = (
    EventCause(
        id="image-checksum",
        title="The image is not the one that was expected: its checksum differs.",
        fix="Compare the checksum beside the image's address with the one that its publisher gives, and change what is wrong.",
        how="Compare the checksum beside {address} with the one that its publisher gives, and change what is wrong.",
        text=r"checksum|manifest .{0,200} is not the one of the digest|digest mismatch|sha256.{0,40}mismatch",
    ),
    EventCause(
        id="image-unsafe",
        title="The image refers to other files (a backing file, or data kept elsewhere), which is not allowed.",
        fix="Flatten it into one file: qemu-img convert -O qcow2 old.img new.qcow2, and offer that.",
        text=r"backing file|would be read from this host|names other files|keeps its data in another file"
        r"|archive holds (?!no file|a sparse)[^\n]{0,80}(absolute name|leaves it|expected|not only one)",
    ),
    EventCause(
        id="image-too-large",
        title="The disk in the image is larger than the volume that was asked for.",
        fix="Ask for more storage (resources.requests.storage, or the disk's size) than the image needs.",
        text=r"A larger (PVC|volume)|does not fit into the volume|larger (PVC|volume) is required|is larger than the \d+ bytes"
        r"|virtual (image )?size .{0,60}larger than|target size .{0,40}smaller|storage request.{0,60}smaller|unpacks to more than"
        r"|smaller than the image|the image needs",
    ),
    EventCause(
        id="image-encrypted",
        title="The image is encrypted.",
        fix="Decrypt it first: volumes hold plain disks.",
        text=r"image is encrypted",
    ),
    EventCause(
        id="image-architecture",
        title="The container image is not there for this processor architecture.",
        fix="Name an image that is built for the machine's architecture, or change spec.template.spec.architecture.",
        text=r"not there for the architecture|no matching manifest for|exec format error|no image found .{0,60}architecture",
    ),
    EventCause(
        id="image-never-pull",
        title="The image is not on the host, and its pull policy (Never) forbids to fetch it.",
        fix="Set imagePullPolicy: IfNotPresent, or bring the image to the host first: paddock image pull.",
        text=r"ErrImageNeverPull|pull policy.{0,40}Never|never pull",
    ),
    EventCause(
        id="image-credentials",
        title="The image server wants other credentials, or does not let these have the image.",
        fix="Check user and password in the Secret that the source names (secretRef, imagePullSecret).",
        text=r"answered (401|403|407)|\b401\b|\b403\b.{0,20}Forbidden|unauthorized|authentication required|pull access denied|access denied"
        r"|requested access to the resource is denied|no basic auth credentials|invalid username",
        cause="The image server refuses to hand out the image: it wants other credentials.",
    ),
    EventCause(
        id="image-missing",
        title="The image server has no image at this address.",
        fix="Correct the image's address: the path and the tag have to exist.",
        how="Correct {address}: the path and the tag have to exist.",
        text=r"answered (404|410)|\b404\b|manifest unknown|manifest for .{0,200} not found|repository does not exist|name unknown"
        r"|no such image|ImageNotFound|container image holds no file|archive holds no|there is no archive|the server said 404"
        r"|failed to pull.{0,200}not found",
    ),
    EventCause(
        id="image-server-unknown",
        title="The name of the image server cannot be resolved (DNS).",
        fix="Correct the host in the image's address, or the DNS settings of the host.",
        how="Correct the server's name in {address}, or the DNS settings of the host.",
        text=r"the name (?P<host>\S+) cannot be resolved|lookup (?P<host2>\S+).{0,60}no such host|no such host|name resolution"
        r"|Name or service not known|could not resolve host",
    ),
    EventCause(
        id="image-server-certificate",
        title="The image server's certificate is not trusted.",
        fix="Give the authority of the server in a ConfigMap and name it in certConfigMap, or renew the server's certificate.",
        text=r"x509|certificate|TLS handshake|tls: ",
    ),
    EventCause(
        id="image-server-forbidden",
        title="Images may not come from this address: it is one of the host itself, or link-local.",
        fix="Serve the image from elsewhere, or allow the address when Paddock is started.",
        text=r"images may not come from",
    ),
    EventCause(
        id="image-server-failing",
        title="The image server fails (an answer of 5xx).",
        fix="Nothing is wrong with the manifest: the server has to recover. It is tried again.",
        text=r"answered 5\d\d|\b50[0234]\b.{0,40}(Error|Bad Gateway|Unavailable|Timeout)|received unexpected HTTP status: 5\d\d",
    ),
    EventCause(
        id="image-server-busy",
        title="The image server asks to be left alone for a while (429).",
        fix="It is tried again later; use credentials or a mirror if the limit is reached often.",
        text=r"answered 429|toomanyrequests|\b429\b",
    ),
    EventCause(
        id="image-server-slow",
        title="The image server sends so slowly that the import was given up.",
        fix="See to the way to the server, or offer the image on another one. It is tried again.",
        text=r"sends less than",
    ),
    EventCause(
        id="image-server-unreachable",
        title="The image server cannot be reached.",
        fix="See that the server runs and that this host reaches it (firewall, proxy, port in the address). It is tried again.",
        text=r"cannot be reached|the connection to \S+ broke|sent nothing for too long|connection refused|i/o timeout"
        r"|no route to host|network is unreachable|connection reset|unexpected EOF|Client\.Timeout|the download ended after"
        r"|ended after \d+ of",
    ),
    EventCause(
        id="image-not-an-image",
        title="What the address leads to is no disk image.",
        fix="Correct the image's address: it may lead to a page of a download site, or to a file that was cut off.",
        how="Correct {address}: it may lead to a page of a download site, or to a file that was cut off.",
        text=r"is a web page|NotAnImage|no disk image|is damaged|is truncated|qemu-img cannot read|the image is empty|holds no file$"
        r"|several files below /disk|holds a disk of no size|ends in its middle|content of type|check the address: it may lead",
    ),
    EventCause(
        id="image-unsupported",
        title="The image has a form that cannot be read here.",
        fix="Convert it with qemu-img convert -O qcow2, or pack it with gzip, xz or zstd.",
        text=r"cannot be read here|versions 2 and 3 can be read|features of qcow2|of an unknown form|is packed more than|sparse file"
        r"|cannot import an archive|unsupported (image )?format|the file is ",
    ),
    EventCause(
        id="image-source-unsupported",
        title="This kind of source cannot be imported from here.",
        fix="Use http, registry or s3, or upload the disk.",
        text=r"cannot import from ",
    ),
    EventCause(
        id="image-being-pulled",
        title="The machine's container image is being pulled.",
        fix="Wait: how long it takes depends on its size and the network. paddock image ls shows what is there.",
        text=r"(?P<image>\S+) is being pulled",
        cause="Image {image} is being pulled.",
        mood="waits",
        # Why an earlier attempt failed says more.
        rank=CauseDepth.VAGUE,
    ),
    EventCause(
        id="image-limit",
        title="The image is larger than this host takes, or took too long to be looked at.",
        fix="Use a smaller image, or raise the limits that Paddock is started with.",
        text=r"bytes, and \d+ are the most|which are the most|claims a disk of|qemu-img was ended",
    ),
)
