"""Settings: a wrong one stops the start and names itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from portal.env import Env, EnvironmentErrors

ROOT = Path(__file__).resolve().parents[3]


def test_every_wrong_setting_is_told_at_once() -> None:
    env = Env({"BERTH_N": "x", "BERTH_F": "maybe", "BERTH_U": "ftp:/x", "BERTH_TYPO": "1"})
    env.number("N", 1, low=0, high=5)
    env.flag("F", default=False)
    env.url("U")
    with pytest.raises(EnvironmentErrors) as caught:
        env.finish()
    for name in ("BERTH_N", "BERTH_F", "BERTH_U", "BERTH_TYPO"):
        assert name in str(caught.value)


def test_a_wrong_database_url_is_never_printed() -> None:
    env = Env({"BERTH_D": "mysql://root:hunter2@db/x"})
    env.database("D", "")
    with pytest.raises(EnvironmentErrors) as caught:
        env.finish()
    assert "BERTH_D" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_postgresql_url_becomes_settings() -> None:
    found = Env({"BERTH_D": "postgresql://u:p%40ss@h:5433/n"}).database("D", "")
    assert (found["NAME"], found["USER"], found["PASSWORD"], found["HOST"], found["PORT"]) == (
        "n", "u", "p@ss", "h", "5433",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BERTH_TASK_RETRY", "130"),  # RW-049: not twice the default time-out of 120
        ("BERTH_TASK_TIMEOUT", "600"),  # RW-049: against the default retry of 900
        ("BERTH_SECRET_KEY", "short"),
        ("BERTH_LOG_LEVEL", "LOUD"),
        ("BERTH_WORKERS", "0"),
        ("BERTH_WORKRES", "3"),
        ("BERTH_PROCESS", "wbe"),
        ("BERTH_TIME_ZONE", "Mars/Olympus"),
        ("BERTH_NAMESPACE_PREFIX", "Team_"),
        ("BERTH_DATABASE_URL", "sqlite:////no/such/folder/b.sqlite3"),
    ],
)
def test_a_wrong_setting_stops_the_start_without_a_traceback(name: str, value: str) -> None:
    environment = {**os.environ, name: value}
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0
    shown = "BERTH_TASK_RETRY" if name == "BERTH_TASK_TIMEOUT" else name
    assert shown in done.stderr
    assert "Traceback" not in done.stderr
