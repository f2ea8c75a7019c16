"""Promises of `kept.configuration`: which file wins, what is refused, and that writing never breaks a file."""

import json
import os
import re
import stat
import sys
import tomllib
from pathlib import Path

import pytest
import tomlkit
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import kept
from kept.distribution import install_line
from kept.errors import SettingsError
from kept.model import KINDS
from kept.projects.config import (
    MAX_FILE_BYTES,
    RESERVED_VARIABLES,
    import_config,
    load,
    parse_text,
    set_value,
    unset_value,
    user_settings_file,
)
from kept.settings import Settings, as_mapping, fields, flat, resolve

KOSHI_YAML = """
memory:
  reinforceWeight: 4
  demoteWeight: 2
  maxSize: 250MB            # pruning triggers when this is exceeded
  pruneSchedule: "30 3 * * *"
  prunePercent: 2
"""
BRAIN_CONFIG = {
    "memoryPath": "<agent>/MEMORY.md",
    "maxMemorySize": 60_000,
    "sessionsPath": "<agent>/sessions/",
    "sessionRetentionDays": 45,
    "compactionThreshold": 120_000,
    "compactionKeepRecent": 12,
    "flushEnabled": False,
    "flushThreshold": 90_000,
    "searchProvider": "fts5",
    "vectorModel": None,
    "toolResultRetention": 6,
}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "config.toml"


# Layers


def test_each_layer_wins_over_the_one_before_it(tmp_path):
    user, project = tmp_path / "user.toml", tmp_path / "project.toml"
    names = ("reinforce_weight", "demote_weight", "quarantine_hours", "backups_kept")
    user.write_text("".join(f"{name} = 10\n" for name in names))
    project.write_text("".join(f"{name} = 20\n" for name in names[1:]))
    environ = {f"KEPT_{name.upper()}": "30" for name in names[2:]}
    resolved = load(user, project, environ, {"backups_kept": 40})
    assert [getattr(resolved.settings, name) for name in names] == [10, 20, 30, 40]
    assert [resolved.origin[name] for name in (*names, "profile")] == [
        f"user file {user}",
        f"project file {project}",
        "environment KEPT_QUARANTINE_HOURS",
        "argument",
        "default",
    ]


def test_no_files_and_an_empty_environment_give_the_defaults(tmp_path):
    assert load().settings == Settings()
    assert load(tmp_path / "none.toml", tmp_path / "no" / "such.toml").settings == Settings()


def test_a_new_kind_with_its_own_shelf_life_is_one_line_of_toml(file):
    file.write_text("shelf_life_days.incident = 400\n")
    assert load(file).settings.shelf_life_days["incident"] == 400


def test_a_table_in_a_file_and_a_row_in_the_environment_are_merged(file):
    file.write_text("[shelf_life_days]\nwarning = 60\nerror = 61\n")
    resolved = load(file, environ={"KEPT_SHELF_LIFE_DAYS__ERROR": "62"})
    days = resolved.settings.shelf_life_days
    assert (days["warning"], days["error"], days["decision"]) == (60, 62, 90)
    assert resolved.origin["shelf_life_days.error"] == "environment KEPT_SHELF_LIFE_DAYS__ERROR"


def test_the_environment_speaks_in_text(file):
    environ = {
        "KEPT_PROFILE": "koshi",
        "KEPT_AUTO_MEMORY": "off",
        "KEPT_MAX_SIZE_BYTES": "200MB",
        "KEPT_PRUNE_PERCENT": "2.5",
        "KEPT_MAX_MEMORIES": "none",
        "KEPT_KIND_WEIGHTS__WARNING": "2",
        "KEPT_VECTOR_MODEL": "",
        "PATH": "/bin",
        "kept_profile": "not ours",
    }
    file.write_text('max_memories = 9\nvector_model = "mini"\n')
    settings = load(file, environ=environ).settings
    assert (settings.profile, settings.auto_memory, settings.max_size_bytes) == ("koshi", False, 200_000_000)
    assert (settings.prune_percent, settings.max_memories, settings.kind_weights["warning"]) == (2.5, None, 2.0)
    assert settings.vector_model == "mini"  # an empty variable counts as not set


