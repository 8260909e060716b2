"""Each setting at a value that is not its default, from the environment and from ``options=``; wrong names."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import fusee
from fusee import logs, settings
from fusee.host import connection

Use = Callable[..., None]


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the developer has set does not count here."""
    for row in settings.TABLE:
        monkeypatch.delenv(row.variable, raising=False)


def f(x: Any, y: Any) -> Any:
    return torch.relu(x + y) * 2


def run(**arguments: Any) -> Any:
    fast = fusee.compile(f, **arguments)
    x, y = torch.ones(3), torch.ones(3)
    torch.testing.assert_close(fast(x, y), f(x, y))
    return fast


def test_table_is_small_documented_and_unique() -> None:
    assert len(settings.TABLE) <= 25
    assert (
        len({row.name for row in settings.TABLE})
        == len({row.variable for row in settings.TABLE})
        == len(settings.TABLE)
    )
    for row in settings.TABLE:
        assert type(row.default) is row.kind and len(row.doc) > 20, row.name


@pytest.mark.parametrize("row", settings.TABLE, ids=lambda row: row.name)
def test_every_setting_is_read_from_environment_and_options(environment: Use, row: settings.Setting) -> None:
    texts = {bool: ("1", True), int: ("7", 7), float: ("2.5", 2.5), str: ("text", "text")}
    other = [(str(choice), choice) for choice in (*row.choices, *(row.bounds or ())) if choice != row.default]
    text, value = ("0", False) if row.default is True else (*other, texts[row.kind])[0]
    assert settings.get(row.name) == row.default
    environment(**{row.variable: text})
    assert settings.get(row.name) == value != row.default
    assert settings.get(row.name, settings.check({row.name: row.default})) == row.default


def test_unknown_names_give_one_error_that_lists_the_valid_ones() -> None:
    with pytest.raises(
        fusee.UnknownSetting, match=r"unknown setting 'timeuot' .did you mean 'timeout'.*entry_limit"
    ) as error:
        fusee.compile(f, options={"timeuot": 5})
    assert all(row.name in str(error.value) for row in settings.TABLE)
    with pytest.raises(
        fusee.UnknownSetting, match=r"unknown backend 'inductr' .did you mean 'inductor'.*aot_eager.*fusee"
    ):
        fusee.compile(f, backend="inductr")
    with pytest.raises(fusee.UnknownSetting, match=r"unknown mode 'fast'.*max-autotune"):
        fusee.compile(f, mode="fast")
    with pytest.raises(fusee.UnknownSetting, match=r"unknown log 'recompile' .did you mean 'recompiles'"):
        logs.parse("recompile")


def test_wrong_types_are_named(environment: Use) -> None:
    with pytest.raises(fusee.UnknownSetting, match="'entry_limit' takes int, not str"):
        fusee.compile(f, options={"entry_limit": "many"})
    environment(FUSEE_TIMEOUT="soon")
    with pytest.raises(fusee.UnknownSetting, match="FUSEE_TIMEOUT='soon' is not of type float"):
        settings.get("timeout")


def test_mode_and_options_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="not both"):
        fusee.compile(f, mode="default", options={"timeout": 5})


def test_disable(environment: Use) -> None:
    assert fusee.compile(f, options={"disable": True}) is f
    environment(FUSEE_DISABLE="1")
    assert fusee.compile(f) is f


def test_timeout_by_options(scenario: Use) -> None:
    scenario("hang")
    with pytest.warns(fusee.FuseeWarning, match="did not answer in time"):
        run(options={"timeout": 0.5})


def test_entry_limit_by_options(scenario: Use) -> None:
    scenario("same")
    fast = run(options={"entry_limit": 1})
    with pytest.warns(fusee.FuseeWarning, match="has 1 entries"):
        fast(torch.ones(4), torch.ones(4))


def test_entries_at_the_limit_still_serve_what_they_fit() -> None:
    def scale(x: torch.Tensor, factor: int) -> torch.Tensor:
        return torch.relu(x) * factor

    fast = fusee.compile(scale, dynamic=False, options={"entry_limit": 2})
    x = torch.randn(8)
    with pytest.warns(fusee.FuseeWarning, match="has 2 entries, the limit; .*factor == 2 .found 3"):
        for factor in (1, 2, 3):
            assert torch.equal(fast(x, factor), scale(x, factor))
    record = fast.record
    hits, misses = record.hits, record.misses
    for factor in (2, 1, 4):
        assert torch.equal(fast(x, factor), scale(x, factor))
    assert (record.hits, record.misses) == (hits + 2, misses + 1)


