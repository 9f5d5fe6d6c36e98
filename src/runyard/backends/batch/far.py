# ruff: noqa: UP006, UP031, UP035, UP045
"""Runs where a site's files are, as `python3 -c <this text>`: a request comes by standard input, its answer goes out.

Standard library only, python3 >= 3.6. One request is one round trip, however many jobs it is about.
"""

import json
import os
import shutil
import sys
import time
from typing import Any, Dict, List, Optional

Json = Dict[str, Any]

WORDS = 600  # bytes of a task's own output that are of interest
REMOVED = ".removed"  # at the end of the name of a batch's directory


def enter(request: Json) -> List[Optional[Json]]:
    """Put jobs into their batch's manifest. For each: its trace if it was in it before, else null.

    With `again`, jobs that were in it before count as new, and the manifest's age starts again.
    """
    directory = request["directory"]
    os.makedirs(directory, 0o700, exist_ok=True)
    batch = BatchDirectory(directory)
    traces = [batch.trace(job) if str(job["index"]) in batch.jobs else None for job in request["jobs"]]
    if request["again"] or None in traces:
        batch.jobs.update((str(job["index"]), job["directory"]) for job in request["jobs"])
        batch.names = sorted({*batch.names, *request["names"]})
        _replace(directory + "/job.sh", request["script"])
        _replace(directory + "/manifest.json", batch.manifest(request["batch"], request["owner"]))
    return traces


def look(request: Json) -> List[Json]:
    """What the directories of these jobs show."""
    batches = {directory: BatchDirectory(directory) for directory in {job["batch"] for job in request["jobs"]}}
    return [batches[job["batch"]].trace(job) for job in request["jobs"]]


def accept(request: Json) -> bool:
    """Note which jobs the scheduler has acknowledged, and under which id."""
    line = json.dumps({"id": request["id"], "indexes": request["indexes"]}) + "\n"
    with open(request["directory"] + "/accepted", "ab", buffering=0) as file:
        file.write(line.encode())
        os.fsync(file.fileno())
    return True


def fence(request: Json) -> List[Optional[Json]]:
    """Request runners to stop, and prevent those that have not started from starting. For each: whether that was in
    time, and the seconds since the request."""
    return [_fence(stop) for stop in request["stops"]]


def _fence(stop: Json) -> Optional[Json]:
    directory = stop["directory"]
    try:
        os.makedirs(directory, 0o700, exist_ok=True)
        # The request first: a runner that starts between the two reads it before anything else.
        told = _tell(directory + "/control.json", stop["control"])
        try:
            os.mkdir(directory + "/started", 0o700)
        except FileExistsError:
            return {"prevented": _was_prevented(directory), "told": told}
        if stop["record"]:
            _replace(directory + "/status.json", json.dumps(dict(stop["record"], ended_at=time.time())))
        return {"prevented": True, "told": told}
    except OSError:
        return None


def _was_prevented(directory: str) -> bool:
    """Stopped by a process that may have ended before it called the scheduler. A runner's own record has its pid."""
    record = _read_json(directory + "/status.json")
    return isinstance(record, dict) and record.get("state") == "ended" and "pid" not in record


def _tell(path: str, control: Json) -> float:
    """Seconds since the first request, maybe by an earlier agent: passes of cron share no memory."""
    if _read_json(path) == control:
        return _age(path) or 0.0
    _replace(path, json.dumps(control), durable=False)
    return 0.0


def owned(request: Json) -> List[str]:
    """The batches of one owner. Interrupted deletions are finished."""
    found = []
    for name in _listed(request["directory"]):
        path = "%s/%s" % (request["directory"], name)
        if not name.startswith(request["prefix"]):
            continue
        if name.endswith(REMOVED):
            shutil.rmtree(path, ignore_errors=True)
        elif BatchDirectory(path).owner == request["owner"]:
            found.append(name)
    return found


def remove(request: Json) -> bool:
    """By a rename first, after which it no longer counts as a batch, however far the deletion gets."""
    for name in request["batches"]:
        path = "%s/%s" % (request["directory"], name)
        os.rename(path, path + REMOVED)
        shutil.rmtree(path + REMOVED, ignore_errors=True)
    return True


