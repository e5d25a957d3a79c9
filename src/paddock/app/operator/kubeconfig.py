"""Access of an operator to its API, from a kubeconfig or a ServiceAccount."""

from collections.abc import Mapping

from paddock.app.operator.settings import OperatorSettings
from paddock.base.clock import Clock
from paddock.base.errors import PaddockError
from paddock.kubernetes.client import incluster, kubeconfig
from paddock.kubernetes.client.access import Access
from paddock.kubernetes.client.errors import BadAccess


def find(settings: OperatorSettings, environ: Mapping[str, str], clock: Clock) -> Access:
    """The kubeconfig that is named, else that of KUBECONFIG, else the Pod's own way in, else the user's kubeconfig."""
    if settings.kubeconfig is not None:
        return kubeconfig.find(environ, clock, explicit=settings.kubeconfig, context=settings.context)
    named = environ.get("KUBECONFIG", "")
    if named:
        return _named(settings, environ, clock)
    if incluster.is_inside(environ) and not settings.context:
        return incluster.load(environ, clock)
    files = kubeconfig.paths(environ)
    if not any(path.exists() for path in files):
        raise BadAccess("there is no API to work against", fix="give --kubeconfig or KUBECONFIG, or run in a Pod with a ServiceAccount")
    return kubeconfig.find(environ, clock, context=settings.context)


def _named(settings: OperatorSettings, environ: Mapping[str, str], clock: Clock) -> Access:
    try:
        config = kubeconfig.read(kubeconfig.paths(environ), required=len(kubeconfig.paths(environ)) == 1)
        return kubeconfig.access(config, clock, context=settings.context)
    except PaddockError as problem:
        raise BadAccess(f"cannot use KUBECONFIG={environ['KUBECONFIG']}", why=problem.what, fix=problem.fix) from problem


def front(settings: OperatorSettings, environ: Mapping[str, str], clock: Clock) -> Access | None:
    """The API that has the front objects, when it is another one."""
    return None if settings.front is None else kubeconfig.find(environ, clock, explicit=settings.front)
