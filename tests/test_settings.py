"""Promises of `kept.settings`: the tables, the layers, and what is refused."""

import copy
import pickle
import subprocess
import sys
from types import MappingProxyType

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.errors import SettingsError
from kept.model import KINDS
from kept.settings import HELP, Settings, as_mapping, fields, flat, resolve, shown
from kept.tables import (
    HISTORY_KINDS,
    IMPORTANCE_BY_KIND,
    KIND_WEIGHTS,
    OTHER,
    PRESETS,
    PROFILES,
    RETENTIONS,
    SHELF_LIFE_DAYS,
    by_kind,
)


def refused(mapping, where="user file config.toml"):
    """What a person reads when the mapping is refused."""
    with pytest.raises(SettingsError) as caught:
        resolve([(where, mapping)])
    return str(caught.value)


# What the fields are


def test_every_field_is_documented_once_and_in_the_order_of_the_class():
    documented = [name for lines in HELP.values() for name in lines]
    assert documented == list(Settings.__struct_fields__)
    assert [field.name for field in fields()] == documented
    for field in fields():
        assert field.help.endswith("."), field.name
        assert field.help.count("\n") == 0, field.name
        assert field.allowed, field.name


def test_the_defaults_are_those_of_the_designs():
    """A9, A14, A23, B10, B11, B12, B16, B19, C4, C17, D10: the defaults that the designs give."""
    expected = {
        "reinforce_weight": 3,
        "demote_weight": 1,
        "max_size_bytes": 100_000_000,
        "max_memories": None,
        "prune_schedule": "0 4 * * *",
        "prune_percent": 1,
        "tool_result_retention": 5,
        "compaction_threshold_tokens": 100_000,
        "compaction_keep_recent": 10,
        "flush_enabled": True,
        "flush_threshold_tokens": 80_000,
        "search_provider": "fts5",
        "vector_model": None,
        "memory_path": "MEMORY.md",
        "sessions_path": "sessions",
        "max_memory_chars": 50_000,
        "session_retention_days": 30,
        "checkpoint_every_messages": 10,
        "auto_memory": True,
        "preset": "balanced",
        "quarantine_hours": 24,
        "auto_briefing": True,
        "briefing_max_tokens": 5_000,
        "briefing_max_percent": 8,
        "briefing_shares": {"task": 40, "project": 40, "global": 20},
        "profile": "kept",
        "retention": "kept",
        "redact_email": True,
        "recall_deadline_ms": 200,
        "write_wait_s": 30,
        "backup_daily": True,
        "backups_kept": 7,
    }
    defaults = as_mapping(Settings())
    assert {name: defaults[name] for name in expected} == expected


def test_a_field_tells_its_type_its_default_and_what_it_allows():
    by_name = {field.name: field for field in fields()}
    assert (by_name["demote_weight"].type_name, by_name["demote_weight"].allowed) == (
        "int",
        "a whole number from 0 to 100",
    )
    assert by_name["max_memories"].type_name == "int or none"
    assert by_name["max_memories"].allowed == "a whole number of at least 1, or none"
    assert by_name["kind_weights"].type_name == "table of float"
    assert by_name["preset"].choices == ("conservative", "balanced", "aggressive", "manual")
    assert by_name["preset"].group == "writing"


# The tables


def test_presets_are_those_of_praxis_and_manual_promotes_nothing():
    """C5: minPoints, minImportance, minContentLength."""
    rows = {name: (row.min_points, row.min_importance, row.min_length_chars) for name, row in PRESETS.items()}
    assert rows == {
        "conservative": (4, 0.4, 50),
        "balanced": (3, 0.25, 30),
        "aggressive": (2, 0.15, 20),
        "manual": (None, 0.25, 30),
    }


def test_shelf_lives_by_kind():
    """C28: days until an automatic memory of a kind is archived."""
    expected = {
        "progress": 14,
        "discovery": 21,
        "file_change": 21,
        "warning": 30,
        "decision": 90,
        "error": 90,
        "pattern": 180,
        "architecture": 180,
        "preference": 365,
        "other": 90,
    }
    assert dict(SHELF_LIFE_DAYS) == expected, "If that is intended, change it here and run: make docs"
    assert by_kind(Settings().shelf_life_days, "fact") == 90


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("SHELF_LIFE_DAYS", SHELF_LIFE_DAYS),
        ("IMPORTANCE_BY_KIND", IMPORTANCE_BY_KIND),
        ("KIND_WEIGHTS", KIND_WEIGHTS),
    ],
)
def test_every_row_of_a_table_by_kind_is_a_known_kind(name, table):
    unknown = sorted(set(table) - {*KINDS, OTHER})
    assert not unknown, f"tables.{name} has rows for {unknown}: add them to KINDS in kept/model.py, or correct them."
    assert OTHER in table, f"tables.{name} needs a row for every other kind: OTHER."


