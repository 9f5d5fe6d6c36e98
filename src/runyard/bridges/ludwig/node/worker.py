"""The program that a node executes for one job of a Ludwig project. It is sent with the job: nothing is installed
there.

Either `<source>.job.main(param2val)` is called, which returns named series of pandas, and these appear on the shared
drive in one rename when the job has succeeded. Or a `run.py` of the project's own is executed, which reads its
configurations from a file that is named after the host: so there is one such at a time on a host.

For python 3.6 and later, with the standard library alone; pandas is the job's.
"""

import contextlib
import errno
import hashlib
import importlib
import json
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import time
from typing import Any, Dict, Iterator, List

AGAIN_S = 0.5
INCOMING = ".incoming-jobs"  # not the folder of a yard that mirrors to the same drive: it has another account


def main() -> int:
    job = json.loads(os.environ["LUDWIG_JOB"])
    if not os.path.isdir(job["project_path"]):
        print("runyard: %s has no %s; mount the shared drive there" % (socket.gethostname(), job["project_path"]))
        return 1
    param2val = decode(job["param2val"])
    here = [os.path.abspath(path) for path in job["import_from"]] + [job["project_path"]]
    if job["program"]:
        return run_program(job, param2val, here)
    sys.path[:0] = here
    run_job(job, param2val)
    return 0


def decode(value: Any) -> Any:
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, items),) = value.items()
    if kind == "tuple":
        return tuple(decode(item) for item in items)
    return {decode(key): decode(item) for key, item in items}


# --- <source>.job.main ----------------------------------------------------------------------------------------------


def run_job(job: Dict[str, Any], param2val: Dict[str, Any]) -> None:
    given = dict(param2val)  # the job may change its own
    os.makedirs(param2val["save_path"], exist_ok=True)
    series = importlib.import_module(job["source"] + ".job").main(param2val)
    outputs = os.environ["OUTPUT_DIR"]
    names = save_series([] if series is None else series, outputs)
    publish(job["project_path"], given, [os.path.join(outputs, name) for name in names])


def save_series(found: List[Any], folder: str) -> List[str]:
    import pandas

    names = []  # type: List[str]
    for series in found:
        if not isinstance(series, pandas.Series):
            raise TypeError("job.main must return a list of pandas.Series, and there is a %s" % type(series).__name__)
        if series.name is None:
            raise AttributeError("a series that job.main returned has no name: give each its own, as name=...")
        name = "%s.csv" % series.name
        if "/" in name or name in names:
            raise ValueError("%r: each series needs a name of its own that a file can have" % series.name)
        series.to_csv(os.path.join(folder, name), index=True, header=[series.name])
        names.append(name)
    if not names:
        print("WARNING: Job did not return any results")
    return names


def publish(project_path: str, param2val: Dict[str, Any], files: List[str]) -> None:
    """The folder appears complete: readers that count folders count succeeded jobs."""
    job = "%s-%s-a" % (param2val["param_name"], param2val["job_name"])
    incoming = os.path.join(project_path, INCOMING)
    make(incoming)
    for name in os.listdir(incoming):
        if name.startswith(job):  # of an earlier try, which was ended meanwhile
            shutil.rmtree(os.path.join(incoming, name), ignore_errors=True)
    draft = os.path.join(incoming, job + os.environ["RUNYARD_ATTEMPT"])
    make(draft)
    for path in files:
        shutil.copyfile(path, os.path.join(draft, os.path.basename(path)))
    copy(param2val["save_path"], os.path.join(draft, "saves"))
    place = os.path.join(project_path, "runs", param2val["param_name"], param2val["job_name"])
    make(os.path.dirname(place))
    if os.path.isdir(place):  # of an earlier try whose end was not reported
        os.rename(place, draft + "-old")
    os.rename(draft, place)
    shutil.rmtree(draft + "-old", ignore_errors=True)
    print("results are in %s" % place)


def make(folder: str) -> None:
    """With the mode of the folder above, because users and nodes may have different accounts."""
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    make(above)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
        with contextlib.suppress(OSError):
            os.chmod(folder, os.stat(above).st_mode & 0o7777)


def copy(source: str, to: str) -> None:
    """Without links and modes, which file servers may not support."""
    for place, _, names in os.walk(source):
        folder = os.path.normpath(os.path.join(to, os.path.relpath(place, source)))
        make(folder)
        for name in names:
            shutil.copyfile(os.path.join(place, name), os.path.join(folder, name))


# --- run.py ---------------------------------------------------------------------------------------------------------


def run_program(job: Dict[str, Any], param2val: Dict[str, Any], import_from: List[str]) -> int:
    project_path = job["project_path"]
    with alone(project_path) as hold:
        hosts = {socket.gethostname(), socket.gethostname().lower(), socket.gethostname().partition(".")[0]}
        chunks = [os.path.join(project_path, host + "_param2val_chunk.pkl") for host in hosts.union(job["workers"])]
        for path in chunks:
            write_chunk(path, [param2val])
        try:
            return execute([sys.executable, job["program"]], import_from, hold)
        finally:
            for path in chunks:
                with contextlib.suppress(OSError):
                    os.unlink(path)


@contextlib.contextmanager
def alone(project_path: str) -> Iterator[int]:
    """One at a time on this machine. The kernel releases the name when all processes with the descriptor have ended."""
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    name = "\0runyard-ludwig-" + hashlib.sha256(project_path.encode()).hexdigest()
    told = False
    try:
        while not bind(holder, name):
            if not told:
                print("waiting for another run.py of this project on %s" % socket.gethostname())
                sys.stdout.flush()
                told = True
            time.sleep(AGAIN_S)
        yield holder.fileno()
    finally:
        holder.close()


def bind(holder: socket.socket, name: str) -> bool:
    try:
        holder.bind(name)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True


def write_chunk(path: str, chunk: List[Dict[str, Any]]) -> None:
    draft = "%s.%s" % (path, os.environ["RUNYARD_RUN_ID"])
    with open(draft, "wb") as file:
        pickle.dump(chunk, file, protocol=2)
    os.replace(draft, path)


def execute(command: List[str], import_from: List[str], hold: int) -> int:
    """It gets the same signals as we do; we stay to clean up. It keeps its locks also without us."""
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    paths = import_from + [path for path in [os.environ.get("PYTHONPATH")] if path]
    code = subprocess.call(command, env=dict(os.environ, PYTHONPATH=os.pathsep.join(paths)), pass_fds=[hold])
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
