"""Public docstrings are numpydoc: a summary sentence, known sections in one order, parameters that exist."""

import importlib
import inspect
import pkgutil
import re

import pytest

import matrixdp

# In this order. "Privacy" is this project's own: for which neighbours, which guarantee, under which assumptions.
SECTIONS = (
    *("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns"),
    *("Privacy", "Notes", "References", "Examples"),
)

# These end their Parameters with a sentence about those that they inherit, which numpydoc takes for a parameter.


def exported():
    """Every function and class that a package exports, by its full name."""
    packages = [found.name for found in pkgutil.iter_modules(matrixdp.__path__, "matrixdp.") if found.ispkg]
    for package in map(importlib.import_module, ["matrixdp", *packages]):
        for name in getattr(package, "__all__", ()):
            thing = getattr(package, name)
            if getattr(thing, "__module__", "").startswith("matrixdp"):
                yield f"{thing.__module__}.{thing.__qualname__}", thing


def own_members(thing):
    """Public methods and properties that a class defines itself, and describes."""
    for name, member in vars(thing).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if (
            not name.startswith("_")
            and (inspect.isfunction(function) or isinstance(member, property))
            and member.__doc__
        ):
            yield name, function


def documented():
    """Everything exported, and the members of exported classes."""
    for name, thing in dict(exported()).items():
        yield name, thing
        if inspect.isclass(thing):
            yield from ((f"{name}.{member}", function) for member, function in own_members(thing))


DOCUMENTED = dict(documented())


def docstring(name):
    return inspect.getdoc(DOCUMENTED[name]) or ""


def sections(text):
    """Heading, underline and body of each section."""
    parts = re.split(r"^([A-Z][A-Za-z ]*)\n(-{3,})\n", text, flags=re.MULTILINE)
    return list(zip(parts[1::3], parts[2::3], parts[3::3], strict=True))


def parameters(text):
    """Names that the section Parameters describes: ``lower, upper : array_like`` has two."""
    for heading, _, body in sections(text):
        lines = body.splitlines() if heading == "Parameters" else ()
        for line in lines:
            if line and not line[0].isspace():
                yield from (name.strip().lstrip("*") for name in line.split(" : ")[0].split(","))


def accepted(thing):
    """What a function or class takes; an abstract base may only declare it."""
    declared = inspect.get_annotations(thing) if inspect.isclass(thing) else {}
    return {*inspect.signature(thing).parameters, *declared}


def summary_fault(text):
    first = text.split("\n")[0]
    return None if first.endswith(".") else f"the first line does not end with a period: {first!r}"


def section_fault(text):
    found = sections(text)
    headings = [heading for heading, _, _ in found]
    if headings != [heading for heading in SECTIONS if heading in headings]:
        return f"sections are unknown, repeated or out of order: {headings}"
    uneven = [heading for heading, underline, _ in found if len(heading) != len(underline)]
    return f"underlines differ in length from {uneven}" if uneven else None


def parameter_fault(text, takes):
    unknown = set(parameters(text)) - takes
    return f"parameters that do not exist: {sorted(unknown)}" if unknown else None


def silent_members():
    """Public methods and properties of public classes that neither have a docstring nor override another."""
    for found in pkgutil.walk_packages(matrixdp.__path__, "matrixdp."):
        if found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        for thing in vars(module).values():
            if not inspect.isclass(thing) or thing.__module__ != found.name or thing.__name__.startswith("_"):
                continue
            for name, member in vars(thing).items():
                code = getattr(member, "__func__", getattr(member, "func", getattr(member, "fget", member)))
                first = not any(name in vars(base) for base in thing.__mro__[1:])
                if getattr(code, "__name__", "") == name and not name.startswith("_") and first and not member.__doc__:
                    yield f"{thing.__module__}.{thing.__qualname__}.{name}"


def faults(check, names=DOCUMENTED):
    found = {name: check(docstring(name), DOCUMENTED[name]) for name in names}
    return {name: fault for name, fault in found.items() if fault}


def test_first_lines_are_sentences():
    assert faults(lambda text, _: summary_fault(text)) == {}


def test_sections_are_known_and_in_order():
    assert faults(lambda text, _: section_fault(text)) == {}


def test_documented_parameters_exist():
    names = [name for name in DOCUMENTED if list(parameters(docstring(name)))]
    assert len(names) > 40
    assert faults(lambda text, thing: parameter_fault(text, accepted(thing)), names) == {}


def test_every_member_is_documented_where_it_is_first_defined():
    assert list(silent_members()) == []


PARAMETERS = "Sum.\n\nParameters\n----------\na, b : float\nc : int\n    A count.\n"


@pytest.mark.parametrize(
    ("fault", "word"),
    [
        (summary_fault("Sum of two numbers\n"), "period"),
        (section_fault("Sum.\n\nExamples\n--------\n>>> 1\n\nNotes\n-----\nNone.\n"), "order"),
        (section_fault("Sum.\n\nRemarks\n-------\nNone.\n"), "unknown"),
        (section_fault("Sum.\n\nNotes\n----\nNone.\n"), "underlines"),
        (parameter_fault(PARAMETERS, {"a", "b"}), r"\['c'\]"),
        (parameter_fault(PARAMETERS, {"a", "c"}), r"\['b'\]"),
    ],
)
def test_each_kind_of_fault_is_found(fault, word):
    assert re.search(word, fault)
    assert parameter_fault(PARAMETERS, {"a", "b", "c"}) is None