def test_cache_settings_reach_the_compiler(environment: Use, tmp_path: Path) -> None:
    environment(FUSEE_CACHE_DIR=str(tmp_path), FUSEE_CACHE_SIZE="12")
    hello = connection.hello()
    assert hello["cache_dir"] == str(tmp_path)
    assert hello["settings"]["cache_size"] == 12 << 20
    environment(FUSEE_CACHE="0")
    assert connection.hello()["cache_dir"] == ""


def test_cache_folder_follows_the_users(environment: Use) -> None:
    environment(XDG_CACHE_HOME="/somewhere")
    assert connection.cache_folder() == "/somewhere/fusee"


def read_trace(path: Path) -> list[str]:
    data = path.read_bytes()
    assert data.startswith(b"FUSEETR1")
    place, directions = 8, []
    while place < len(data):
        length = int.from_bytes(data[place + 1 : place + 5], "little")
        message = connection.decode(data[place + 5 : place + 5 + length])
        directions.append(data[place : place + 1].decode() + message[0])
        place += 5 + length
    return directions


def test_record_setting_writes_a_trace_for_each_compile(scenario: Use, tmp_path: Path) -> None:
    scenario("questions", FUSEE_RECORD=str(tmp_path / "traces"))
    fast = run()
    fast(torch.ones(4), torch.ones(4))
    files = sorted((tmp_path / "traces").iterdir())
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600, 0o600]
    expected = [">hello", "<ready", ">compile", *["<ask", ">answer"] * 3, "<done"]
    assert [read_trace(file) for file in files] == [expected, expected]


def test_record_context_manager(scenario: Use, tmp_path: Path) -> None:
    scenario("same")
    with fusee.record(tmp_path / "one.fusee") as recorder:
        fast = run()
        fast(torch.ones(4), torch.ones(4))
    fast(torch.ones(5), torch.ones(5))
    assert [file.name for file in recorder.files] == ["one.fusee", "one-2.fusee"]
    assert sorted(file.name for file in tmp_path.glob("*.fusee")) == ["one-2.fusee", "one.fusee"]
    assert read_trace(tmp_path / "one.fusee") == [">hello", "<ready", ">compile", "<done"]


def test_record_by_options(scenario: Use, tmp_path: Path) -> None:
    scenario("crash")
    with pytest.warns(fusee.FuseeWarning):
        run(options={"record": str(tmp_path)})
    (file,) = tmp_path.glob("*.fusee")
    assert read_trace(file)[-1] == ">compile"


def test_explain_out_gets_a_line_of_json_for_each_compile(scenario: Use, tmp_path: Path) -> None:
    path = tmp_path / "reports"
    scenario("seed", FUSEE_EXPLAIN_OUT=str(path))
    fast = run()
    fast(torch.ones(4), torch.ones(4))
    first, second = map(json.loads, path.read_text().splitlines())
    assert first["function"]["name"] == "f" and first["recompile"] is None and first["times"]["total"] > 0
    (failed,) = second["recompile"]["failed"]
    assert failed["guard"] == 0 and failed["new"].startswith("float32[4]")


def test_logs_setting(scenario: Use, capsys: pytest.CaptureFixture[str]) -> None:
    scenario("seed", FUSEE_LOGS="recompiles,guards,graph")
    try:
        fast = run()
        fast(torch.ones(4), torch.ones(4))
    finally:
        logging.getLogger("fusee").handlers.clear()
    text = capsys.readouterr().err
    names = [line.partition("]")[0] + "]" for line in text.splitlines() if line.startswith("[fusee")]
    assert names == ["[fusee.guards]", "[fusee.graph]", "[fusee.recompiles]", "[fusee.guards]", "[fusee.graph]"]
    assert "guard on parameter 0 failed: found float32[4]" in text


def test_log_grammar() -> None:
    assert logs.parse("+dynamo, recompiles,-guards") == {
        "dynamo": logging.DEBUG,
        "recompiles": logging.INFO,
        "guards": logging.ERROR,
    }
    assert logs.parse("") == {}


def test_import_is_light() -> None:
    """Importing fusee must import neither torch nor anything that torch would not import."""
    code = (
        "import sys; import fusee; print(*sorted(m for m in sys.modules if m.partition('.')[0] in ('torch', 'numpy')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == ""
    code = (
        "import sys, torch; before = set(sys.modules); import fusee; "
        "print(*(m for m in set(sys.modules) - before if m.partition('.')[0] != 'fusee'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == ""
