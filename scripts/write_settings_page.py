"""Writes docs/reference/settings.md from the declarations in runyard.settings. `make docs` runs it; a test compares."""

from __future__ import annotations

from pathlib import Path

from runyard.model.declaration import Field, declared
from runyard.settings import Settings, variable_of

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "settings.md"

INTRODUCTION = """\
# Settings

<!-- Written by scripts/write_settings_page.py from src/runyard/settings.py: change it there, then run `make docs`. -->

A yard reads its settings once, when it starts: the defaults below, then `config.toml` in its home directory, then the
environment. The file is plain TOML with the names of this table:

    port = 9191
    memory = "64G"
    allowed_hosts = ["yard.lab.example"]

In a variable, a list has commas between its items (`RUNYARD_ALLOWED_HOSTS=yard,yard.lab.example`), and a table is
`RUNYARD_AGENT_TOKENS=SITE=FILE,SITE=FILE`.

An unknown name or a wrong value stops the start with a sentence that names the file and the nearest good name.

| setting | default | variable | meaning |
|---|---|---|---|
"""

CLIENT = """
## Other variables

| variable | meaning |
|---|---|
| `RUNYARD_HOME` | the home directory; the default is the platform's data directory, on Linux `~/.local/share/runyard` |
| `RUNYARD_URL` | speak to the yard at this address instead of the one of the home directory |
| `RUNYARD_TOKEN` | the token to send; the default is the one in the home directory |
| `RUNYARD_TOKEN_FILE` | a file with the token, such as a secret of Docker or systemd |
| `RABBITMQ_HOST` | as in Training Runs: the broker is `amqp://guest@RABBITMQ_HOST//`, where neither `broker` nor \
`RABBITMQ_USER` is set |
"""


def page() -> str:
    return INTRODUCTION + "".join(map(_row, declared(Settings).values())) + CLIENT


def _row(setting: Field) -> str:
    default = "" if setting.default in ("", [], {}, None) else f"`{setting.default}`"
    variable = f"`{variable_of(setting.name)}`" if setting.variable else ""
    return f"| `{setting.name}` | {default} | {variable} | {setting.help} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
