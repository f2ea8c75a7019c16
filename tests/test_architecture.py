"""D1, B20: the layers hold, and the package keeps to the boundaries that tests/architecture.py measures."""

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import architecture
from tests.architecture import CEILINGS, FUNCTIONS, LISTED, ROOT, SOURCE, is_below, sources, trees

ENGINES = ("kept.storage.sqlite", "kept.storage.postgres", "kept.storage.inmemory", "kept.storage.jsonfile")
NOUNS = [f"kept.{path.stem}" for path in sorted(SOURCE.glob("*.py")) if path.stem not in ("__init__", "__main__")]
STEPS = ["kept.writing", "kept.recall", "kept.upkeep", "kept.exchange", "kept.storage"]
OPEN_NAMES = {"_replace", "_asdict", "_fields", "_exit"}  # of named tuples and os: documented, despite the underscore
INPUT_AND_OUTPUT = {"os", "time", "socket", "subprocess", "apsw", "random", "secrets", "logging"}


def modules_below(*packages: str) -> dict[str, ast.Module]:
    return {module: tree for module, tree in trees().items() if is_below(module, packages)}


def imported_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def attributes(tree: ast.Module) -> set[str]:
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


# Layers


def test_layers_only_point_down_and_doors_lead_to_the_facade() -> None:
    """The contracts of .importlinter. They also name every module of the root."""
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_only_the_storage_package_knows_its_engines() -> None:
    outside = {module: tree for module, tree in trees().items() if not is_below(module, ["kept.storage"])}
    assert not [(module, name) for module, tree in outside.items() for name in imported_names(tree) if is_engine(name)]


def is_engine(name: str) -> bool:
    return name.startswith(ENGINES)


def test_nothing_below_the_facade_reads_the_environment() -> None:
    modules = modules_below(*NOUNS, *STEPS)
    assert not [module for module, tree in modules.items() if attributes(tree) & {"environ", "getenv"}]


def test_nouns_do_no_input_or_output_and_read_no_clock() -> None:
    for module, tree in modules_below(*NOUNS).items():
        assert not {name.split(".")[0] for name in imported_names(tree)} & INPUT_AND_OUTPUT, module
        assert not attributes(tree) & {"now", "utcnow", "today"}, module


# Lists and ceilings that only shrink


@pytest.mark.parametrize("name", LISTED)
def test_no_breach_is_new(name: str) -> None:
    new = architecture.new_breaches(name)
    assert not new, "\n".join(new)


@pytest.mark.parametrize("name", LISTED)
def test_a_breach_that_is_gone_leaves_its_list(name: str) -> None:
    gone = architecture.gone_breaches(name)
    assert not gone, "\n".join(gone)


@pytest.mark.parametrize("name", CEILINGS)
def test_no_count_is_above_its_ceiling(name: str) -> None:
    above = architecture.above_ceiling(name)
    assert not above, above


def test_updating_drops_what_is_gone_and_adds_nothing() -> None:
    known = {"kept.a:mended": 20, "kept.a:better": 30, "kept.a:worse": 16}
    found = {"kept.a:better": 18, "kept.a:worse": 17, "kept.b:new": 16}
    assert architecture.shrunken(known, found) == {"kept.a:better": 18, "kept.a:worse": 16}


def test_updating_follows_a_move_one_for_one() -> None:
    known = {"kept.a:read": 20, "kept.a -> kept.b": 1}
    found = {"kept.c:read": 20, "kept.d:read": 20, "kept.a -> kept.e": 1, "kept.f -> kept.b": 1}
    assert architecture.shrunken(known, found) == {"kept.c:read": 20, "kept.a -> kept.e": 1}
    assert architecture.shrunken(known, {"kept.c:read": 21}) == {}


def test_the_lists_are_written_as_they_are_read() -> None:
    lists = architecture.listed()
    del lists.breaches["insides_at_doors"]  # in .importlinter
    assert architecture.as_toml(lists) == architecture.LISTS.read_text("utf-8")


def test_a_cycle_of_any_length_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set(), "f": {"a"}}
    knots = sorted(sorted(knot) for knot in architecture.knots_of(graph))
    assert knots == [["a", "b", "c"], ["d"], ["e"], ["f"]]


# Names and reasons


def test_every_module_says_what_it_is_for() -> None:
    assert not [module for module, tree in trees().items() if not ast.get_docstring(tree)]


def test_broad_excepts_are_few_and_explained() -> None:
    """Catching everything is for boundaries; each place says why."""
    for module, text in sources().items():
        lines = text.splitlines()
        for number, line in enumerate(lines, 1):
            if "except Exception" in line or "except BaseException" in line or line.strip() == "except:":
                is_reraised = any(text.strip().startswith("raise") for text in lines[number : number + 8])
                assert "#" in line or is_reraised, f"{module}:{number} swallows without a reason"


def test_no_two_public_classes_have_one_name() -> None:
    """One word for one idea. `compat` and `adapters` have others' words."""
    homes = defaultdict(list)
    for module, tree in trees().items():
        for node in tree.body:
            is_public = isinstance(node, ast.ClassDef) and not node.name.startswith("_")
            if is_public and not is_below(module, ("kept.compat", "kept.adapters")):
                homes[node.name].append(module)
    doubles = {name: modules for name, modules in homes.items() if len(modules) > 1}
    assert not doubles, f"Rename all but one of each: {doubles}."


def test_no_module_uses_the_private_names_of_another() -> None:
    uses = [f"{module}:{line} {text}" for module, tree in trees().items() for line, text in private_uses(tree)]
    assert not uses, "Make these names public, or move the code to where they are:\n" + "\n".join(uses)


def private_uses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of each place that uses a private name of another module or of another module's object."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "kept":
            yield from ((node.lineno, f"from {node.module} import {a.name}") for a in node.names if is_private(a.name))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    yield from private_attributes(tree, frozenset().union(*map(names_defined_in, classes)))


def private_attributes(node: ast.AST, own: frozenset[str]) -> Iterator[tuple[int, str]]:
    """`x._name` where x is neither self nor cls, unless a class of this module defines that name."""
    if isinstance(node, ast.ClassDef):
        own |= names_defined_in(node)
    if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
        owner = node.value
        if not (isinstance(owner, ast.Name) and owner.id in ("self", "cls")):
            yield node.lineno, ast.unparse(node)
    for child in ast.iter_child_nodes(node):
        yield from private_attributes(child, own)


def names_defined_in(scope: ast.ClassDef) -> frozenset[str]:
    names = set()
    for node in ast.walk(scope):
        if isinstance(node, FUNCTIONS):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            names.add(node.attr if node.value.id in ("self", "cls") else "")
    return frozenset(names)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in OPEN_NAMES
