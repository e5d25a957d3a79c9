"""Users, their tokens and the permissions that they are given."""

import secrets
from typing import Any

from tests.kit.proxmox.access import Grant, Token
from tests.kit.proxmox.context import Context, Routes
from tests.kit.proxmox.errors import ApiError, failed, invalid
from tests.kit.proxmox.formats import split_list

routes = Routes()
USER = "/access/users/{userid}"


def _token(context: Context) -> Token:
    user = context.park.access.users.get(context.text("userid"))
    token = user.tokens.get(context.text("tokenid")) if user else None
    if token is None:
        raise failed(f"no such token '{context.text('tokenid')}' for user '{context.text('userid')}'")
    return token


def _described(token: Token) -> dict[str, Any]:
    found: dict[str, Any] = {"privsep": int(token.separated), "expire": token.expire}
    return found | ({"comment": token.comment} if token.comment else {})


@routes.on("GET /access/users")
def users(context: Context) -> Any:
    all_users = context.park.access.users.items()
    every = context.may("/access/groups", "User.Modify", "Sys.Audit", any_of=True)
    return [
        {"userid": name, "enable": int(user.enabled), "expire": user.expire}
        for name, user in all_users
        if every or name == context.caller.user
    ]


@routes.on(f"GET {USER}")
def user(context: Context) -> Any:
    found = context.park.access.users.get(context.text("userid"))
    if found is None:
        raise failed(f"no such user ('{context.text('userid')}')")
    return {"enable": int(found.enabled), "expire": found.expire, "tokens": {name: _described(each) for name, each in found.tokens.items()}}


@routes.on(f"GET {USER}/token")
def tokens(context: Context) -> Any:
    found = context.park.access.users.get(context.text("userid"))
    return [{"tokenid": name, **_described(each)} for name, each in found.tokens.items()] if found else []


@routes.on(f"GET {USER}/token/{{tokenid}}")
def token(context: Context) -> Any:
    return _described(_token(context))


@routes.on(f"POST {USER}/token/{{tokenid}}")
def add_token(context: Context) -> Any:
    name, owner = context.text("tokenid"), context.park.access.users.get(context.text("userid"))
    if owner is None:
        raise failed(f"no such user ('{context.text('userid')}')")
    if name in owner.tokens:
        raise invalid(tokenid="Token already exists.")
    made = owner.tokens[name] = Token(secrets.token_hex(16), context.flag("privsep", default=True), context.number("expire", 0))
    made.comment = context.text("comment")
    return {"info": _described(made), "value": made.secret, "full-tokenid": f"{context.text('userid')}!{name}"}


@routes.on(f"PUT {USER}/token/{{tokenid}}")
def change_token(context: Context) -> Any:
    found = _token(context)
    found.separated = context.flag("privsep", default=found.separated)
    found.expire = context.number("expire", found.expire)
    found.comment = context.text("comment", found.comment)
    if not context.flag("regenerate"):
        return _described(found)
    found.secret = secrets.token_hex(16)
    return {**_described(found), "value": found.secret, "full-tokenid": f"{context.text('userid')}!{context.text('tokenid')}"}


@routes.on(f"DELETE {USER}/token/{{tokenid}}")
def remove_token(context: Context) -> Any:
    _token(context)
    del context.park.access.users[context.text("userid")].tokens[context.text("tokenid")]


@routes.on("GET /access/acl")
def grants(context: Context) -> Any:
    visible = [each for each in context.park.access.grants if context.may(each.path, "Permissions.Modify")]
    return [
        {
            "path": each.path,
            "ugid": each.who,
            "roleid": each.role,
            "propagate": int(each.propagate),
            "type": "token" if "!" in each.who else "user",
        }
        for each in visible
    ]


@routes.on("PUT /access/acl")
def grant(context: Context) -> Any:
    access, path = context.park.access, context.text("path")
    if "groups" in context.values:
        raise ApiError(501, "the simulator has no groups")
    for role in split_list(context.text("roles")):
        if role not in access.roles:
            raise invalid(roles=f"role '{role}' does not exist")
        for who in split_list(f"{context.text('users')},{context.text('tokens')}"):
            access.grants = [each for each in access.grants if (each.path, each.who, each.role) != (path, who, role)]
            if not context.flag("delete"):
                access.grants.append(Grant(path, who, role, context.flag("propagate", default=True)))
