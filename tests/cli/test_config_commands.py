"""`kept config`: A23, B19: settings, their origin, and those of other systems."""

from pathlib import Path

import pytest

from kept.settings import Settings, flat
from tests.cli.shell import Shell


def test_every_setting_is_shown_with_its_help_and_origin(shell: Shell) -> None:
    document = shell.json("config", "show", "--origin")
    assert document["settings"] == flat(Settings())
    assert set(document["origin"].values()) == {"default"}
    said = shell("config", "show", "--origin")
    assert "# Points that a reinforce adds to a memory's feedback.\nreinforce_weight = 3  # default\n" in said
    assert "shelf_life_days.warning = 30  # default\n" in said
    assert "# default" not in shell("config", "show")


def test_a_setting_is_set_holds_and_is_unset(shell: Shell) -> None:
    said = shell("config", "set", "reinforce_weight", "7")
    assert f"Written to {shell.folder / 'config.toml'}.\nreinforce_weight is 7 now (user file " in said
    shell("remember", "x")
    assert shell("rate", "1", "+") == "[id:1] has feedback +7 now.\n"
    assert "reinforce_weight is 3 now (default)." in shell("config", "unset", "reinforce_weight")
    assert "reinforce_weight was not set in" in shell("config", "unset", "reinforce_weight")


def test_a_setting_of_one_project_is_not_one_of_others(shell: Shell) -> None:
    shell("config", "set", "shelf_life_days.warning", "60", "--project-only")
    assert shell.json("config", "show")["settings"]["shelf_life_days.warning"] == 60
    assert shell.json("config", "show", "--project", "other")["settings"]["shelf_life_days.warning"] == 30


def test_what_wins_over_the_file_is_said(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    written = shell.environment
    monkeypatch.setattr(Shell, "environment", property(lambda self: {**written, "KEPT_PROFILE": "praxis"}))
    assert "profile is praxis now (environment KEPT_PROFILE)." in shell("config", "set", "profile", "koshi")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["set", "profil", "koshi"], "there is no setting 'profil'. Did you mean profile?"),
        (["set", "profile", "best"], "profile must be one of kept, koshi, praxis, hybrid, not 'best'."),
        (["set", "demote_weight", "-1"], "demote_weight must be a whole number from 0 to 100, not -1."),
        (["import", "missing.json"], "There is no file missing.json."),
        (["import", "."], ". is a directory, not a file."),
        (["import", "../settings.ini"], "../settings.ini does not have the name of a YAML or JSON file."),
    ],
)
def test_what_cannot_be_set_is_refused(shell: Shell, arguments: list[str], sentence: str) -> None:
    (shell.folder / "settings.ini").write_text("[memory]")
    arguments = [*arguments[:2], "--", *arguments[2:]] if "-1" in arguments else arguments
    result = shell.type("config", *arguments)
    assert result.exit_code == 1
    assert sentence in result.stderr
    assert not (shell.folder / "config.toml").exists()


def test_a_broken_settings_file_is_named_and_a_mistake_can_be_taken_out(shell: Shell) -> None:
    file = shell.folder / "config.toml"
    file.write_text("profil = 'koshi'\n")
    assert f"user file {file}: there is no setting 'profil'." in shell.fails("list")
    assert "Removed from" in shell("config", "unset", "profil")
    shell("list")


def test_the_configuration_of_another_system_is_taken_over(shell: Shell) -> None:
    Path("koshi.yaml").write_text("memory:\n  reinforceWeight: 5\n  searchProvider: hybrid\n  teaBreaks: 3\n")
    said = shell("config", "import", "koshi.yaml")
    assert "reinforce_weight = 5\n" in said
    assert "Left out: teaBreaks. Kept has no such setting.\n" in said
    values = shell.json("config", "show")["settings"]
    assert (values["reinforce_weight"], values["profile"]) == (5, "hybrid")
    Path("brain.json").write_text('{"maxMemorySize": 60000, "flushEnabled": false}')
    document = shell.json("config", "import", "brain.json", "--project-only")
    assert document["settings"] == {"max_memory_chars": 60000, "flush_enabled": False}
    assert document["not_taken"] == []