def test_kinds_that_tell_history_are_known_kinds():
    assert set(KINDS) >= HISTORY_KINDS


def test_importance_and_weight_of_every_kind():
    """D7: decisions .9, conventions .8, failures .85."""
    importance = {kind: by_kind(IMPORTANCE_BY_KIND, kind) for kind in KINDS}
    raised = {"decision": 0.9, "preference": 0.9, "error": 0.85, "convention": 0.8, "pattern": 0.7, "tool_output": 0.7}
    hint = "If that is intended, change it here and run: make docs"
    assert importance == {kind: raised.get(kind, 0.5) for kind in KINDS}, hint
    weights = {"warning": 1.2, "decision": 1.15, "preference": 1.1, "error": 1.1, "progress": 0.8}
    expected = {kind: weights.get(kind, 1.0) for kind in KINDS}
    assert {kind: by_kind(KIND_WEIGHTS, kind) for kind in KINDS} == expected, hint


def test_profile_koshi_scores_by_match_feedback_and_recency_and_nothing_else():
    koshi = PROFILES["koshi"]
    assert koshi.factors == ("match", "feedback", "recency"), "a design of others: it stays"
    assert dict(koshi.columns) == {"content": 1, "tags": 1, "source": 1}
    assert (koshi.aliases, koshi.prefix, koshi.fuzzy_share, koshi.threshold_share) == (False, False, 0, 0)
    assert koshi.max_per_session is None


def test_profile_praxis_has_the_factors_and_columns_of_its_design():
    """C14: score = match × kind × recency × use × files × status."""
    praxis = PROFILES["praxis"]
    assert praxis.factors == ("match", "kind", "recency", "use", "files", "status"), "a design of others: it stays"
    assert dict(praxis.columns) == {"content": 2, "tags": 1.5, "files": 1.2, "kind": 1}
    assert (praxis.aliases, praxis.prefix, praxis.fuzzy_share) == (True, True, 0.2)
    assert (praxis.threshold_share, praxis.max_per_session) == (0.3, 2)


def test_profile_kept_has_every_factor_and_hybrid_differs_by_vectors_alone():
    """B16: hybrid is kept with vectors in its match, which counts coverage among the words."""
    kept = PROFILES["kept"]
    older = {*PROFILES["koshi"].factors, *PROFILES["praxis"].factors} - {"feedback", "recency"}
    factors = older | {"favour", "freshness", "importance", "coverage"}
    assert set(kept.factors) == factors, "If that is intended, change it here, and describe it in docs/recall.md."
    in_hybrid = tuple(name for name in kept.factors if name != "coverage")
    assert PROFILES["hybrid"] == msgspec.structs.replace(kept, vectors=True, factors=in_hybrid)


def test_retentions_say_what_leaves_and_by_which_worth():
    """A14, C27: koshi archives by size alone and leaves out the decayed importance."""
    assert RETENTIONS["kept"].shelf_life == "automatic"
    assert RETENTIONS["kept"].max_memories is None
    praxis = RETENTIONS["praxis"]
    assert (praxis.shelf_life, praxis.max_memories) == ("all", 3000)
    assert round(3000 * praxis.shrink_to_share) == 2700
    assert RETENTIONS["koshi"].shelf_life == "none"
    assert RETENTIONS["koshi"].worth == ("feedback", "recency")
    assert "decayed_importance" in RETENTIONS["kept"].worth


@pytest.mark.parametrize("table", [PROFILES, PRESETS, RETENTIONS, SHELF_LIFE_DAYS, KIND_WEIGHTS, IMPORTANCE_BY_KIND])
def test_the_tables_cannot_be_changed(table):
    with pytest.raises(TypeError):
        table["kept"] = None


# Layers


def test_a_later_layer_wins_and_every_value_knows_its_origin():
    resolved = resolve(
        [
            ("first", {"profile": "koshi", "reinforce_weight": 5, "demote_weight": 2}),
            ("second", {"profile": "praxis", "reinforce_weight": 7}),
            ("third", {"profile": "hybrid"}),
        ]
    )
    settings = resolved.settings
    assert (settings.profile, settings.reinforce_weight, settings.demote_weight) == ("hybrid", 7, 2)
    names = ("profile", "reinforce_weight", "demote_weight", "preset")
    assert [resolved.origin[name] for name in names] == ["third", "second", "first", "default"]