def test_reserved_variables_are_no_settings():
    environ = dict.fromkeys(RESERVED_VARIABLES, "anything")
    assert {"KEPT_HOME", "KEPT_PROJECT", "KEPT_CONFIG", "KEPT_DEBUG"} <= set(environ)
    assert load(environ=environ).settings == Settings()
    assert not {f"KEPT_{field.name.upper()}" for field in fields()} & RESERVED_VARIABLES


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        (
            "KEPT_PROFILE",
            "koshy",
            "profile must be one of kept, koshi, praxis, hybrid, not 'koshy'. Did you mean koshi?",
        ),
        ("KEPT_REINFORCE_WEIGHT", "lots", "reinforce_weight must be a whole number from 0 to 100, not 'lots'."),
        ("KEPT_REINFORCE_WEIGHT", "1" * 5000, "reinforce_weight must be a whole number"),
        ("KEPT_AUTO_MEMORY", "perhaps", "auto_memory must be true or false, not 'perhaps'."),
        ("KEPT_SHELF_LIFE_DAYS", "60", "shelf_life_days is a table"),
        ("KEPT_PROFILE__X", "koshi", "profile must be one of"),
    ],
)
def test_a_wrong_variable_is_refused_by_its_name(variable, text, expected):
    with pytest.raises(SettingsError) as caught:
        load(environ={variable: text})
    assert str(caught.value).startswith(f"environment {variable}: {expected}")


def test_a_file_in_a_repository_configures_nothing(tmp_path, monkeypatch):
    (tmp_path / ".kept.toml").write_text('profile = "koshi"\n')
    (tmp_path / "config.toml").write_text('profile = "koshi"\n')
    monkeypatch.chdir(tmp_path)
    assert load(environ={}).settings.profile == "kept"
    for named in ("config.toml", "~no-such-person/config.toml"):
        with pytest.raises(SettingsError, match="must be an absolute path"):
            user_settings_file({"KEPT_CONFIG": named})


def test_the_user_file_is_the_one_that_is_named_or_lies_in_the_platforms_folder(tmp_path):
    assert user_settings_file({"KEPT_CONFIG": str(tmp_path / "mine.toml")}) == tmp_path / "mine.toml"
    assert user_settings_file({"KEPT_CONFIG": "~/mine.toml"}) == Path.home() / "mine.toml"
    assert user_settings_file({}).parts[-2:] == ("kept", "config.toml")


