"""Typing commands into Kept: in one home, at a time that stands still, with what was printed and the exit code."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from kept.entrypoints.cli.frame import root
from kept.entrypoints.cli.invocation import Invocation
from tests.builders import FakeClock

SOURCES = Path(__file__).parents[2] / "src"
PROGRAM = "from kept.entrypoints.cli import main; main()"


@dataclass
class Shell:
    """A person at a keyboard. `answers` are what they will answer when asked; without any, nobody can be asked."""

    folder: Path
    clock: FakeClock
    answers: list[bool] | None = None

    def __post_init__(self) -> None:
        self.questions: list[str] = []

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def environment(self) -> dict[str, str | None]:
        """Nothing of the person who runs the tests."""
        own = {name: None for name in os.environ if name.startswith("KEPT_") or name == "NO_COLOR"}
        return {**own, "KEPT_HOME": str(self.home), "KEPT_CONFIG": str(self.folder / "config.toml")}

    def type(self, *arguments: str, input: str | bytes | None = None) -> Result:
        """Run one command, whatever comes of it."""
        ask = None if self.answers is None else self._answer
        invocation = Invocation(clock=self.clock, zone=UTC, ask=ask)
        return CliRunner(env=self.environment).invoke(root, arguments, input=input, obj=invocation)

    def __call__(self, *arguments: str, input: str | bytes | None = None) -> str:
        """Run one command that works; what it printed."""
        result = self.type(*arguments, input=input)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *arguments: str, input: str | bytes | None = None) -> Any:
        """Run one command that works, with --json; the document."""
        return json.loads(self(*arguments, "--json", input=input))

    def fails(self, *arguments: str, input: str | bytes | None = None, code: int = 1) -> str:
        """Run one command that does not work: nothing on standard output; the sentence on standard error.

        The same with --json is one document on standard output that says the same, with the same exit code.
        """
        in_json = self.type(*arguments[:1], "--json", *arguments[1:], input=input)
        assert in_json.exit_code == code, in_json.output
        error = json.loads(in_json.stdout)["error"]
        assert set(error) == {"type", "message", "hint"}
        result = self.type(*arguments, input=input)
        assert result.exit_code == code, result.output
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        sentence = result.stderr.strip().splitlines()[-1]
        assert sentence == f"{error['message']} {error['hint']}".strip()
        return sentence

    def run(
        self, *arguments: str | bytes, input: bytes | None = None, **environment: str
    ) -> "subprocess.CompletedProcess[bytes]":
        """Run one command as a process of its own."""
        return subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments],
            input=input,
            capture_output=True,
            env=self.process_environment(**environment),
            timeout=60,
            check=False,
        )

    def process_environment(self, **environment: str) -> dict[str, str]:
        own = {name: value for name, value in self.environment.items() if value is not None}
        path = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(SOURCES)}
        return {**path, **own, "HOME": str(self.folder), **environment}

    def _answer(self, question: str) -> bool:
        self.questions.append(question)
        assert self.answers, f"an unexpected question: {question}"
        return self.answers.pop(0)
