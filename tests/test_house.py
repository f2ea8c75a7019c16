"""The package stays readable: few root modules, a small facade, short chains of imports."""

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import kept

SOURCE = Path(__file__).parent.parent / "src" / "kept"
MAX_ROOT_MODULES = 14
MAX_PUBLIC_NAMES = 40
MAX_CHAIN = 15


@cache
def trees() -> dict[str, ast.Module]:
    """Every module of the package by its dotted name."""
    return {_dotted(path): ast.parse(path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py"))}


def _dotted(path: Path) -> str:
    parts = ("kept", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


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


def test_no_chain_of_imports_is_long() -> None:
    chain = longest_chain()
    assert len(chain) <= MAX_CHAIN, f"{len(chain)} modules import each other in a row: {' > '.join(chain)}."