# Hostile and malformed files


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\xff", "is not UTF-8 text"),
        (b'profile = "koshi"\x00\n', "is not valid TOML"),
        (b'profile = "a"\nprofile = "b"\n', "is not valid TOML"),
        (b"profile = \n", "is not valid TOML"),
        (b"a = " + b"[" * 100_000, "nested too deeply"),
        (b"max_memories = " + b"1" * 5_000, "is not valid TOML"),
        (b"#" * (MAX_FILE_BYTES + 1), "is larger than 256 KB"),
        (b"#" * 10_000_000, "is larger than 256 KB"),
        (b"max_memories = 1979-05-27\n", "max_memories must be a whole number"),
        (b'reinforce_weight = "3"\n', "reinforce_weight must be a whole number from 0 to 100, not '3'"),
        (
            b"[shelf_life_days]\nwarning = -1\n",
            "shelf_life_days.warning must be a whole number from 1 to 36500, not -1",
        ),
        (b"[memory]\nprofile = 1\n", "there is no setting 'memory'"),
    ],
    ids=lambda value: None if isinstance(value, str) else "file",
)
def test_a_malformed_file_is_refused_by_its_name(file, content, expected):
    file.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        load(file)
    assert str(file) in str(caught.value)
    assert expected in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_directory_or_a_pipe_in_place_of_the_file_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="not a regular file"):
        load(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(SettingsError, match="not a regular file"):
            load(tmp_path / "pipe")


def test_a_file_that_windows_saved_with_a_byte_order_mark_is_read(file):
    file.write_bytes(b'\xef\xbb\xbfprofile = "koshi"\r\n')
    assert load(file).settings.profile == "koshi"


@given(content=st.binary(max_size=200) | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
@hypothesis_settings(max_examples=50, deadline=None)  # files and fsync take what they take
def test_any_file_is_read_or_refused_with_a_settings_error(tmp_path_factory, content):
    file = tmp_path_factory.getbasetemp() / "any.toml"
    file.write_bytes(content)
    try:
        assert load(file).settings
    except SettingsError:
        assert file.read_bytes() == content


@given(st.dictionaries(st.sampled_from([f"KEPT_{field.name.upper()}" for field in fields()]), st.text(), max_size=3))
def test_any_environment_is_read_or_refused_with_a_settings_error(environ):
    try:
        resolved = load(environ=environ)
    except SettingsError:
        resolved = load()
    assert set(resolved.origin) == set(flat(resolved.settings))


def test_a_file_that_may_not_be_read_is_refused(file, monkeypatch):
    file.write_text("")

    def deny(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", deny)
    with pytest.raises(SettingsError, match=r"config\.toml cannot be read: Permission denied"):
        load(file)


# Writing


def test_setting_a_value_keeps_comments_order_and_the_other_values(file):
    file.write_text('# mine\nprofile = "koshi"  # why: speed\n\n[shelf_life_days]\nwarning = 60  # two months\n')
    set_value(file, "profile", "praxis")
    set_value(file, "shelf_life_days.warning", "61")
    set_value(file, "shelf_life_days.incident", "400")
    set_value(file, "reinforce_weight", "5")
    set_value(file, "kind_weights.warning", "1.5")
    text = file.read_text()
    assert '# mine\nprofile = "praxis"  # why: speed\n' in text
    assert "warning = 61  # two months" in text
    settings = load(file).settings
    assert (settings.profile, settings.reinforce_weight, settings.kind_weights["warning"]) == ("praxis", 5, 1.5)
    assert (settings.shelf_life_days["warning"], settings.shelf_life_days["incident"]) == (61, 400)


def test_a_size_and_none_are_written_as_they_were_typed(file):
    set_value(file, "max_size_bytes", "200MB")
    set_value(file, "max_memories", "none")
    assert tomllib.loads(file.read_text()) == {"max_size_bytes": "200MB", "max_memories": "none"}
    assert load(file).settings.max_size_bytes == 200_000_000


def test_the_first_value_makes_the_file_and_its_folder_for_its_owner_alone(tmp_path):
    file = tmp_path / "new" / "kept" / "config.toml"
    set_value(file, "profile", "koshi")
    assert load(file).settings.profile == "koshi"
    if os.name != "nt":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        file.chmod(0o644)
        set_value(file, "profile", "praxis")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("name", "text"),
    [("profile", "koshy"), ("profil", "koshi"), ("reinforce_weight", "many"), ("shelf_life_days", "60"), ("", "x")],
)
def test_a_refused_value_leaves_the_file_as_it_was(file, name, text):
    file.write_text("# untouched\n")
    with pytest.raises(SettingsError):
        set_value(file, name, text)
    assert file.read_text() == "# untouched\n"
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize(
    ("text", "name", "value", "expected"),
    [
        ("[shelf_life_days]\nerror = 61\n", "shelf_life_days.failure", "62", "two rows for error"),
        (
            "[briefing_shares]\ntask = 0\nproject = 0\n",
            "briefing_shares.global",
            "0",
            "every row of briefing_shares is 0",
        ),
    ],
)
def test_a_row_that_does_not_go_with_the_others_is_not_written(file, text, name, value, expected):
    file.write_text(text)
    with pytest.raises(SettingsError, match=expected):
        set_value(file, name, value)
    assert file.read_text() == text


def test_a_file_that_cannot_be_parsed_is_not_written_over(file):
    file.write_text("profile = \n")
    for change in (lambda: set_value(file, "profile", "koshi"), lambda: unset_value(file, "profile")):
        with pytest.raises(SettingsError, match="not valid TOML"):
            change()
    assert file.read_text() == "profile = \n"


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_write_that_fails_half_way_leaves_the_old_file_and_nothing_else(file, monkeypatch, broken):
    file.write_text('profile = "koshi"\n')

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os if broken == "fsync" else Path, broken, fail)
    with pytest.raises(SettingsError, match="No space left on device"):
        set_value(file, "profile", "praxis")
    assert file.read_text() == 'profile = "koshi"\n'
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.skipif(os.name == "nt", reason="making links needs a privilege there")
def test_a_linked_file_stays_a_link(tmp_path):
    target, link = tmp_path / "dotfiles.toml", tmp_path / "config.toml"
    target.write_text("# mine\n")
    link.symlink_to(target)
    set_value(link, "profile", "koshi")
    assert link.is_symlink()
    assert target.read_text() == '# mine\nprofile = "koshi"\n'
    link.unlink()
    link.symlink_to(link)
    with pytest.raises(SettingsError, match="cannot be written"):
        set_value(link, "profile", "koshi")


@pytest.mark.parametrize(
    "text",
    [
        "shelf_life_days.warning = 60\nshelf_life_days.error = 61\n",
        "shelf_life_days = {warning = 60, error = 61}\n",
        "[shelf_life_days]\nerror = 61\n[kind_weights]\nwarning = 2\n",
        "shelf_life_days = 60\n",
        "\n\n# only a comment",
    ],
)
def test_a_row_is_set_however_its_table_was_written(file, text):
    file.write_text(text)
    set_value(file, "shelf_life_days.warning", "62")
    set_value(file, "profile", "koshi")
    settings = load(file).settings
    assert (settings.shelf_life_days["warning"], settings.profile) == (62, "koshi")
    assert settings.shelf_life_days["error"] == (61 if "error" in text else 90)
    assert unset_value(file, "shelf_life_days.warning")
    assert load(file).settings.shelf_life_days["warning"] == 30


def test_a_value_can_be_taken_out_again(file):
    file.write_text('# mine\nprofile = "koshi"\n[shelf_life_days]\nwarning = 60\nerror = 61\n')
    assert unset_value(file, "profile")
    assert unset_value(file, "shelf_life_days.warning")
    assert tomllib.loads(file.read_text()) == {"shelf_life_days": {"error": 61}}
    assert unset_value(file, "shelf_life_days.error")
    assert tomllib.loads(file.read_text()) == {}
    assert "# mine" in file.read_text()
    assert not unset_value(file, "profile")
    assert not unset_value(file, "shelf_life_days.error")


def test_a_mistake_can_be_taken_out_or_corrected_while_another_is_still_there(file):
    file.write_text("profil = 1\nretention = 2\n")
    set_value(file, "retention", "koshi")
    assert unset_value(file, "profil")
    assert load(file).settings.retention == "koshi"


def test_a_file_that_only_the_reader_understands_is_not_written_over(file, monkeypatch):
    file.write_text("# untouched\n")

    def give_up(_):
        raise tomlkit.exceptions.TOMLKitError("no")

    monkeypatch.setattr(tomlkit, "parse", give_up)
    with pytest.raises(SettingsError, match="cannot be edited: no"):
        set_value(file, "profile", "koshi")
    assert file.read_text() == "# untouched\n"


@given(st.sampled_from(fields()), st.data())
@hypothesis_settings(max_examples=50, deadline=None)  # files and fsync take what they take
def test_what_is_set_is_what_is_read(tmp_path_factory, field, data):
    file = tmp_path_factory.getbasetemp() / "set.toml"
    row = data.draw(st.sampled_from(field.choices or KINDS)) if field.is_table else ""
    text = data.draw(
        st.sampled_from([*field.choices, "none", "on", "90", "1.5", "100MB", "0 4 * * 1", "a/b.md", "\x1b"])
    )
    name = f"{field.name}.{row}" if row else field.name
    before = flat(load(file).settings)
    try:
        set_value(file, name, text)
    except SettingsError:
        assert flat(load(file).settings) == before
    else:
        value = parse_text(field.name, text)
        expected = flat(resolve([("", {field.name: {row: value} if row else value})]).settings)[name]
        assert flat(load(file).settings) == {**before, name: expected}


# Importing the configuration of other systems


def test_the_memory_block_of_koshi_is_imported():
    """A23: the YAML block `memory:`; A9 and A14 name its keys."""
    imported = import_config(KOSHI_YAML, "yaml")
    assert imported.not_taken == ()
    settings = resolve([("import", imported.settings)]).settings
    assert (settings.reinforce_weight, settings.demote_weight) == (4, 2)
    assert settings.max_size_bytes == 250_000_000
    assert (settings.prune_schedule, settings.prune_percent) == ("30 3 * * *", 2)


def test_the_memory_config_of_brain_is_imported():
    """B19: every key, with B10, B11, B12 and B16; the two paths as far as Kept has a place for them."""
    imported = import_config(json.dumps(BRAIN_CONFIG), "json")
    assert dict(imported.settings) == {
        "memory_path": "MEMORY.md",
        "sessions_path": "sessions",
        "max_memory_chars": 60_000,
        "session_retention_days": 45,
        "compaction_threshold_tokens": 120_000,
        "compaction_keep_recent": 12,
        "flush_enabled": False,
        "flush_threshold_tokens": 90_000,
        "search_provider": "fts5",
        "vector_model": None,
        "tool_result_retention": 6,
    }
    assert [lost.key for lost in imported.not_taken] == ["memoryPath", "sessionsPath"]
    assert "Only the file name was imported" in imported.not_taken[0].reason
    assert "Only the last folder was imported" in imported.not_taken[1].reason


@pytest.mark.parametrize("path", ["agents/admin/NOTES.md", "C:\\agents\\NOTES.md", "/srv/NOTES.md", "NOTES.md"])
def test_a_foreign_path_gives_its_file_name_wherever_it_pointed(path):
    """B19: memoryPath."""
    imported = import_config(json.dumps({"memoryPath": path}), "json")
    assert dict(imported.settings) == {"memory_path": "NOTES.md"}
    assert len(imported.not_taken) == (path != "NOTES.md")


def test_hybrid_search_of_brain_becomes_the_profile_and_the_provider():
    """B16: searchProvider, vectorModel, and the two weights."""
    config = "searchProvider: hybrid\nvectorModel: mini\nvectorWeight: 0.7\ntextWeight: 0.3\n"
    settings = resolve([("import", import_config(config, "yaml").settings)]).settings
    assert (settings.profile, settings.search_provider, settings.vector_model) == ("hybrid", "hybrid", "mini")
    assert (settings.vector_weight, settings.text_weight) == (0.7, 0.3)


def test_the_metadata_of_a_praxis_store_is_imported():
    """C4: configPreset and autoMemoryEnabled; the rest of the store is no configuration."""
    metadata = {"configPreset": "aggressive", "autoMemoryEnabled": False, "totalAccesses": 7}
    store = {"version": 1, "entries": [], "metadata": metadata}
    imported = import_config(json.dumps(store), "json")
    assert dict(imported.settings) == {"preset": "aggressive", "auto_memory": False}
    assert {lost.key: lost.reason for lost in imported.not_taken} == {
        "version": "It is outside `metadata`.",
        "entries": "It is outside `metadata`.",
        "totalAccesses": "Kept has no such setting.",
    }


def test_what_cannot_be_taken_is_listed_with_its_reason_and_the_rest_is_taken():
    imported = import_config("memory:\n  reinforceWeight: lots\n  demoteWeight: 2\n  colour: red\nagent: x\n", "yaml")
    assert dict(imported.settings) == {"demote_weight": 2}
    reasons = {lost.key: lost.reason for lost in imported.not_taken}
    assert reasons["reinforceWeight"].endswith("must be a whole number from 0 to 100, not 'lots'.")
    assert set(reasons) == {"reinforceWeight", "colour", "agent"}


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("{", "json"),
        ("[1, 2]", "json"),
        ('"text"', "json"),
        ("[" * 100_000, "json"),
        ('{"a": "\ud800"}', "json"),
        ("a: [", "yaml"),
        ("- 1\n- 2\n", "yaml"),
        ("a: 1\na: 2\n", "yaml"),
        ("a: !!python/object/apply:os.system [echo]\n", "yaml"),
        ("[" * 5_000, "yaml"),
        ("a: \x00", "yaml"),
        ("a: !!int ''", "yaml"),
        ("a: !!bool x", "yaml"),
        ('"\\U99999999"', "yaml"),
        ("#" * (MAX_FILE_BYTES + 1), "yaml"),
        ("a = 1", "toml"),
    ],
    ids=range(16),
)
def test_a_configuration_that_cannot_be_read_is_refused(text, language):
    with pytest.raises(SettingsError) as caught:
        import_config(text, language)
    assert len(str(caught.value)) < 200


