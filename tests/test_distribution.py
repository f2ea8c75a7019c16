"""The distribution is `kept-memory`: `kept` on the package index is another project, and no text tells to install it.

Every hint prints a command that works where it is printed: the checkout, the wheel or the repository that Kept was
installed from, else the package index.
"""

import json
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kept
from kept import distribution
from kept.distribution import install_line
from tests.wheel import extras_in

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS = sorted(PROJECT["project"]["optional-dependencies"])

OLD_FORMS = (
    # pip, pipx, uv and uvx with any options, up to the end of the command, unless `--from` names our package
    re.compile(
        r"\b(?:pip3?|pipx|uvx?)\b(?! --from ['\"]?kept-memory\b)(?:(?!&&|[;|`#\n]).)*?(?<![\w./@-])kept(?![\w./-])"
    ),
    # the same over the end of a line
    re.compile(r"\b(?:pip3?|pipx|uv|uv tool|uv pip)\s+(?:install|run|inject|add)\s+(?:-\S+\s+)*['\"]?kept(?![\w./-])"),
    re.compile(r"(?<![\w./-])kept\[(?:" + "|".join(extra.replace("_", "[_-]") for extra in EXTRAS) + r")[\],]"),
    re.compile(r"\b(?:version|distribution|metadata|requires|files)\(\s*['\"]kept['\"]"),
)
# The changelog quotes the past, and this file holds the examples.
NOT_READ = {"tests/test_distribution.py"}


def old_forms(text: str) -> list[str]:
    return [found[0] for form in OLD_FORMS for found in form.finditer(text)]


def texts() -> Iterator[tuple[str, str]]:
    tops = [path for path in ROOT.iterdir() if not path.name.startswith(".") or path.name in (".ci", ".github")]
    for path in sorted(file for top in tops for file in ([top] if top.is_file() else top.rglob("*"))):
        name = path.relative_to(ROOT).as_posix()
        if path.is_file() and name not in NOT_READ and "__pycache__" not in path.parts:
            yield name, path.read_bytes().decode("utf-8", "replace")


def test_no_text_of_the_repository_installs_the_package_of_a_stranger() -> None:
    read = dict(texts())
    assert {"README.md", "compose.yaml", "pyproject.toml", "src/kept/distribution.py", "docs/cli.md"} <= read.keys()
    assert {name: found for name, text in read.items() if (found := old_forms(text))} == {}


@pytest.mark.parametrize(
    "line",
    [
        "pip install kept",
        "pip install 'kept[server]'",
        'pip3 install --quiet -U "kept>=0.2"',
        "python -m pip install -c constraints.txt kept==0.2.0",
        "pipx install kept",
        "pipx run kept",
        "uv pip install kept",
        "uv tool install 'kept[agents]'",
        "uv add kept",
        "uvx kept mcp",
        "uvx --from kept kept-hook",
        'subprocess.run(["pip", "install", "kept"])',
        "pip install\n    kept",
        "needs kept[google-adk]",
        "all = ['kept[agents,server]']",
        "metadata.version('kept')",
    ],
)
def test_the_search_finds_the_old_forms(line: str) -> None:
    assert old_forms(line)


@pytest.mark.parametrize(
    "line",
    [
        "pip install 'kept-memory[server]'",
        "pipx install kept-memory",
        "uvx --from kept-memory kept-hook",
        "`pip install '.[server]'`, then `kept serve`",
        "pip install '/checkout[server]' && kept serve",
        "pip install -e '/home/ann/kept[server]'",
        "pip install '.[agents]'\nkept install",
    ],
)
def test_the_search_passes_over_the_new_forms(line: str) -> None:
    assert not old_forms(line)


def test_the_project_its_extras_and_its_version_have_one_name() -> None:
    project = PROJECT["project"]
    assert project["name"] == distribution.NAME == "kept-memory"
    assert set(project["scripts"]) == {"kept", "kept-hook"}
    assert (project["dynamic"], PROJECT["tool"]["hatch"]["version"]["path"]) == (
        ["version"],
        "src/kept/distribution.py",
    )
    assert kept.__version__ == distribution.VERSION


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any] | None], None]:
    """Install the distribution as pip notes it: with or without a direct_url.json."""

    def install(origin: dict[str, Any] | None) -> None:
        noted = tmp_path / "site" / "kept_memory-0.2.0.dist-info"
        noted.mkdir(parents=True)
        (noted / "METADATA").write_text("Metadata-Version: 2.4\nName: kept-memory\nVersion: 0.2.0\n", "utf-8")
        if origin is not None:
            (noted / "direct_url.json").write_text(json.dumps(origin), "utf-8")
        monkeypatch.syspath_prepend(str(noted.parent))

    return install


