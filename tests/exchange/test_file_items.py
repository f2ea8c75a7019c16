"""B6: items of a project's own files in other formats than Markdown and Python."""

import pytest

from kept.exchange import code_items, doc_text, markdown_items
from kept.exchange.items import CitedItem
from kept.projects.sources import is_vendored
from tests.speed import seconds

RST = """
Sessions
========

.. _sessions:

The session is a dictionary. It must never hold secrets, because the user can read it.

.. warning::

    Do not use the default key in production.
    Anybody could sign cookies with it.

.. py:data:: SESSION_COOKIE_NAME

    The name of the session cookie. Can be changed in case you
    already have a cookie with the same name.

    Default: ``'session'``

.. code-block:: python

    # this must never be an item of the page
    app = Flask(__name__)

You must call :meth:`~flask.Flask.run` last::

    app.run()  # must never be an item either

.. versionadded:: 1.0

.. deprecated:: 2.0
    Use ``storage`` instead of ``session`` in new code.

Changes
-------

- The old name must always be kept.
"""

TYPESCRIPT = """/*! Copyright (c) 2024 Somebody. Licensed under the MIT licence. */
import { x } from './x'

const url = 'http://example.org/*' // NOTE: the order of these routes matters

/**
 * Options of the body parser.
 */
export type ParseOptions = {
  /**
   * Determines whether {@link dots} in names make nested objects.
   * @default false
   */
  dot?: boolean
}

/**
 * Mounts a handler below a path, and strips the path from the request.
 *
 * The path must begin with a slash.
 *
 * @param path - where it must never be read from
 * @returns the application, which must never be used twice
 * @deprecated Use `route` in new code.
 * @example
 * ```ts
 * app.mount('/x', y) // must never be an item
 * ```
 */
@logged()
export async function mount(path: string): App {}

/** Counts requests that nobody outside of this file may know. */
function hidden() {}

/**
 * Gets the name.
 */
export function getName() {}
"""

GO = """// Copyright 2020 Somebody.

// Package flags parses the command line into flags and positional arguments.
package flags

// Execute uses the arguments of the process and runs the matching command.
//
// Deprecated: use ExecuteContext, which can be cancelled.
func (c *Command) Execute() error {
	// TODO this isn't quite right yet
	return nil
}

// helper must be called with the lock held.
func helper() {}
"""

RUST = """//! Connection pools that share one runtime between all clients.

/// A builder of clients, with timeouts and proxies for each of them.
///
/// # Panics
///
/// Panics when it is used outside of a runtime.
///
/// # Examples
///
/// ```
/// let x = 'a'; // must never be an item
/// ```
#[derive(Debug)]
pub struct Builder<'a> {
    /// Seconds until an idle connection in the pool is closed.
    pub idle: u64,
}

/// Says nothing that callers outside of this crate may use.
pub(crate) fn inner() {}
"""

JAVA = """/*
 * Copyright (C) 2008 Google Inc.
 */
package x;

/**
 * Converts <code>objects</code> to JSON text and back again.
 *
 * <p>Instances are thread-safe and must not be changed after construction.
 *
 * <pre>
 * gson.mustNeverBeAnItem();
 * </pre>
 *
 * @author Jane
 */
public final class Gson {
  /** Serializes {@code null} fields that would be left out otherwise. */
  @Override
  public Gson serializeNulls() { return this; }

  /** Keeps a cache that only this class may know about. */
  private void cache() {}
}
"""


def said(items: list[CitedItem]) -> list[tuple[str, str, int]]:
    return [(one.type, one.content, one.line) for one in items]


def test_directives_of_restructured_text_are_notes_and_definitions() -> None:
    assert said(doc_text.items_of("docs/sessions.rst", RST)) == [
        ("claim", "The session is a dictionary. It must never hold secrets, because the user can read it.", 7),
        ("note", "Do not use the default key in production. Anybody could sign cookies with it.", 11),
        (
            "entity",
            "SESSION_COOKIE_NAME: The name of the session cookie. Can be changed in case you already have a cookie"
            " with the same name.",
            16,
        ),
        ("note", "Use storage instead of session in new code.", 33),
    ]
    assert doc_text.items_of("CHANGES.rst", "The parser must never see it, since version two.\n") == []