def test_tables_are_merged_row_by_row_each_row_with_its_origin():
    resolved = resolve(
        [("first", {"shelf_life_days": {"warning": 60, "error": 10}}), ("second", {"shelf_life_days": {"error": 20}})]
    )
    assert dict(resolved.settings.shelf_life_days) == {**SHELF_LIFE_DAYS, "warning": 60, "error": 20}
    origin = resolved.origin
    assert (origin["shelf_life_days.warning"], origin["shelf_life_days.error"]) == ("first", "second")
    assert origin["shelf_life_days.decision"] == "default"
    assert set(origin) == set(flat(resolved.settings))


def test_a_new_kind_with_its_own_shelf_life_is_one_row():
    settings = resolve([("file", {"shelf_life_days": {"incident": 400}})]).settings
    assert by_kind(settings.shelf_life_days, "incident") == 400
    assert by_kind(settings.shelf_life_days, "unheard_of") == 90


def test_other_words_for_a_kind_mean_that_kind():
    settings = resolve([("file", {"shelf_life_days": {"failure": 33, "Task Progress": 7}})]).settings
    assert (settings.shelf_life_days["error"], settings.shelf_life_days["progress"]) == (33, 7)
    assert "failure" not in settings.shelf_life_days


def test_a_later_layer_can_take_a_limit_away():
    layers = [("user", {"max_memories": 1000, "vector_model": "mini"}), ("project", {"max_memories": "none"})]
    settings = resolve([*layers, ("argument", {"vector_model": None})]).settings
    assert (settings.max_memories, settings.vector_model) == (None, None)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("100MB", 100_000_000),
        ("100 mb", 100_000_000),
        ("1.5GB", 1_500_000_000),
        ("64KiB", 65_536),
        ("2g", 2_000_000_000),
        ("70000", 70_000),
        (70_000, 70_000),
    ],
)
def test_a_size_is_a_number_of_bytes_or_has_a_unit(text, size_bytes):
    """A14: `maxSize: 100MB`."""
    assert resolve([("file", {"max_size_bytes": text})]).settings.max_size_bytes == size_bytes


# What is refused


def test_an_unknown_name_is_refused_with_the_file_and_the_nearest_name():
    message = refused({"profil": "koshi"})
    assert message.startswith("user file config.toml: there is no setting 'profil'.")
    assert "Did you mean profile?" in message
    assert "Did you mean reinforce_weight?" in refused({"reinforceWeight": 3})


@pytest.mark.parametrize(
    ("name", "typo", "nearest", "all_names"),
    [
        ("profile", "praxsis", "praxis", PROFILES),
        ("preset", "balance", "balanced", PRESETS),
        ("retention", "koshy", "koshi", RETENTIONS),
        ("search_provider", "fts", "fts5", ("fts5", "hybrid")),
    ],
)
def test_a_word_that_is_not_allowed_is_refused_with_those_that_are(name, typo, nearest, all_names):
    message = refused({name: typo})
    assert f"{name} must be one of {', '.join(all_names)}, not '{typo}'" in message
    assert f"Did you mean {nearest}?" in message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("reinforce_weight", "3"),
        ("reinforce_weight", 3.5),
        ("reinforce_weight", True),
        ("reinforce_weight", -1),
        ("reinforce_weight", 101),
        ("reinforce_weight", None),
        ("auto_memory", "yes"),
        ("auto_memory", 1),
        ("profile", ["kept"]),
        ("profile", "KEPT"),
        ("max_memories", 0),
        pytest.param("max_memories", 10**5000, id="a number too long to print"),
        ("max_size_bytes", "100 elephants"),
        ("max_size_bytes", "1KB"),
        ("max_size_bytes", "9" * 400 + "GB"),
        ("prune_percent", 0),
        ("prune_percent", float("nan")),
        ("write_wait_s", float("inf")),
        ("prune_schedule", "daily"),
        ("prune_schedule", "0 4 * * *; rm"),
        ("vector_model", ""),
        ("vector_model", "mini\nlm"),
        ("vector_model", "mini\udc80"),
        ("quarantine_hours", -1),
        ("shelf_life_days", 60),
        ("shelf_life_days", {"warning": 0}),
        ("shelf_life_days", {"warning": "60"}),
        ("shelf_life_days", {"": 60}),
        ("shelf_life_days", {"no such/kind": 60}),
        ("shelf_life_days", {"k" * 65: 60}),
        ("shelf_life_days", {3: 60}),
        ("kind_weights", {"warning": 0}),
        ("briefing_shares", {"tasks": 40}),
        ("briefing_shares", {"task": 0, "project": 0, "global": 0}),
    ],
)
def test_a_wrong_value_is_refused_by_name_with_its_origin(name, value):
    message = refused({name: value}, where="project file settings.toml")
    assert message.startswith("project file settings.toml: ")
    assert name in message
    assert len(message) < 300
    assert message.isprintable()


