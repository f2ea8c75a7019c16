"""D1, B20: the layers hold, and nothing below the facade reads the clock or the environment."""

import ast
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "kept"
MODULES = sorted(SOURCE.rglob("*.py"))
NOT_NOUNS = {"__init__", "__main__"}
NOUNS = sorted(path.stem for path in SOURCE.glob("*.py") if path.stem not in NOT_NOUNS)
STEPS = ["writing", "recall", "upkeep", "exchange", "storage"]
OF_NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}


def modules_of(names: Iterable[str]) -> list[Path]:
    found = []
    for name in names:
        path = SOURCE / name
        found += sorted(path.rglob("*.py")) if path.is_dir() else [SOURCE / f"{name}.py"]
    return found


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def test_layers_only_point_down() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_only_the_storage_package_knows_its_engines() -> None:
    engines = ("kept.storage.sqlite", "kept.storage.postgres", "kept.storage.inmemory", "kept.storage.jsonfile")
    for path in SOURCE.rglob("*.py"):
        if path.is_relative_to(SOURCE / "storage"):
            continue
        for node in ast.walk(tree_of(path)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            imported = [f"{module}.{name}" if module else name for name in names]
            assert not [name for name in imported if name.startswith(engines)], path.relative_to(SOURCE)


@pytest.mark.parametrize("path", modules_of([*NOUNS, *STEPS]), ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_nothing_below_the_facade_reads_the_environment(path: Path) -> None:
    names = {node.attr for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute)}
    assert not names & {"environ", "getenv"}


@pytest.mark.parametrize("path", modules_of(NOUNS), ids=lambda path: path.stem)
def test_nouns_do_no_input_or_output_and_read_no_clock(path: Path) -> None:
    tree = tree_of(path)
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert not imported & {"os", "time", "socket", "subprocess", "apsw", "random", "secrets", "logging"}
    called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not called & {"now", "utcnow", "today"}


def test_every_module_says_what_it_is_for() -> None:
    for path in SOURCE.rglob("*.py"):
        docstring = ast.get_docstring(tree_of(path))
        assert docstring, f"{path.relative_to(SOURCE)} has no docstring"


def test_broad_excepts_are_few_and_explained() -> None:
    """Catching everything is for boundaries; each place says why."""
    for path in SOURCE.rglob("*.py"):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if "except Exception" in line or "except BaseException" in line or line.strip() == "except:":
                following = path.read_text("utf-8").splitlines()[number : number + 8]
                is_reraised = any(text.strip().startswith("raise") for text in following)
                assert "#" in line or is_reraised, f"{path.relative_to(SOURCE)}:{number} swallows without a reason"


def test_no_two_public_classes_have_the_same_name() -> None:
    """One word for one idea."""
    places: dict[str, list[str]] = {}
    for path in MODULES:
        if path.is_relative_to(SOURCE / "compat") or path.is_relative_to(SOURCE / "adapters"):  # others' names
            continue
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(path.relative_to(SOURCE).as_posix())
    assert not {name: where for name, where in places.items() if len(where) > 1}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_nobody_touches_private_names_of_others(path: Path) -> None:
    """A private name is used only in the module that defines it, through `self`, `cls` or an object made there."""
    tree = tree_of(path)
    own: set[str] = set()
    libraries: set[str] = set()  # of others, outside of this package
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            libraries |= {alias.asname or alias.name for alias in node.names if not alias.name.startswith("kept")}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            own.add(node.attr)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kept"):
            private = [alias.name for alias in node.names if is_private(alias.name)]
            assert not private, f"line {node.lineno} imports {private}"
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            holder = node.value.id if isinstance(node.value, ast.Name) else ""
            is_ours = holder in ("self", "cls") or node.attr in own
            assert is_ours or holder in libraries, f"line {node.lineno} touches {node.attr}"


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in OF_NAMED_TUPLES