class BatchDirectory:
    """What a batch's directory says about its jobs."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        found = _read_json(directory + "/manifest.json")
        manifest = found if isinstance(found, dict) else {}
        self.jobs: Dict[str, str] = manifest.get("jobs", {})
        self.names: List[str] = manifest.get("names", [])  # of the native jobs
        self.owner: Optional[str] = manifest.get("owner")
        self._age = _age(directory + "/manifest.json")
        self._accepted = _accepted(directory + "/accepted")

    def trace(self, job: Json) -> Json:
        directory, index = job["directory"], job["index"]
        try:
            # Opening a directory makes an NFS client ask the server what is in it; a mere look may be a minute behind.
            names = set(os.listdir(directory))
        except OSError:
            names = set()
        heard = [_age(directory + "/" + name) for name in ("started", "status.json") if name in names]
        outs = self._outs(index)
        return {
            "started": "started" in names,
            "recorded": "status.json" in names and _is_over(directory + "/status.json"),
            "quiet": _youngest(heard),
            "entered": self._age if str(index) in self.jobs else None,
            "accepted": self._accepted.get(index, ""),
            "names": self.names,
            "spoke": _youngest([_age(path) for path in outs]),
            "words": " ".join(_tail(path) for path in outs),
        }

    def _outs(self, index: int) -> List[str]:
        """A native name ends with the offset of its task numbers to the index."""
        found = []
        for name in self.names:
            offset = name.rpartition(".o")[2]
            task = index - (int(offset) if ".o" in name and offset.isdigit() else 0)
            found.append("%s/%s.%d.out" % (self._directory, name, task))
        return found

    def manifest(self, batch: str, owner: str) -> str:
        """A line for each job: the job script reads it with sed."""
        lines = ["%s: %s" % (json.dumps(index), _quoted(self.jobs[index])) for index in sorted(self.jobs, key=int)]
        head = '"batch": %s, "owner": %s, "names": %s' % tuple(map(json.dumps, (batch, owner, self.names)))
        return '{%s, "jobs": {\n%s\n}}\n' % (head, ",\n".join(lines))


def _youngest(ages: List[Optional[float]]) -> Optional[float]:
    return min([age for age in ages if age is not None], default=None)


def _listed(directory: str) -> List[str]:
    try:
        return sorted(os.listdir(directory))
    except FileNotFoundError:  # nothing was ever submitted
        return []


def _is_over(path: str) -> bool:
    status = _read_json(path)
    return isinstance(status, dict) and status.get("state") == "ended"


def _age(path: str) -> Optional[float]:
    try:
        return max(0.0, time.time() - os.stat(path).st_mtime)
    except OSError:
        return None


def _accepted(path: str) -> Dict[int, str]:
    """Index → the native job that has it; of several the last."""
    found: Dict[int, str] = {}
    try:
        with open(path, "rb") as file:
            for line in file.read().decode().splitlines():
                told = json.loads(line)
                found.update((index, told["id"]) for index in told["indexes"])
    except (OSError, ValueError):  # none yet, or half a line of one who was killed
        pass
    return found


def _read_json(path: str) -> Any:
    try:
        with open(path, "rb") as file:
            return json.loads(file.read().decode("utf-8", "surrogateescape"))
    except (OSError, ValueError):
        return None


def _tail(path: str) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - WORDS))
            return file.read(WORDS).decode("utf-8", "replace")
    except OSError:
        return ""


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _replace(path: str, text: str, durable: bool = True) -> None:
    """Atomically; `durable`: on disk before this returns."""
    draft = "%s.%d.tmp" % (path, os.getpid())
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text.encode("utf-8", "surrogateescape"))
        file.flush()
        if durable:
            os.fsync(file.fileno())
    os.rename(draft, path)


def main() -> None:
    request = json.loads(sys.stdin.buffer.read().decode())
    verbs = {"enter": enter, "look": look, "accept": accept, "fence": fence, "owned": owned, "remove": remove}
    try:
        answer: Json = {"answer": verbs[request["do"]](request)}
    except OSError as error:
        answer = {"problem": "%s: %s" % (error.filename or "the site's directory", (error.strerror or "?").lower())}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
