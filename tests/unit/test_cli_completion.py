"""Completion of commands and flags in shells."""

from pathlib import Path

import pytest

from seatrial.cli import main

SCRIPTS = {
    "bash": ".local/share/bash-completion/completions/seatrial",
    "fish": ".config/fish/completions/seatrial.fish",
}


@pytest.mark.parametrize("shell", SCRIPTS)
def test_completion_is_installed_at_home(shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert main(["--install-completion", "--shell", shell]) == 0
    script = (tmp_path / SCRIPTS[shell]).read_text()
    assert "write-baseline" in script and "explain" in script
