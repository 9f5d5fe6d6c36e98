from __future__ import annotations

from email.message import Message
from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from runyard.server.files import attachment


@given(st.text(min_size=1, max_size=40))
def test_any_name_is_one_header_that_means_a_download(name: str) -> None:
    header = attachment(name)
    header.encode("ascii")
    assert "\n" not in header and "\r" not in header
    parsed = Message()
    parsed["Content-Disposition"] = header
    assert parsed.get_content_disposition() == "attachment"
    if not any("\ud800" <= char <= "\udfff" for char in name):
        assert unquote(header.partition("filename*=UTF-8''")[2]) == name