@pytest.mark.parametrize(
    "path",
    ["../MEMORY.md", "/etc/MEMORY.md", "a/../b.md", "kept.db", "C:\\m.md", ".hidden.md", "a//b.md", "", "m.md\n"],
)
def test_the_memory_file_cannot_leave_its_folder_or_take_the_place_of_the_database(path):
    assert "memory_path must be a relative path that ends in .md" in refused({"memory_path": path})


def test_two_rows_for_one_kind_are_refused():
    assert "two rows for error" in refused({"shelf_life_days": {"error": 10, "failure": 20}})


def test_shares_that_become_all_zero_over_several_layers_are_refused():
    layers = [("first", {"briefing_shares": {"task": 0, "project": 0}}), ("second", {"briefing_shares": {"global": 0}})]
    with pytest.raises(SettingsError, match=r"second: every row of briefing_shares is 0\."):
        resolve(layers)
    shares = resolve([*layers, ("third", {"briefing_shares": {"task": 1}})]).settings.briefing_shares
    assert dict(shares) == {"task": 1, "project": 0, "global": 0}


def test_an_error_never_quotes_a_long_or_nested_value():
    assert len(shown("x" * 10_000)) < 70
    assert shown({"key": ["secret"]}) == "a value of type dict"
    assert shown("\x1b[31mred\u202e") == "'\\x1b[31mred\\u202e'"


# A Settings that exists is valid


def test_settings_made_by_hand_are_checked_too():
    with pytest.raises(SettingsError, match="Did you mean koshi"):
        Settings(profile="koshii")
    with pytest.raises(SettingsError, match="reinforce_weight"):
        msgspec.structs.replace(Settings(), reinforce_weight=-3)
    assert Settings(shelf_life_days={"warning": 60}).shelf_life_days["decision"] == 90


def test_settings_and_their_tables_cannot_be_changed():
    settings = Settings(kind_weights={"warning": 2})
    with pytest.raises(AttributeError):
        settings.profile = "koshi"
    with pytest.raises(TypeError):
        settings.kind_weights["warning"] = 3
    with pytest.raises(TypeError):
        Settings().shelf_life_days["warning"] = 3


def test_changing_the_mapping_that_was_given_changes_no_settings():
    rows = {"warning": 60}
    settings = Settings(shelf_life_days=rows)
    rows["warning"] = 1
    assert settings.shelf_life_days["warning"] == 60


def test_settings_survive_copying_pickling_and_json():
    settings = Settings(profile="koshi", shelf_life_days={"incident": 7}, max_memories=5)
    assert copy.deepcopy(settings) == settings
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert Settings(**msgspec.json.decode(msgspec.json.encode(as_mapping(settings)))) == settings


# Any mapping

junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(Settings.__struct_fields__)
words = st.sampled_from([*PROFILES, *PRESETS, *RETENTIONS, *KINDS, "none", "100MB", "0 4 * * *", "MEMORY.md"])
rows = st.dictionaries(words | st.text(max_size=8), st.integers(-1, 200) | st.floats() | junk, max_size=3)


@given(
    st.lists(st.dictionaries(names | st.text() | st.integers(), junk | words | rows | st.integers(0, 90), max_size=3))
)
def test_any_mapping_resolves_or_is_refused_with_a_settings_error(mappings):
    layers = [(f"layer {number}", mapping) for number, mapping in enumerate(mappings)]
    try:
        resolved = resolve(layers)
    except SettingsError as error:
        message = str(error)
    else:
        message = ""
        assert set(resolved.origin) == set(flat(resolved.settings))
        assert resolve([("again", as_mapping(resolved.settings))]).settings == resolved.settings
    assert message.isprintable()


def test_a_read_only_mapping_is_a_layer_too():
    layer = MappingProxyType({"shelf_life_days": MappingProxyType({"warning": 60})})
    assert resolve([("argument", layer)]).settings.shelf_life_days["warning"] == 60


def test_importing_settings_spares_what_only_errors_and_files_need():
    script = (
        "import sys, kept.settings; "
        "print({'difflib', 'tomllib', 'tempfile', 'platformdirs', 'tomlkit', 'ruamel.yaml'} & set(sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "set()"
