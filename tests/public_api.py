"""The public interface as data: names with their parameters, commands, exit codes, kinds of JSON.

``python tests/public_api.py`` writes it to `tests/contract/public_api.json`; `tests/contract/test_names.py` compares.
"""

import importlib
import inspect
import json
import pkgutil
import re
from pathlib import Path

_MARKS = ("/", "", "*", "-", "**")  # by kind of parameter
ROOT = Path(__file__).parents[1]
SNAPSHOT = ROOT / "tests" / "contract" / "public_api.json"


def find(name):
    """The object with a dotted name."""
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError:
        return getattr(find(module), attribute)


def list_parameters(thing):
    """Parameters of a callable; None where it has no signature of its own.

    ``x`` may be given by position, ``-x`` by name only, ``/x`` by position only; ``x=`` has a default.
    """
    try:
        found = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return None
    return [f"{_MARKS[one.kind]}{one.name}{'=' * (one.default is not one.empty)}" for one in found]


def describe(thing):
    """Parameters of a function, or of a class and its public methods; other members of a class have None."""
    if not inspect.isclass(thing):
        return {"parameters": list_parameters(thing) if callable(thing) else None}
    names = sorted(name for name in dir(thing) if not name.startswith("_") and _is_ours(thing, name))
    members = {name: inspect.getattr_static(thing, name) for name in names}
    listed = {
        name: list_parameters(getattr(thing, name))
        if isinstance(member, classmethod | staticmethod) or inspect.isfunction(member)
        else None
        for name, member in members.items()
    }
    fields = {name: None for name in getattr(thing, "__dataclass_fields__", {}) if not name.startswith("_")}
    return {"parameters": list_parameters(thing), "members": {**fields, **listed}}


def _is_ours(thing, name):
    return any(name in vars(base) for base in thing.__mro__ if base.__module__.startswith("matrixdp"))


def list_commands(command, path=()):
    """{command: options and arguments} of a group of commands."""
    options = sorted(name for option in command.params for name in [*option.opts, *option.secondary_opts])
    found = {" ".join(path): options} if path else {}
    for name in getattr(command, "commands", {}):
        found |= list_commands(command.commands[name], (*path, name))
    return found


def collect():
    """The public interface."""
    import matrixdp
    from matrixdp.cli.exits import ExitCode
    from matrixdp.cli.main import cli as commands
    from matrixdp.serialise import _READERS

    for module in pkgutil.walk_packages(matrixdp.__path__, "matrixdp."):  # so that all kinds are registered
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    pages = sorted((ROOT / "docs" / "reference").glob("*.md"))
    names = sorted({name for page in pages for name in re.findall(r"^::: (\S+)", page.read_text("utf-8"), re.M)})
    return {
        "names": {name: describe(find(name)) for name in names},
        "commands": list_commands(commands),
        "exit codes": {code.name: int(code) for code in ExitCode},
        "kinds of JSON": sorted(kind for kind in _READERS if "." not in kind),
    }


def differences(before, now):
    """What a program that was written for the interface `before` would miss in the one of now."""
    for name, old in before["names"].items():
        new = now["names"].get(name)
        if new is None:
            yield f"{name} is gone"
            continue
        yield from (f"{name}: {one}" for one in _compare(old["parameters"], new["parameters"]))
        for member, parameters in old.get("members", {}).items():
            if member not in new.get("members", {}):
                yield f"{name}.{member} is gone"
            else:
                yield from (f"{name}.{member}: {one}" for one in _compare(parameters, new["members"][member]))
    for command, options in before["commands"].items():
        missing = set(options) - set(now["commands"].get(command, ()))
        yield from (f"matrixdp {command} {option} is gone" for option in sorted(missing))
        if command not in now["commands"]:
            yield f"matrixdp {command} is gone"
    yield from (
        f"exit code {name} changed"
        for name, code in before["exit codes"].items()
        if now["exit codes"].get(name) != code
    )
    yield from (
        f"JSON of kind {kind} cannot be read" for kind in set(before["kinds of JSON"]) - set(now["kinds of JSON"])
    )


def _compare(old, new):
    if old is None or new is None:
        return
    known, before = ({one.rstrip("="): one.endswith("=") for one in some} for some in (new, old))
    for one, optional in before.items():
        if one not in known:
            yield f"parameter {one} is gone, or another kind of parameter"
        elif optional and not known[one]:
            yield f"parameter {one} is required now"
    yield from (
        f"parameter {one} is new and required"
        for one in known
        if one not in before and not known[one] and one[0] != "*"
    )
    placed = [[one.rstrip("=") for one in some if one[0] not in "-*/"] for some in (old, new)]
    if placed[0] != placed[1][: len(placed[0])]:
        yield "parameters are in another order"


def write(found):
    """JSON with a line for each name and command."""
    parts = []
    for part, entries in found.items():
        lines = entries if isinstance(entries, list) else [[name, entries[name]] for name in sorted(entries)]
        rows = [
            json.dumps(one) if isinstance(one, str) else f"{json.dumps(one[0])}: {json.dumps(one[1])}" for one in lines
        ]
        opening, closing = "[]" if isinstance(entries, list) else "{}"
        parts.append(f"{json.dumps(part)}: {opening}\n" + ",\n".join(rows) + f"\n{closing}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    SNAPSHOT.write_text(write(collect()), encoding="utf-8")
