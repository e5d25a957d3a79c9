"""The functions of expressions, by name: global ones and methods."""

from paddock.kubernetes.schema.cel.functions import authorization, lists, network, operators, semantic, standard, texts, times
from paddock.kubernetes.schema.cel.functions.function import Function

_MODULES = (operators, standard, times, texts, lists, network, semantic, authorization)
GLOBAL: dict[str, Function] = {name: function for module in _MODULES for name, function in module.GLOBAL.items()}
METHODS: dict[str, Function] = {}
for _module in _MODULES:
    for _name, _function in _module.METHODS.items():
        METHODS[_name] = METHODS[_name].or_else(_function) if _name in METHODS else _function