def test_an_error_in_a_configuration_never_quotes_it():
    with pytest.raises(SettingsError) as caught:
        import_config("apiKey: hunter2\napiKey: hunter3\n", "yaml")
    assert "hunter" not in str(caught.value)
    assert "line 2" in str(caught.value)
    assert "hunter" not in repr(import_config("apiKey: hunter2", "yaml"))


def test_an_empty_configuration_says_nothing():
    assert import_config("", "yaml").settings == {}
    assert import_config("# only a comment\n", "yaml").settings == {}


def test_without_ruamel_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ruamel.yaml", None)
    with pytest.raises(SettingsError, match=re.escape(install_line("files"))):
        import_config(KOSHI_YAML, "yaml")


def test_yaml_that_unfolds_into_a_billion_is_read_in_no_time():
    layers = "".join(f"b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 9)}]\n" for n in range(1, 30))
    imported = import_config(f"b0: &b0 [lol]\n{layers}reinforceWeight: *b29\n", "yaml")
    assert dict(imported.settings) == {}
    assert len(imported.not_taken) == 31


@given(
    st.dictionaries(
        st.sampled_from([*BRAIN_CONFIG, "maxSize", "configPreset", "autoMemoryEnabled", "memory", "metadata"])
        | st.text(),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text()
        | st.lists(st.text(), max_size=2),
        max_size=5,
    )
)
def test_any_configuration_gives_settings_that_resolve(config):
    imported = import_config(json.dumps(config), "json")
    assert set(imported.settings) <= set(as_mapping(resolve([("import", imported.settings)]).settings))