Installed = Callable[[dict[str, Any] | None], None]


def test_from_the_index_the_name_is_enough(installed: Installed) -> None:
    installed(None)
    assert install_line("server") == "pip install 'kept-memory[server]'"
    assert install_line() == "pip install kept-memory"
    assert install_line("", "--force-reinstall") == "pip install --force-reinstall kept-memory"


@pytest.mark.parametrize("name", ["kept", "my kept", "it's here", "a[b]", "Größe", "50%", "$HOME", "a#b?c"])
@pytest.mark.parametrize("editable", [True, False])
def test_from_a_checkout_the_line_names_the_checkout(
    installed: Installed, tmp_path: Path, name: str, editable: bool
) -> None:
    checkout = tmp_path / name
    checkout.mkdir()
    installed({"url": checkout.as_uri(), "dir_info": {"editable": True} if editable else {}})
    flag = ["-e"] if editable else []
    assert shlex.split(install_line("server")) == ["pip", "install", *flag, f"{checkout}[server]"]
    assert shlex.split(install_line()) == ["pip", "install", *flag, str(checkout)]


def test_the_walk_of_a_wheel_takes_the_extras_of_the_readme_in_their_order() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert {"agents", "server"} <= {name for line in extras_in(readme) for name in line.split(",")}
    twice = "pip install '.[agents,server]'\npip install '.[vector]'\npip install '.[agents,server]'"
    assert extras_in(twice) == ["agents,server", "vector"]


def test_the_sample_data_of_the_page_needs_no_package_beyond_its_extra() -> None:
    """`kept serve --demo` reads a file of Markdown."""
    assert any(one.startswith("markdown-it-py") for one in PROJECT["project"]["optional-dependencies"]["server"])


def test_from_a_wheel_the_line_names_the_wheel_while_it_is_there(installed: Installed, tmp_path: Path) -> None:
    wheel = tmp_path / "kept_memory-0.2.0-py3-none-any.whl"
    wheel.touch()
    installed({"url": wheel.as_uri(), "archive_info": {}})
    assert shlex.split(install_line("server")) == ["pip", "install", f"{wheel}[server]"]
    wheel.unlink()
    assert install_line("server") == "pip install 'kept-memory[server]'"


def test_from_a_repository_the_line_names_the_repository(installed: Installed) -> None:
    vcs = {"vcs": "git", "commit_id": "1f2e3d"}
    installed({"url": "https://git.example.com/kept.git", "vcs_info": vcs})
    wanted = "kept-memory[server] @ git+https://git.example.com/kept.git@1f2e3d"
    assert shlex.split(install_line("server")) == ["pip", "install", wanted]


def test_where_nothing_is_installed_the_source_folder_tells_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "src")])
    assert shlex.split(install_line("server")) == ["pip", "install", "-e", f"{ROOT}[server]"]


@given(extra=st.sampled_from(EXTRAS))
def test_every_hint_is_one_word_for_the_shell(extra: str) -> None:
    *command, target = shlex.split(install_line(extra))
    assert command[:2] == ["pip", "install"]
    assert target.endswith(f"[{extra}]")


def test_the_checkout_of_kept_is_known_by_the_name_in_its_pyproject(tmp_path: Path) -> None:
    (tmp_path / "clone" / "src").mkdir(parents=True)
    (tmp_path / "clone" / "pyproject.toml").write_text(f'[project]\nname = "{distribution.NAME}"\n')
    (tmp_path / "clone" / "app" / ".git").mkdir(parents=True)
    assert distribution.is_own_checkout(tmp_path / "clone")
    assert distribution.is_own_checkout(tmp_path / "clone" / "src")
    assert not distribution.is_own_checkout(tmp_path / "clone" / "app"), "a repository of its own"
    assert not distribution.is_own_checkout(tmp_path)
