"""ssh's words, and ours."""

from __future__ import annotations

import pytest

from runyard.hosts import ssh_errors

CHANGED = """@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
Please contact your system administrator.
Add correct host key in /home/me/.ssh/known_hosts to get rid of this message.
Offending ECDSA key in /home/me/.ssh/known_hosts:3
{}Host key for login.example.org has changed and you have requested strict checking.
Host key verification failed."""
REMOVAL = '  remove with:\n  ssh-keygen -f "/home/me/.ssh/known_hosts" -R "login.example.org"\n'


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (CHANGED.format(REMOVAL), 'ssh-keygen -f "/home/me/.ssh/known_hosts" -R "login.example.org" and then: ssh me@'),
        (CHANGED.format(""), "ssh-keygen -f /home/me/.ssh/known_hosts -R login.example.org and then: ssh me@"),
        ("Host key verification failed.", "is not known here; connect once by hand and confirm it: ssh me@"),
        ("ssh: Could not resolve hostname x.org: Name or service not known", "there is no host 'x.org' for me@login"),
        ("me@l: Permission denied (publickey,password).", "without a question (publickey,password)"),
        ("ssh: connect to host l port 22: Connection refused", "refuses connections"),
        ("ssh: connect to host l port 22: Connection timed out", "does not answer: connection timed out"),
        ("ssh: connect to host l port 22: No route to host", "does not answer: no route to host"),
        ("Connection closed by 10.0.0.1 port 22", "the connection to me@login.example.org was cut"),
        ("", "the connection to me@login.example.org was cut"),
        ("x\ncommand-line: line 0: Bad configuration option: nosuch\n\n", "Bad configuration option: nosuch"),
    ],
)
def test_a_failure_is_one_sentence(said: str, told: str) -> None:
    sentence = ssh_errors.of_connection("me@login.example.org", said, "ssh me@login.example.org")
    assert told in sentence
    assert "me@login.example.org" in sentence
    assert "\n" not in sentence


def test_a_remark_on_the_way_is_no_fault_of_the_interpreter() -> None:
    assert ssh_errors.of_interpreter("l", "python3", "Killed", 1) is None
