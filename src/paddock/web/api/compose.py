"""`POST compose`: the form of a new machine becomes manifests in the dialect asked for. Nothing is written."""

import re
from collections.abc import Collection, Iterator

from paddock.base import quantity
from paddock.base.errors import PaddockError, Terminal
from paddock.fleet.creation import imagewords, newmachine, takennames, userdata
from paddock.fleet.creation.imagewords import ImageWord
from paddock.fleet.creation.newmachine import DIALECTS, HostPort, NewMachine
from paddock.kubernetes.meta.manifests import write
from paddock.kubernetes.meta.translated import Loss
from paddock.web.answers.editing import WebComposed, WebFormProblem, WebMachineForm
from paddock.web.api.convert import place_of
from paddock.web.images import WebImageAddress
from paddock.web.routes import WebRequest, WebRoute

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_MOST_MACHINES, _MOST_CPUS, _LAST_PORT = 100, 512, 65535
_MEMORY, _DISK = "1Gi", "10Gi"


async def compose(request: WebRequest) -> WebComposed:
    """Return the manifests of a form, or what is wrong with it."""
    form, session = request.read(WebMachineForm), request.session
    wrong = list(problems(form))
    image, address = ImageWord("url", form.image), WebImageAddress(address="")
    try:
        library, catalogue = await session.host.images.names()
        # Files of the host are no business of a page.
        image = imagewords.interpret(form.image, library, catalogue, lambda path: False)
        address = await session.host.images.provide(image)
    except Terminal as error:
        wrong.insert(0, WebFormProblem(field="image", message=_sentence(error), fix=error.fix))
    if wrong:
        return WebComposed(yaml="", losses=[], remarks=[], errors=wrong, machines=[])
    taken = await takennames.of(session.client, form.namespace)
    return composed(form, image, address, taken)


def composed(form: WebMachineForm, image: ImageWord, address: WebImageAddress, taken: Collection[str]) -> WebComposed:
    """Return the manifests of a form that is right in itself."""
    names = (
        imagewords.several(form.name, form.count) if form.name else imagewords.unused_series(imagewords.base_name(image), form.count, taken)
    )
    if used := [each for each in names if each in taken]:
        message = f"there is a machine or a disk called {', '.join(used)} in {form.namespace} already"
        return _refused(WebFormProblem(field="name", message=message, fix="choose another name"))
    try:
        made = newmachine.composed([_machine(form, each, image, address) for each in names])
    except PaddockError as error:
        return _refused(WebFormProblem(field="", message=_sentence(error), fix=error.fix))
    return WebComposed(
        yaml=write.to_yaml(made.objects),
        losses=list(dict.fromkeys(map(_loss, made.losses))),
        remarks=list(remarks(form)),
        errors=[],
        machines=[place for each in made.objects if (place := place_of(each, form.namespace))],
    )


def _refused(problem: WebFormProblem) -> WebComposed:
    return WebComposed(yaml="", losses=[], remarks=[], errors=[problem], machines=[])


def _machine(form: WebMachineForm, name: str, image: ImageWord, address: WebImageAddress) -> NewMachine:
    keys = [userdata.public_key(each, "the key") for each in form.keys]
    return NewMachine(
        name=name,
        namespace=form.namespace,
        dialect=form.dialect,
        image=image,
        address=address.address,
        cpus=form.cpus,
        memory=form.memory or address.memory or _MEMORY,
        disk=form.disk or address.disk or _DISK,
        user_data=form.user_data or userdata.document(keys, form.user, form.password),
        ports=tuple(HostPort(each.host, each.guest, each.protocol) for each in form.ports),
        labels=form.labels,
        network=form.network,
        start=form.start,
    )


# --- what may stand in a form -----------------------------------------------------------------------------------------------