@hypothesis_settings(deadline=None)  # the first YAML of a process imports its parser
@given(st.text(alphabet="abc: -[]{}!&*'\"\n\t#|>%@`?,\x00é1.e"))
def test_any_text_is_a_configuration_or_refused_with_a_settings_error(text):
    for language in ("yaml", "json"):
        try:
            imported = import_config(text, language)
        except SettingsError:
            continue
        assert resolve([("import", imported.settings)])


def test_an_unknown_variable_changes_nothing_and_stops_nothing():
    environ = {"KEPT_PROFIL": "praxis", "KEPT_XYZZY": "x", "KEPT_PROFILE": "koshi", "KEPT_HOME": "/k", "PATH": "/bin"}
    assert load(environ=environ) == load(environ={"KEPT_PROFILE": "koshi"})


def test_a_home_of_its_own_has_settings_of_its_own(tmp_path):
    assert user_settings_file({"KEPT_HOME": str(tmp_path)}) == tmp_path / "config.toml"
    named = {"KEPT_HOME": str(tmp_path), "KEPT_CONFIG": str(tmp_path / "other.toml")}
    assert user_settings_file(named) == tmp_path / "other.toml"


@pytest.mark.parametrize("model", ["mini", "./models/bge", "all-minilm"])
def test_an_unknown_vector_model_is_refused_when_it_is_set_and_not_when_it_is_read(tmp_path, model):
    file = tmp_path / "settings.toml"
    with pytest.raises(SettingsError, match="must be all-MiniLM-L6-v2, or the absolute path of a folder") as refused:
        set_value(file, "vector_model", model)
    assert "model.onnx" in str(refused.value)
    assert not file.exists()
    with kept.open(":memory:") as memory, pytest.raises(SettingsError, match="must be all-MiniLM"):
        memory.store.configure("vector_model", model)
    for known in ("all-MiniLM-L6-v2", str(tmp_path), "~/models/bge", "none"):
        set_value(file, "vector_model", known)
    file.write_text(f'vector_model = "{model}"\n')
    assert resolve([("file", {"vector_model": model})]).settings.vector_model == model
