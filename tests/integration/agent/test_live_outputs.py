"""What attempts have left so far, each time that somebody asks."""

from __future__ import annotations

import os

from runyard.model.wire import AttemptKey, OutputWish
from tests.integration.agent.conftest import Crew

SCRIPT = "cd $OUTPUT_DIR; echo 1 >old; touch -d '1 hour ago' old; echo 1 >new; echo written; sleep 300"


def test_what_did_not_change_is_not_read_again(crew: Crew) -> None:
    """Another text of the same length and time is taken for the same file, so nobody has looked into it."""
    agent = crew.agent()
    key = crew.yard.submit(["sh", "-c", SCRIPT])
    crew.drive(agent, lambda: "written" in crew.yard.log(key), "its word")

    def shown(wish: int) -> dict[str, bytes]:
        crew.yard.wanted = [OutputWish(key=key, number=wish)]
        crew.drive(agent, lambda: brought(crew, key, wish) is not None, "an answer")
        return brought(crew, key, wish) or {}

    assert shown(1) == {"old": b"1\n", "new": b"1\n"}
    [folder] = {path.parent for path in crew.site.rglob("outputs/old")}
    before = (folder / "old").stat()
    for name in ("old", "new"):
        (folder / name).write_text("2\n")
    os.utime(folder / "old", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert shown(2) == {"old": b"1\n", "new": b"2\n"}
    (folder / "old").write_text("3\n")
    assert shown(3)["old"] == b"3\n"
    crew.yard.cancel(key)
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")


def brought(crew: Crew, key: AttemptKey, wish: int) -> dict[str, bytes] | None:
    """The files that came as the answer to a wish."""
    for report in crew.yard.reports:
        if (report.key, report.brought) == (key, wish):
            return {file["path"]: crew.yard.blobs[file["digest"]] for file in report.outputs or ()}
    return None
