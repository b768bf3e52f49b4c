"""Lenient conversion of JSON, perhaps from killed programs: values of an unexpected shape count as not stated."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeVar, get_args, get_origin

import msgspec

Struct = TypeVar("Struct", bound=msgspec.Struct)


def convert_struct(stated: Any, kind: type[Struct]) -> Struct:
    """Return ``stated`` as a ``kind``. Fields of a wrong type get their default; elements of a wrong type are left out.

    Raises:
        msgspec.ValidationError: it is not an object, or lacks a field without a default.
    """
    if not isinstance(stated, dict):
        raise msgspec.ValidationError(f"Expected `object`, got `{type(stated).__name__}`")
    values = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name in stated:
            with suppress(msgspec.ValidationError):
                values[field.name] = _converted(stated[field.encode_name], field.type)
        if field.required and field.name not in values:
            raise msgspec.ValidationError(f"Object missing required field `{field.encode_name}`")
    return kind(**values)


def _converted(stated: Any, kind: Any) -> Any:
    if get_origin(kind) is tuple:
        elements = []
        for element in stated if isinstance(stated, list) else ():
            with suppress(msgspec.ValidationError):
                elements.append(_converted(element, get_args(kind)[0]))
        return tuple(elements)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return convert_struct(stated, kind)
    return msgspec.convert(stated, kind)