def problems(form: WebMachineForm) -> Iterator[WebFormProblem]:
    """Yield what is wrong with a form by itself, each with its field."""
    if form.name and not _NAME.fullmatch(form.name):
        yield _problem("name", f'"{form.name}" is no name', "use lower-case letters, digits and hyphens, 63 at most")
    if not _NAME.fullmatch(form.namespace):
        yield _problem("namespace", f'"{form.namespace}" is no namespace', "use lower-case letters, digits and hyphens")
    if form.dialect not in DIALECTS:
        yield _problem("dialect", f'there is no dialect "{form.dialect}"', f"the dialects are {', '.join(DIALECTS)}")
    if not 1 <= form.count <= _MOST_MACHINES:
        yield _problem("count", f"{form.count} machines are not possible", f"make 1 to {_MOST_MACHINES} at once")
    if not 1 <= form.cpus <= _MOST_CPUS:
        yield _problem("cpus", f"{form.cpus} processors are not possible", f"give 1 to {_MOST_CPUS}")
    for field, text in (("memory", form.memory), ("disk", form.disk)):
        if text and not (quantity.is_quantity(text) and quantity.whole(text) > 0):
            fix = f"write {quantity.meant(text)[-1]}" if quantity.meant(text) else "write an amount such as 2Gi"
            yield _problem(field, f'"{text}" is no amount', fix)
    yield from _of_login(form)
    yield from _of_network(form)


def _of_login(form: WebMachineForm) -> Iterator[WebFormProblem]:
    if form.user and not _USER.fullmatch(form.user):
        yield _problem("user", f'"{form.user}" is no user of a guest', "use lower-case letters, digits, - and _, 32 at most")
    for key in form.keys:
        try:
            userdata.public_key(key, "the key")
        except userdata.BadPublicKey as error:
            yield _problem("keys", _sentence(error), error.fix)
    if form.user_data and (form.keys or form.password or form.user):
        message = "user data of your own and a user, keys or a password exclude each other"
        yield _problem("userData", message, "put them into the user data, or leave that empty")


def _of_network(form: WebMachineForm) -> Iterator[WebFormProblem]:
    namespace, _, network = form.network.rpartition("/")
    if form.network and not (_NAME.fullmatch(network) and (not namespace or _NAME.fullmatch(namespace))):
        yield _problem("network", f'"{form.network}" is no network', "name a NetworkAttachmentDefinition, or leave it empty")
    if form.ports and form.count > 1:
        yield _problem("ports", "ports of the host are for one machine", "make one, or leave out the ports")
    if form.ports and form.network:
        yield _problem("ports", "ports of the host lead to the pod network", "leave out the network or the ports")
    for each in form.ports:
        if not (1 <= each.host <= _LAST_PORT and 1 <= each.guest <= _LAST_PORT) or each.protocol not in ("TCP", "UDP"):
            yield _problem("ports", f"{each.host}:{each.guest}/{each.protocol} is no port", "give numbers from 1 to 65535, and TCP or UDP")
    for name, value in form.labels.items():
        if not _LABEL_KEY.fullmatch(name) or not _LABEL_VALUE.fullmatch(value):
            yield _problem("labels", f'"{name}={value}" is no label', "use letters, digits, - _ and ., 63 at most")


def _problem(field: str, message: str, fix: str) -> WebFormProblem:
    return WebFormProblem(field=field, message=message, fix=fix)


def remarks(form: WebMachineForm) -> Iterator[str]:
    """Yield what a person should know before the machine is made."""
    if form.password:
        yield "The password stands in the manifest as plain text: whoever may read the machine may read it. A key is better."
    if not (form.keys or form.password or form.user_data):
        yield "Without a key and a password nobody can log in by SSH; the console needs what the image has."
    if form.user_data and not form.user_data.startswith("#"):
        yield "The user data does not begin with #cloud-config or #!: cloud-init may ignore it."


def _sentence(error: PaddockError) -> str:
    return ": ".join(filter(None, (error.what, error.why)))


def _loss(loss: Loss) -> str:
    return ": ".join(filter(None, (loss.of, loss.field if loss.path else "", f"{loss.why}; {loss.instead}")))


ROUTES = (WebRoute("POST", "compose", compose),)
