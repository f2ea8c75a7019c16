"""compose.yaml, read and not run: there is no container engine where the tests run."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
yaml = pytest.importorskip("ruamel.yaml")
SERVICES: dict[str, Any] = yaml.YAML(typ="safe").load((ROOT / "compose.yaml").read_text("utf-8"))["services"]


def script(service: str) -> str:
    """The shell script that the service runs."""
    command = SERVICES[service]["command"]
    return command if isinstance(command, str) else command[-1]


def test_every_image_has_a_version_and_every_condition_can_come_true() -> None:
    for name, service in SERVICES.items():
        assert re.fullmatch(r"[\w./-]+:v?\d[\w.-]*", service["image"]), name
        for other, when in service.get("depends_on", {}).items():
            assert when["condition"] != "service_healthy" or "healthcheck" in SERVICES[other], (name, other)
            assert when["condition"] != "service_completed_successfully" or "restart" not in SERVICES[other]


@pytest.mark.parametrize("service", ["setup", "kept"])
def test_its_commands_exist_with_their_options(service: str) -> None:
    commands = re.findall(r"(?:^|sh -euc ')kept ([^\n&']+)", script(service), re.M)
    assert commands
    for command in commands:
        verbs, options = re.split(r" (?=--)", command.strip())[:1], re.findall(r"--[\w-]+", command)
        known = 1 if verbs[0].split()[0] == "serve" else 2
        asked = [sys.executable, "-m", "kept", *verbs[0].split()[:known], "--help"]
        shown = subprocess.run(asked, capture_output=True, text=True, check=False)
        assert shown.returncode == 0, command
        assert f"kept {' '.join(verbs[0].split()[:known])} " in shown.stdout
        for option in options:
            assert option in shown.stdout, command


@pytest.mark.parametrize("service", ["owner", "setup", "kept"])
def test_kept_is_built_from_the_checkout(service: str) -> None:
    """No package index is asked for Kept, and no other file, such as `.env`, gets into the image."""
    build = SERVICES[service]["build"]
    assert build["context"] == "."
    copied = re.findall(r"^COPY (.+) \S+$", build["dockerfile_inline"], re.M)
    files = [name for line in copied for name in line.split()]
    assert files == ["pyproject.toml", "README.md", "LICENSE", "src"]
    assert all((ROOT / name).exists() for name in files)
    [target] = re.findall(r"pip install --quiet '([^'\[]+)\[", build["dockerfile_inline"])
    assert all(
        line.split()[-1].startswith(target) for line in re.findall(r"^COPY .+$", build["dockerfile_inline"], re.M)
    )


def test_no_password_is_part_of_a_url_and_only_the_first_step_is_a_superuser() -> None:
    for name, service in SERVICES.items():
        environment = service.get("environment", {})
        for variable, value in environment.items():
            assert not re.search(r"://[^/]*(:|\$\{\w*PASSWORD)[^/]*@", value), (name, variable)
        uses_superuser = "POSTGRES_PASSWORD" in str(environment)
        assert uses_superuser == (name in ("postgres", "owner"))


@pytest.mark.parametrize(("password", "code"), [("a$b'c\\d e", 0), ('a"b', 1)])
def test_a_password_that_the_image_of_pgbouncer_cannot_write_is_refused(password: str, code: int) -> None:
    [check] = [line for line in script("setup").splitlines() if line.startswith("case ")]
    done = subprocess.run(["sh", "-euc", check.replace("$$", "$")], env={"KEPT_PASSWORD": password}, check=False)
    assert done.returncode == code


def test_its_python_compiles_and_its_settings_are_known() -> None:
    programs = [*re.findall(r"python -c '([^']+)'", script("setup")), SERVICES["kept"]["healthcheck"]["test"][-1]]
    programs.append(script("owner"))
    assert [ast.parse(program) for program in programs]
    told = (ROOT / "docs" / "operating.md").read_text("utf-8")
    for service in SERVICES.values():
        for value in service.get("environment", {}).values():
            for name in re.findall(r"\$\{(\w+)", value):
                assert f"{name}=" in told
