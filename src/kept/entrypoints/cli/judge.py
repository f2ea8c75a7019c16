"""`kept judge`: decide which findings of a session later sessions are told, one key each, or let a program decide.

A program (`--with`) is run once, after a person has seen the price and agreed, with the hooks of Kept silent and in an
empty folder, so that it neither reads nor writes a memory by itself. Rule: it runs only when a person starts it.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from typing import Any

import click
import msgspec

from kept import tokens
from kept.entrypoints.cli.derived import options_of, request_of
from kept.entrypoints.cli.frame import command, session_named, yes_option
from kept.entrypoints.cli.invocation import HELP, LATER, Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import counted
from kept.entrypoints.hook.agents import SILENT_VARIABLE
from kept.entrypoints.wording import settled_sentence
from kept.errors import InvalidInput, KeptError, NotFound
from kept.memory import Kept
from kept.memory.judge_lists import JudgeList, Judgement
from kept.memory.judging import answer_from
from kept.memory.verbs.judge import JUDGE, PROPOSALS
from kept.text import visible

KEEP, DROP, WRONG, EDIT, BACK, QUIT = "keep", "drop", "wrong", "edit", "undo", "quit"
MEANING = {
    KEEP: "later sessions are told it",
    DROP: "it is not kept; one that was stored before is archived",
    WRONG: "it is false: dropped, and refused if it comes back",
    EDIT: "keep it with a better text, which you type now",
    LATER: "leave it for the next time (the space bar does the same)",
    BACK: "go back to the statement before",
    QUIT: "stop here, and carry out the answers so far",
}
PROGRAMS: Mapping[str, tuple[str, ...]] = {  # each reads its prompt from standard input
    "claude": ("claude", "-p"),
    "codex": ("codex", "exec", "--skip-git-repo-check", "-"),
    "gemini": ("gemini",),
}
PROGRAM_S = 300
ANSWER_TOKENS = 300
AS_JSON = (
    "\n\nDo not call a tool. Answer with one JSON object and nothing else: "
    '{"keep": [numbers], "drop": [numbers], "wrong": [numbers], "rewrite": {"number": "text"}, '
    '"add": [{"content": "text"}]}'
)


@command
@options_of(PROPOSALS)
@options_of(JUDGE, without=("list",))
@click.option("--list", "only_list", is_flag=True, help="Only list, without asking.")
@click.option("--code", metavar="CODE", help="The code of the list that is meant; by default the oldest one.")
@click.option("--with", "program", type=click.Choice([*PROGRAMS]), help="Let this program decide, after you agreed.")
@yes_option
def judge_command(
    invocation: Invocation, *, only_list: bool, code: str | None, program: str | None, yes: bool, **given: Any
) -> None:
    """Rules take statements out of a session. In a terminal you are asked about each: k keeps it, d drops it, w drops
    it as wrong, e edits it, space leaves it for later, u goes back, q ends, ? explains them. Nothing changes before the
    end, and `kept undo` takes it back.

    \b
    kept judge --keep 1 --keep 4 --drop 2 --rewrite 3="Retries are limited to 3 attempts."
    kept judge --with claude
    """
    decided = {name: given.pop(name) for name in ("keep", "drop", "wrong", "rewrite", "add")}
    with invocation.open(yes=yes) as memory:
        if given["session"] is not None:
            given["session"] = session_named(invocation, memory, given["session"])
        asked = memory.perform(PROPOSALS, request_of(PROPOSALS, given))
        answer: Mapping[str, Any] | None = {name: value for name, value in decided.items() if value}
        if answer and not asked.statements:
            raise InvalidInput("No session waits for a judge.", hint="Nothing was changed.")
        if not asked.statements or (only_list and not answer):
            invocation.answer(msgspec.to_builtins(asked), _list_lines(asked))
            return
        if program is not None:
            answer = _answer_of(program, asked, invocation, yes=yes)
        elif not answer:
            if not invocation.can_pick():
                invocation.answer(msgspec.to_builtins(asked), _list_lines(asked))
                return
            answer = _picked(asked, invocation)
        if not answer:
            invocation.answer({"settled": None}, ["No decision was made. Nothing was changed."])
            return
        settled = memory.perform(JUDGE, request_of(JUDGE, {"list": code or asked.code, **answer}))
        _tell_settled(invocation, memory, settled)


def _list_lines(asked: JudgeList) -> list[Line]:
    if not asked.statements:
        return ["No session waits for a judge."]
    lines: list[Line] = [f"Findings of session {asked.session}, list {asked.code}:"]
    lines += asked.lines
    lines.append(Dim("`kept judge --keep NUMBER --drop NUMBER` decides; `kept judge` in a terminal asks one by one."))
    return lines


def _tell_settled(invocation: Invocation, memory: Kept, settled: Judgement) -> None:
    lines: list[Line] = [f"{settled_sentence(settled)} `kept undo` takes it back."]
    if memory.proposals().statements:
        lines.append(Dim("Another session waits: `kept judge`."))
    invocation.answer({"settled": msgspec.to_builtins(settled)}, lines)


# One key each


def _picked(asked: JudgeList, invocation: Invocation) -> Mapping[str, Any]:
    """Return the decisions of a person, one statement after the other."""
    decisions: dict[int, str] = {}
    rewritten: dict[str, str] = {}
    place, statements = 0, asked.statements
    while place < len(statements):
        one = statements[place]
        invocation.tell("", asked.lines[place])
        picked = invocation.pick(f"{place + 1} of {len(statements)}", [*MEANING, HELP])
        if picked == QUIT:
            break
        if picked == HELP:
            invocation.tell(*((Strong(f"    {name:<8}"), meaning) for name, meaning in MEANING.items()))
            continue
        if picked == BACK:
            place = max(0, place - 1)
            continue
        decisions[one.n] = picked
        rewritten.pop(str(one.n), None)
        if picked == EDIT:
            rewritten[str(one.n)] = click.prompt("New text", default=visible(one.text), err=True)
        place += 1
    numbers = {name: [n for n, picked in decisions.items() if picked == name] for name in (KEEP, DROP, WRONG)}
    return {name: value for name, value in {**numbers, "rewrite": rewritten}.items() if value}


# A program


def _answer_of(program: str, asked: JudgeList, invocation: Invocation, *, yes: bool) -> Mapping[str, Any]:
    """Run a program with the list and return its answer."""
    path = shutil.which(PROGRAMS[program][0])
    if path is None:
        raise NotFound(f"{program} is not installed.", hint=f"{_others(program)} decide yourself: kept judge.")
    prompt = asked.text + AS_JSON
    price = counted(tokens.estimate(prompt) + ANSWER_TOKENS, "token")
    invocation.agree(f"Send this list to {program}, about {price} besides the program's own?", yes=yes)
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [path, *PROGRAMS[program][1:]],
                input=prompt,
                cwd=folder,
                env={**os.environ, SILENT_VARIABLE: "1"},
                capture_output=True,
                text=True,
                timeout=PROGRAM_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise KeptError(f"{program} gave no answer within {PROGRAM_S} s. Nothing was changed.") from None
    if done.returncode:
        raise KeptError(f"{program} ended with {done.returncode}. Nothing was changed.")
    answer = answer_from(_json_in(done.stdout, program), asked)
    return {name: value for name, value in msgspec.to_builtins(answer).items() if value}


def _others(program: str) -> str:
    """Name the other programs that are installed, if there are any."""
    found = [name for name, words in PROGRAMS.items() if name != program and shutil.which(words[0])]
    return f"Use {' or '.join(found)}, or" if found else "Install it, or"


def _json_in(said: str, program: str) -> Mapping[str, Any]:
    """Return the JSON object in the text that a program has printed. Raises InvalidInput."""
    start, end = said.find("{"), said.rfind("}")
    try:
        found = msgspec.json.decode(said[start : end + 1] if start >= 0 else "")
    except msgspec.DecodeError:
        found = None
    if not isinstance(found, dict):
        raise InvalidInput(f"The answer of {program} has no JSON object. Nothing was changed.")
    return found
