"""The package stays readable: few root modules, a small facade, one name per class, no private names across modules."""

import ast
import inspect
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import kept

SOURCE = Path(__file__).parent.parent / "src" / "kept"
MAX_ROOT_MODULES = 14
MAX_PUBLIC_NAMES = 40
MAX_CHAIN = 15
OPEN_NAMES = {"_replace", "_asdict", "_fields", "_exit"}  # of named tuples and os: documented, despite the underscore


@cache
def trees() -> dict[str, ast.Module]:
    """Every module of the package by its dotted name."""
    return {_dotted(path): ast.parse(path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py"))}


def _dotted(path: Path) -> str:
    parts = ("kept", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in OPEN_NAMES


def private_uses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of each place that uses a private name of another module or of another class's object."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "kept":
            yield from ((node.lineno, f"from {node.module} import {a.name}") for a in node.names if _is_private(a.name))
    yield from _private_attributes(tree, frozenset())


def _private_attributes(node: ast.AST, own: frozenset[str]) -> Iterator[tuple[int, str]]:
    """`x._name` where x is neither self nor cls, unless the class around it defines that name itself."""
    if isinstance(node, ast.ClassDef):
        own |= _names_defined_in(node)
    if isinstance(node, ast.Attribute) and _is_private(node.attr) and node.attr not in own:
        owner = node.value
        if not (isinstance(owner, ast.Name) and owner.id in ("self", "cls")):
            yield node.lineno, ast.unparse(node)
    for child in ast.iter_child_nodes(node):
        yield from _private_attributes(child, own)


def _names_defined_in(scope: ast.ClassDef) -> frozenset[str]:
    names = set()
    for node in ast.walk(scope):
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            names.add(node.attr if node.value.id in ("self", "cls") else "")
    return frozenset(names)


def class_homes() -> dict[str, list[str]]:
    """Public class names and the modules that define them. `compat` and `adapters` have others' words."""
    homes = defaultdict(list)
    for module, tree in trees().items():
        for node in tree.body:
            is_public = isinstance(node, ast.ClassDef) and not node.name.startswith("_")
            if is_public and not module.startswith(("kept.compat", "kept.adapters")):
                homes[node.name].append(module)
    return homes


def imports() -> dict[str, set[str]]:
    """Which of our modules each module imports at load time; imports for type checking do not count."""
    found = {}
    for module, tree in trees().items():
        names = {name for node in _loaded(tree) for name in _imported(node)}
        found[module] = {name for name in names if name in trees()} - {module}
    return found


def _loaded(node: ast.AST) -> Iterator[ast.stmt]:
    """The import statements that run when the module is loaded."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        is_for_types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        if not is_for_types and not isinstance(child, ast.FunctionDef | ast.Lambda):
            yield from _loaded(child)


def _imported(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            submodule = f"{node.module}.{alias.name}"
            yield submodule if submodule in trees() else node.module


def longest_chain() -> list[str]:
    graph = imports()

    @cache
    def below(module: str) -> tuple[str, ...]:
        return (module, *max((below(other) for other in sorted(graph[module])), key=len, default=()))

    return list(max((below(module) for module in sorted(graph)), key=len))


def test_the_root_has_few_modules() -> None:
    nouns = sorted({path.stem for path in SOURCE.glob("*.py")} - {"__init__", "__main__", "compat"})
    assert len(nouns) <= MAX_ROOT_MODULES, f"{len(nouns)} root modules: {', '.join(nouns)}. Put new ones into a folder."


def test_the_facade_has_few_public_names() -> None:
    names = [name for name, _ in inspect.getmembers(kept.Kept) if not name.startswith("_")]
    assert len(names) <= MAX_PUBLIC_NAMES, f"Kept has {len(names)} public names: {', '.join(names)}."


def test_no_module_uses_the_private_names_of_another() -> None:
    uses = [f"{module}:{line} {text}" for module, tree in trees().items() for line, text in private_uses(tree)]
    assert not uses, "Make these names public, or move the code to where they are:\n" + "\n".join(uses)


def test_no_two_public_classes_have_one_name() -> None:
    doubles = {name: homes for name, homes in class_homes().items() if len(homes) > 1}
    assert not doubles, f"Rename all but one of each: {doubles}."


def test_no_chain_of_imports_is_long() -> None:
    chain = longest_chain()
    assert len(chain) <= MAX_CHAIN, f"{len(chain)} modules import each other in a row: {' > '.join(chain)}."
