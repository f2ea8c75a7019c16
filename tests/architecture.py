"""Measure the package against its boundaries: complexity, import cycles, lazy imports, names, words, layers.

`python -m tests.architecture` reports every breach; `make lint` runs it. `tests/architecture.toml` lists the breaches
that are there today, `.importlinter` the imports past the facade. A new breach fails, and so does a listed one that is
gone. `python -m tests.architecture --update` removes the entries that are gone and lowers the ceilings. It never makes
a list longer and never raises a ceiling.

After a merge conflict in the lists: `git checkout --ours tests/architecture.toml .importlinter`, then `--update`.
"""

import argparse
import ast
import configparser
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import grimp
from radon.visitors import ComplexityVisitor, Function

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "kept"
LISTS = Path(__file__).with_suffix(".toml")
IMPORT_LINTER = ROOT / ".importlinter"
MAX_COMPLEXITY = 15
HARD_TO_READ = 10  # radon's grade C begins above it
LOWER = "Lower it: python -m tests.architecture --update"

DOORS = ("kept.entrypoints", "kept.adapters", "kept.compat")
INSIDES = ("kept.storage", "kept.writing", "kept.recall", "kept.upkeep", "kept.exchange", "kept.projects")
DOORS_CONTRACT = "importlinter:contract:doors"

# One module of each of these packages may have the same name, because:
FAMILIES = {
    "they implement the same parts of the protocol in kept.ports": ("kept.storage.sqlite", "kept.storage.postgres"),
    "they are one topic: its rules, its verbs, and its words for people, programs and agents": (
        "kept.memory",
        "kept.memory.verbs",
        "kept.entrypoints",
        "kept.entrypoints.cli",
        "kept.entrypoints.http",
        "kept.entrypoints.mcp",
        "kept.entrypoints.web",
    ),
    "each has a generated table of the stems of its words": ("kept.recall", "kept.recall.messages"),
}
PIPELINE = "pipeline"  # each step package may have one: the order of its work

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
IMPORTS = ast.Import | ast.ImportFrom

WORDS = {
    "what_clauses": r"\bwhat\b(?![^.!?]*\?)",
    "nobody_somebody_everybody": r"\b(nobody|somebody|everybody)\b",
    "whoever_whatever_whichever": r"\b(whoever|whatever|whichever)\b",
    "of_its_own": r"\bof its own\b",
    "of_which_by_which_in_which": r"\b(of|by|in) which\b",
}
NAMES_A_THING = re.compile(r"(The|Whether|What|How|Which)\b")


# Reading the package


@cache
def sources() -> dict[str, str]:
    """Return the text of every module by its dotted name."""
    return {dotted(path): path.read_text("utf-8") for path in sorted(SOURCE.rglob("*.py"))}


@cache
def trees() -> dict[str, ast.Module]:
    """Return the syntax tree of every module by its dotted name."""
    return {name: ast.parse(text) for name, text in sources().items()}