def test_doc_comments_of_typescript_tell_the_meaning_of_exports() -> None:
    assert said(code_items.items_of("src/app.ts", TYPESCRIPT)) == [
        ("note", "the order of these routes matters", 4),
        ("entity", "ParseOptions.dot: Determines whether dots in names make nested objects.", 11),
        ("entity", "mount: Mounts a handler below a path, and strips the path from the request.", 18),
        ("claim", "mount: The path must begin with a slash.", 20),
        ("note", "mount: Use route in new code.", 24),
    ]


def test_doc_comments_of_go_rust_and_java_tell_the_meaning_of_public_names() -> None:
    assert said(code_items.items_of("flags/flags.go", GO)) == [
        ("entity", "flags: Package flags parses the command line into flags and positional arguments.", 3),
        ("entity", "Execute uses the arguments of the process and runs the matching command.", 6),
        ("note", "Command.Execute: use ExecuteContext, which can be cancelled.", 8),
        ("task", "this isn't quite right yet", 10),
        ("claim", "helper must be called with the lock held.", 14),
    ]
    assert said(code_items.items_of("src/lib.rs", RUST)) == [
        ("entity", "src/lib.rs: Connection pools that share one runtime between all clients.", 1),
        ("entity", "Builder: A builder of clients, with timeouts and proxies for each of them.", 3),
        ("note", "Builder: Panics when it is used outside of a runtime.", 7),
        ("entity", "Builder.idle: Seconds until an idle connection in the pool is closed.", 16),
    ]
    assert said(code_items.items_of("src/main/java/x/Gson.java", JAVA)) == [
        ("entity", "Gson: Converts objects to JSON text and back again.", 7),
        ("claim", "Gson: Instances are thread-safe and must not be changed after construction.", 9),
        ("entity", "Gson.serializeNulls: Serializes null fields that would be left out otherwise.", 18),
    ]


def test_tests_tell_only_their_tasks_and_decisions() -> None:
    code = (
        '"""Tests that the parser must never see two heads at once."""\n# NOTE: flaky on Mondays\n# TODO: test heads\n'
    )
    for path in ("tests/test_parser.py", "src/parser.test.ts", "src/test/java/ParserTest.java", "parser_test.go"):
        text = code if path.endswith(".py") else "// NOTE: flaky on Mondays\n// TODO: test heads\n"
        assert [one.content for one in code_items.items_of(path, text)] == ["test heads"]


@pytest.mark.parametrize(
    ("comment", "content"),
    [
        ("TODO: close the file", "close the file"),
        ("TODO close the file", "close the file"),
        ("TODO - close the file", "close the file"),
        ("TODO(ann) close the file", "close the file"),
        ("todo: close the file", "close the file"),
        ("@todo: close the file", "close the file"),
        ("TODO FIXME: close the file", "close the file"),
        ("TODO/FIXME close the file", "close the file"),
        ("XXX: TODO: HACK close the file", "close the file"),
        ("todo close the file", None),
        ("reason: the rule that granted access", None),
        ("TODOs are listed elsewhere", None),
        ("XXX.XXX.X is a placeholder", None),
        ("TODO-list widgets are drawn here", None),
        ("the TODO list is drawn here", None),
    ],
)
def test_a_marker_needs_no_colon_and_several_may_follow_each_other(comment: str, content: str | None) -> None:
    for path, mark in (("a.py", "#"), ("a.go", "//"), ("a.sql", "--")):
        found = [one.content for one in code_items.items_of(path, f"{mark} {comment}\n")]
        assert found == ([content] if content else []), path


