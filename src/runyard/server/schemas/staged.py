"""What a run brings along: code and data, see runyard.model.staged."""

from __future__ import annotations

from runyard.model import paths, staged
from runyard.server.schemas.build import BOOLEAN, Schema, described, integer, listed, or_null, record, ref, text
from runyard.server.schemas.common import DIGEST

GIT = record(
    {
        "head": or_null(text("The commit", maxLength=64)),
        "branch": or_null(text("Its branch; null when detached", maxLength=300)),
        "remote": or_null(text("Its address, without credentials", maxLength=1000)),
        "dirty": described(BOOLEAN, "Files differed from the commit, or were new"),
        "diff": or_null(described(DIGEST, "Of what `git diff HEAD` said, a file that the yard has")),
    },
    required=[],
    description="Where the code came from.",
)
CODE = record(
    {
        "tree": described(DIGEST, "Of a tree that the yard has"),
        "files": integer("How many there are", 0, 1 << 30),
        "size": integer("Bytes of all of them", 0, 1 << 60),
        "git": or_null(ref("Git")),
    },
    required=["tree", "files", "size"],
    description="A snapshot of code, of which each attempt gets a copy as its working directory.",
)
_NAME = text("Its name below $RUNYARD_DATA", minLength=1, maxLength=paths.LONGEST_PATH)
DATA: Schema = {
    "description": "A folder to read from: a tree that the yard has, or a path where the run executes.",
    "anyOf": [
        record({"tree": described(DIGEST, "Of a tree that the yard has"), "to": _NAME}),
        record({"path": text("Absolute", pattern="^/", maxLength=paths.LONGEST_PATH), "to": _NAME}),
    ],
}
FOLDERS: Schema = {
    **listed(ref("Data"), maxItems=staged.MOST_DATA),
    "description": "Folders that it finds below $RUNYARD_DATA",
}