def dotted(path: Path) -> str:
    """Return the name under which that file is imported."""
    parts = ("kept", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_below(module: str, packages: Iterable[str]) -> bool:
    """Return True if the module is one of these packages or inside one."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


class Import(NamedTuple):
    """One import statement."""

    node: IMPORTS
    function: str  # empty outside functions

    def targets(self) -> Iterator[str]:
        """Yield the modules of kept that it imports."""
        for alias in self.node.names:
            package = self.node.module if isinstance(self.node, ast.ImportFrom) else None
            full = f"{package}.{alias.name}" if package else alias.name
            yield from [name for name in (full, package) if name in trees()][:1]


def imports_of(node: ast.AST, function: str = "") -> Iterator[Import]:
    """Yield the import statements that run at load time or in a function, but not those for type checkers."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        children: Iterable[ast.AST] = node.orelse
    else:
        children = ast.iter_child_nodes(node)
    inside = node.name if isinstance(node, FUNCTIONS) else function
    for child in children:
        if isinstance(child, IMPORTS):
            yield Import(child, inside)
        yield from imports_of(child, inside)


# Lists: each entry is a breach that is there today, with its measure


@cache
def complex_functions() -> dict[str, int]:
    """Return the functions above the ceiling with their cyclomatic complexity."""
    return {name: grade for name, grade in complexities().items() if grade > MAX_COMPLEXITY}


@cache
def complexities() -> dict[str, int]:
    """Return the cyclomatic complexity of every function and method, as `module:Class.method`."""
    found: dict[str, int] = {}
    for module, tree in trees().items():
        for block in ComplexityVisitor.from_ast(tree).blocks:
            if isinstance(block, Function):
                name = f"{module}:{block.fullname}"
                found[name] = max(block.complexity, found.get(name, 0))
    return found


@cache
def cyclic_imports() -> dict[str, int]:
    """Return the imports that are part of a cycle, the ones inside functions included."""
    graph = {
        module: {name for one in imports_of(tree) for name in one.targets()} - {module}
        for module, tree in trees().items()
    }
    knots = {module: number for number, knot in enumerate(knots_of(graph)) for module in knot}
    edges = ((module, other) for module, others in graph.items() for other in others)
    return {f"{module} -> {other}": 1 for module, other in edges if knots[module] == knots[other]}


def knots_of(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected components of a graph (Kosaraju: two walks, the second one backwards)."""
    order: list[str] = []
    seen: set[str] = set()
    for start in sorted(graph):
        walk(graph, start, seen, order)
    backwards: dict[str, set[str]] = defaultdict(set)
    for module, others in graph.items():
        for other in others:
            backwards[other].add(module)
    knots, seen = [], set()
    for start in reversed(order):
        knot: list[str] = []
        walk(backwards, start, seen, knot)
        knots.append(set(knot))
    return [knot for knot in knots if knot]


def walk(graph: Mapping[str, set[str]], start: str, seen: set[str], order: list[str]) -> None:
    """Append to `order` every node that is reached and not yet seen, each after the nodes it leads to."""
    if start in seen:
        return
    seen.add(start)
    for other in sorted(graph.get(start, ())):
        walk(graph, other, seen, order)
    order.append(start)


def lazy_imports() -> list[tuple[str, Import]]:
    """Return the imports inside functions with their modules."""
    return [(module, one) for module, tree in trees().items() for one in imports_of(tree) if one.function]


@cache
def unexplained_imports() -> dict[str, int]:
    """Return the imports inside functions that have no comment on their line or the line above."""
    found: Counter[str] = Counter()
    for module, one in lazy_imports():
        lines = sources()[module].splitlines()
        own, above = lines[one.node.lineno - 1 : one.node.end_lineno], lines[one.node.lineno - 2]
        if not any("#" in line for line in own) and not above.strip().startswith("#"):
            found[f"{module}:{one.function}: {ast.unparse(one.node)}"] += 1
    return dict(found)


@cache
def imports_by_string() -> dict[str, int]:
    """Return the modules that import others by a string, which hides them from every check here."""
    found: Counter[str] = Counter()
    for module, tree in trees().items():
        for node in ast.walk(tree):
            called = ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
            found[module] += called in ("import_module", "__import__")
    return {module: count for module, count in found.items() if count}


@cache
def shared_module_names() -> dict[str, int]:
    """Return the modules that have the name of another one outside their family."""
    homes = defaultdict(list)
    for module in trees():
        is_package = (SOURCE.parent / Path(*module.split("."))).is_dir()
        if not is_package and not is_below(module, ("kept.adapters", "kept.compat")):  # named after others' programs
            homes[module.rpartition(".")[2]].append(module)
    doubles = {name: modules for name, modules in homes.items() if len(modules) > 1 and not are_one_family(modules)}
    return {f"{name}: {module}": 1 for name, modules in doubles.items() for module in modules if name != PIPELINE}


def are_one_family(modules: list[str]) -> bool:
    """Return True if the modules are in packages of one family, no two in the same package."""
    packages = {module.rpartition(".")[0] for module in modules}
    return len(packages) == len(modules) and any(packages <= set(family) for family in FAMILIES.values())


@cache
def insides_at_doors() -> dict[str, int]:
    """Return the imports of a step package by an entrypoint, an adapter or compat, as import-linter counts them."""
    graph = grimp.build_graph("kept", cache_dir=None)
    doors = [module for module in graph.modules if is_below(module, DOORS)]
    edges = ((door, other) for door in doors for other in graph.find_modules_directly_imported_by(door))
    return {f"{door} -> {other}": 1 for door, other in edges if is_below(other, INSIDES)}


LISTED: dict[str, tuple[Callable[[], dict[str, int]], str]] = {
    "complexity": (
        complex_functions,
        f"has a complexity above {MAX_COMPLEXITY} (or a higher one than listed). "
        "Find the decision in it and give it a name; do not cut it at a line number",
    ),
    "cycles": (cyclic_imports, "closes an import cycle. Move the shared part below both modules"),
    "unexplained_imports": (
        unexplained_imports,
        "is an import inside a function without a reason. Move it to the top, or say why in a comment on its line",
    ),
    "imports_by_string": (imports_by_string, "imports by a string. Use an import statement"),
    "module_names": (shared_module_names, "shares its name with a module of another family. Rename one of them"),
    "insides_at_doors": (
        insides_at_doors,
        "reaches past the facade. Ask kept.memory for it; a missing verb belongs there",
    ),
}


# Ceilings: counts that may only fall


def share_hard_to_read() -> int:
    """Return how many of a thousand functions have a complexity above 10, rounded up."""
    hard = sum(grade > HARD_TO_READ for grade in complexities().values())
    return -(-hard * 1000 // len(complexities()))


def uses_of_the_context() -> int:
    """Count the uses of `memory.context` outside kept.memory: each one goes around the facade."""
    return sum(
        isinstance(node, ast.Attribute) and node.attr == "context"
        for module, tree in trees().items()
        if not is_below(module, ["kept.memory"])
        for node in ast.walk(tree)
    )


def docstrings() -> Iterator[tuple[ast.AST, str]]:
    """Yield every docstring and its owner."""
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, FUNCTIONS | ast.ClassDef | ast.Module) and (text := ast.get_docstring(node)):
                yield node, text


def comments() -> Iterator[str]:
    """Yield every comment."""
    for text in sources().values():
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        yield from (token.string for token in tokens if token.type == tokenize.COMMENT)


@cache
def prose() -> str:
    """Return all docstrings and comments."""
    return "\n".join([text for _, text in docstrings()] + list(comments()))


@cache
def docstrings_that_name_a_thing() -> int:
    """Count docstrings of functions and modules that start with The, Whether, What, How or Which."""
    return sum(
        NAMES_A_THING.match(text) is not None for owner, text in docstrings() if not isinstance(owner, ast.ClassDef)
    )


def count_of(pattern: str) -> Callable[[], int]:
    """Return a function that counts the pattern in all docstrings and comments."""
    return lambda: len(re.findall(pattern, prose(), re.IGNORECASE))


CEILINGS: dict[str, tuple[Callable[[], int], str]] = {
    "functions_above_complexity_10_per_thousand": (
        share_hard_to_read,
        "of a thousand functions have a complexity above 10",
    ),
    "lazy_imports": (lambda: len(lazy_imports()), "imports stand inside functions"),
    "uses_of_memory_context": (uses_of_the_context, "uses of memory.context are outside kept.memory"),
    "docstrings_that_name_a_thing": (
        docstrings_that_name_a_thing,
        "docstrings start with The, Whether, What, How or Which. Begin with a verb: Return, Yield, Store",
    ),
    **{
        name: (count_of(pattern), f"matches of /{pattern}/ are in docstrings and comments. Say it in plain words")
        for name, pattern in WORDS.items()
    },
}


# Comparing


class Listed(NamedTuple):
    """The content of the lists: breaches by list, and ceilings."""

    breaches: dict[str, dict[str, int]]
    ceilings: dict[str, int]


def listed() -> Listed:
    """Read the lists."""
    read = tomllib.loads(LISTS.read_text("utf-8"))
    ceilings = read.pop("ceilings")
    breaches = {name: found if isinstance(found, dict) else dict.fromkeys(found, 1) for name, found in read.items()}
    return Listed(breaches | {"insides_at_doors": dict.fromkeys(ignored_imports(), 1)}, ceilings)


def ignored_imports() -> list[str]:
    """Return the exceptions of the contract for doors."""
    contracts = configparser.ConfigParser()
    contracts.read(IMPORT_LINTER, "utf-8")
    return contracts[DOORS_CONTRACT].get("ignore_imports", "").split("\n")[1:]


def new_breaches(name: str) -> list[str]:
    """Say what is wrong in the code: entries that are not listed, or have become worse."""
    found, known = LISTED[name][0](), listed().breaches[name]
    return [f"{entry} {LISTED[name][1]}." for entry, size in sorted(found.items()) if size > known.get(entry, 0)]


def gone_breaches(name: str) -> list[str]:
    """Say which listed entries are no longer true."""
    found = LISTED[name][0]()
    gone = sorted(entry for entry in listed().breaches[name] if entry not in found)
    return [f"{entry}: no longer in breach of {name}. {LOWER}" for entry in gone]


def above_ceiling(name: str) -> list[str]:
    """Say that a count is above its ceiling."""
    count, ceiling = CEILINGS[name][0](), listed().ceilings[name]
    return [f"{count} {CEILINGS[name][1]}; the ceiling is {ceiling}."] if count > ceiling else []


def loose_ceilings() -> list[str]:
    """Name the ceilings that can be lowered. An improvement fails no check, so this is advice."""
    counts = {name: (CEILINGS[name][0](), ceiling) for name, ceiling in listed().ceilings.items()}
    return [f"{name}: {count}, the ceiling is {top}. {LOWER}" for name, (count, top) in counts.items() if count < top]


def report() -> list[str]:
    """Return one line for each breach and each list that has to shrink."""
    lines = [line for name in LISTED for line in (*new_breaches(name), *gone_breaches(name))]
    return lines + [line for name in CEILINGS for line in above_ceiling(name)]


# Updating


def shrunken(known: Mapping[str, int], found: Mapping[str, int]) -> dict[str, int]:
    """Return the known entries that are still found, with their present size where it is smaller.

    An entry that was moved or renamed takes the place of its old one; any other new entry stays out.
    """
    kept = {entry: min(size, found[entry]) for entry, size in known.items() if entry in found}
    gone = {entry: size for entry, size in known.items() if entry not in found}
    for entry, size in found.items():
        old = next((one for one in gone if halves(one) & halves(entry) and gone[one] >= size), None)
        if entry not in known and old is not None:
            kept[entry] = size
            del gone[old]
    return dict(sorted(kept.items()))


def halves(entry: str) -> set[tuple[int, str]]:
    """Return both parts of `module:function` or `importer -> imported`: one of them stays in a move or a renaming."""
    return set(enumerate(re.split(r":| -> ", entry, maxsplit=1)))


def update() -> None:
    """Write smaller lists and lower ceilings."""
    breaches = {name: shrunken(listed().breaches[name], found()) for name, (found, _) in LISTED.items()}
    ceilings = {name: min(count(), listed().ceilings[name]) for name, (count, _) in CEILINGS.items()}
    imports = breaches.pop("insides_at_doors")
    LISTS.write_text(as_toml(Listed(breaches, ceilings)), "utf-8")
    text = IMPORT_LINTER.read_text("utf-8")
    lines = "".join(f"\n    {entry}" for entry in imports)
    IMPORT_LINTER.write_text(re.sub(r"(?<=\nignore_imports =)(\n    .*)*", lambda _: lines, text), "utf-8")


def as_toml(lists: Listed) -> str:
    """Return the text of the lists, one entry a line, sorted."""
    head = "# Breaches of the boundaries in tests/architecture.py that are there today. The lists only shrink, by\n"
    text = f"{head}# `python -m tests.architecture --update`.\n"
    for name, found in lists.breaches.items():
        if name in ("complexity", "imports_by_string"):
            continue
        text += f"\n{name} = [" + "".join(f'\n  "{entry}",' for entry in found) + "\n]\n"
    text += "\n[ceilings]\n" + "".join(f"{name} = {count}\n" for name, count in lists.ceilings.items())
    for name in ("complexity", "imports_by_string"):
        text += f"\n[{name}]\n" + "".join(f'"{entry}" = {size}\n' for entry, size in lists.breaches[name].items())
    return text


def main() -> int:
    """Report, or update the lists first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write smaller lists and lower ceilings")
    if parser.parse_args().update:
        update()
    lines = report()
    print("\n".join(lines) if lines else "The boundaries hold.")
    print("".join(f"{line}\n" for line in loose_ceilings()), end="")
    counts = {name: len(listed().breaches[name]) for name in LISTED}
    print("Left to mend:", ", ".join(f"{count} {name}" for name, count in counts.items()))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
