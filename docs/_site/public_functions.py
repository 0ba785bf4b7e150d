"""For the reference: a public function is found by its name, also if the module that defines it has the same name."""

from griffe import Alias, Extension, Function, Module, Object


class PublicFunctions(Extension):
    """Let ``package.name`` mean the function that the package exports, and not the module ``package/name.py``."""

    def on_package(self, *, pkg: Module, **_: object) -> None:
        """Put the functions in the place of such modules, and of what `pkg` itself imports by the same name."""
        for package in pkg.modules.values():
            for name in map(str, package.exports or ()):
                function = find_function(package.members.get(name), name)
                if function is not None:
                    package.members[name] = Alias(name, target=function, parent=package)
                    if name in map(str, pkg.exports or ()):
                        pkg.members[name] = Alias(name, target=function, parent=pkg)


def find_function(member: Object | Alias | None, name: str) -> Function | None:
    """The function of this name in a module, if `member` is a module that has one."""
    found = member.members.get(name) if isinstance(member, Module) else None
    return found if isinstance(found, Function) else None