def test_markers_on_lines_below_each_other_are_items_of_their_own() -> None:
    code = "// TODO close the file\n// FIXME: flush the buffer\n//   before that\n// XXX\n// why is it slow?\n"
    assert said(code_items.items_of("a.rs", code)) == [
        ("task", "close the file", 1),
        ("task", "flush the buffer before that", 2),
        ("task", "why is it slow?", 4),
    ]


def test_generated_and_minified_code_has_no_items() -> None:
    code = "// TODO: close the file\n"
    assert code_items.items_of("a.go", f"// Code generated by protoc. DO NOT EDIT.\n{code}") == []
    assert code_items.items_of("a.js", code + "x=1;" * 3_000) == []
    assert code_items.items_of("a.js", code + "x=1;\n" * 3_000)


@pytest.mark.parametrize(
    ("path", "is_others"),
    [
        ("datasette/vendored/click/core.py", True),
        ("vendor/github.com/x/y.go", True),
        ("third_party/zlib.c", True),
        ("web/node_modules/react/index.js", True),
        ("dist/index.js", True),
        ("static/jquery.min.js", True),
        ("static/app.js.map", True),
        ("src/vendor.py", False),
        ("src/distance/dist.go", False),
        ("docs/vendoring/index.md", False),
    ],
)
def test_folders_of_other_projects_and_built_files_are_known_by_name(path: str, is_others: bool) -> None:
    assert is_vendored(path) is is_others


def test_a_title_is_a_statement_and_not_the_heading_above_it() -> None:
    page = "# Storage\n\n## Background\n\nWe chose SQLite over files because two programs write. It is fast.\n"
    [item] = markdown_items.items_of("docs/storage.md", page)
    assert item.title == "We chose SQLite over files because two programs write"
    module = '"""\nParser\n======\n\nReads the configuration of every tenant from one table.\n"""\n'
    [item] = code_items.items_of("src/parser.py", module)
    assert item.title == "src/parser.py: Reads the configuration of every tenant from one table"


def test_labels_that_come_again_are_joined_and_a_term_is_defined_once() -> None:
    page = "# Help\n\n## A\n\n**Symptom:** It is slow\n\n**Solution:** Warm the cache first, for example:\n\n"
    page += "## B\n\n**Symptom:** It is red\n\n**Solution:** Paint it\n\n**Cache**: rows that were read before\n"
    assert said(markdown_items.items_of("help.md", page)) == [
        ("note", "Symptom: It is slow. Solution: Warm the cache first.", 5),
        ("note", "Symptom: It is red. Solution: Paint it", 11),
        ("entity", "Cache: rows that were read before", 15),
    ]


def test_a_statement_that_points_back_brings_the_sentence_before_it() -> None:
    page = "# A\n\nTokens are signed by the gateway. They must never be logged.\n\nIt must be run again.\n"
    assert [one.content for one in markdown_items.items_of("a.md", page)] == [
        "Tokens are signed by the gateway. They must never be logged."
    ]


@pytest.mark.parametrize("ending", ["ts", "rs", "go", "java", "py", "rst", "sql"])
@pytest.mark.parametrize(
    "unit",
    """/*|/**%|'\\'|"\\"|`a|// TODO: x y%|TODO |[|<a |:a:`|{@link |a::%%|a%===%| a%  b%|class A {%|.. note:: a%|(|%"""
    """|- a%|You must x. It never y. """.split("|"),
)
def test_extraction_takes_linear_time(ending: str, unit: str) -> None:
    """Four times the text may take ten times as long, on a busy machine; in quadratic time it would be sixteen."""
    rules = doc_text if ending == "rst" else code_items

    def taken_s(chars: int) -> float:
        text = unit.replace("%", "\n") * (chars // len(unit))
        return seconds(lambda text: rules.items_of(f"a.{ending}", text), text)

    short = max(taken_s(20_000), 0.01)
    assert any(taken_s(80_000) < 10 * short for _ in range(5))
