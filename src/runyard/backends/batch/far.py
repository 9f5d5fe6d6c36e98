"""Runs where a site's files are, as `python3 -c <this text>`: a request on standard input, its answer on standard output.

Standard library only, python3 >= 3.6. One request is one round trip, however many jobs it is about.
"""

import json
import os
import sys
import time
from typing import Any, Dict, List, Optional

WORDS = 600  # bytes of a task's own output that are of interest


def enter(request: Dict[str, Any]) -> List[Optional[Dict[str, Any]]]:
    """Put jobs into their batch's manifest. For each: what is known of it if it was there before, else null.

    With `again`, those that were there before are taken for new, and the manifest's age begins anew.
    """
    directory = request["directory"]
    os.makedirs(directory, 0o700, exist_ok=True)
    known = _read_manifest(directory)
    traces = [_trace(directory, job, known) if str(job["index"]) in known else None for job in request["jobs"]]
    fresh = {str(job["index"]): job["directory"] for job in request["jobs"]}
    if request.get("again") or any(trace is None for trace in traces):
        known.update(fresh)
        _replace(directory + "/job.sh", request["script"])
        _replace(directory + "/manifest.json", _manifest(request["batch"], known))
    return traces


def look(request: Dict[str, Any]) -> List[Dict[str, Any]]:
    """What the directories of these jobs show."""
    manifests = {}  # type: Dict[str, Dict[str, str]]
    for job in request["jobs"]:
        if job["batch"] not in manifests:
            manifests[job["batch"]] = _read_manifest(job["batch"])
    return [_trace(job["batch"], job, manifests[job["batch"]]) for job in request["jobs"]]


def accept(request: Dict[str, Any]) -> bool:
    """Note which jobs the scheduler has acknowledged, and under which id."""
    line = json.dumps({"id": request["id"], "indexes": request["indexes"]}) + "\n"
    with open(request["directory"] + "/accepted", "ab", buffering=0) as file:
        file.write(line.encode())
        os.fsync(file.fileno())
    return True


def fence(request: Dict[str, Any]) -> List[Optional[bool]]:
    """Tell runners to stop, and keep those from beginning that have not begun. For each: whether that was in time."""
    return [_fence(stop) for stop in request["stops"]]


def _fence(stop: Dict[str, Any]) -> Optional[bool]:
    directory = stop["directory"]
    try:
        os.makedirs(directory, 0o700, exist_ok=True)
        # The wish first: a runner that begins between the two reads it before anything else.
        _replace(directory + "/control.json", json.dumps(stop["control"]))
        try:
            os.mkdir(directory + "/started", 0o700)
        except FileExistsError:
            return False
        if stop["record"]:
            _replace(directory + "/status.json", json.dumps(dict(stop["record"], ended_at=time.time())))
        return True
    except OSError:
        return None


def _trace(batch: str, job: Dict[str, Any], manifest: Dict[str, str]) -> Dict[str, Any]:
    directory = job["directory"]
    try:
        # To open a directory makes an NFS client ask the server what is in it: a look may be a minute behind otherwise.
        names = set(os.listdir(directory))
    except OSError:
        names = set()
    ages = [_age(directory + "/" + name) for name in ("started", "status.json") if name in names]
    return {
        "started": "started" in names,
        "recorded": "status.json" in names and _is_over(directory + "/status.json"),
        "quiet": min([age for age in ages if age is not None], default=None),
        "entered": _age(batch + "/manifest.json") if str(job["index"]) in manifest else None,
        "accepted": job["index"] in _accepted(batch),
        "words": [_tail(batch + "/" + name) for name in job.get("outs", ())],
    }


def _is_over(path: str) -> bool:
    status = _read_json(path)
    return isinstance(status, dict) and status.get("state") == "ended"


def _age(path: str) -> Optional[float]:
    try:
        return max(0.0, time.time() - os.stat(path).st_mtime)
    except OSError:
        return None


def _read_manifest(directory: str) -> Dict[str, str]:
    found = _read_json(directory + "/manifest.json")
    return found["jobs"] if isinstance(found, dict) else {}


def _accepted(directory: str, cache: Dict[str, Any] = {}) -> Any:  # noqa: B006  (one process is one request)
    if directory not in cache:
        cache[directory] = set()
        try:
            with open(directory + "/accepted", "rb") as file:
                lines = file.read().decode().splitlines()
            for line in lines:
                cache[directory].update(json.loads(line)["indexes"])
        except (OSError, ValueError):
            pass
    return cache[directory]


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


def _manifest(batch: str, jobs: Dict[str, str]) -> str:
    """A line for each job: the job script reads it with sed."""
    lines = [json.dumps(index) + ": " + json.dumps(jobs[index], ensure_ascii=False) for index in sorted(jobs, key=int)]
    return '{"batch": %s, "jobs": {\n%s\n}}\n' % (json.dumps(batch), ",\n".join(lines))


def _replace(path: str, text: str) -> None:
    """As a whole, and on disk before anything is said about it."""
    draft = "%s.%d.tmp" % (path, os.getpid())
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text.encode("utf-8", "surrogateescape"))
        file.flush()
        os.fsync(file.fileno())
    os.rename(draft, path)


def main() -> None:
    request = json.loads(sys.stdin.buffer.read().decode())
    verbs = {"enter": enter, "look": look, "accept": accept, "fence": fence}
    try:
        answer = {"answer": verbs[request["do"]](request)}  # type: Dict[str, Any]
    except OSError as error:
        answer = {"problem": "%s: %s" % (error.filename or "the site's directory", (error.strerror or "?").lower())}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
