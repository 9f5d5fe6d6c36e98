"""`Client` as projects for LudwigCluster know it; each job is an ordinary run of the yard."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import runyard.client
from runyard import errors
from runyard.bridges.ludwig import jobs, results, values
from runyard.bridges.ludwig.folder import RUNS, ProjectFolder, find_share, on_nodes
from runyard.bridges.ludwig.grid import gen_all_param2vals
from runyard.bridges.ludwig.jobs import LudwigJob
from runyard.bridges.ludwig.layout import ProjectLayout
from runyard.client.run import Run
from runyard.client.run_inputs import CodeHere, DataHere, name_below
from runyard.model.spec_values import name_text

TAG = "ludwig"
WORKER = ".ludwig-worker"  # where a job finds the program that executes it, beside its code
DISK_USAGE_MAX = 90  # percent
RETRIES = 2  # of jobs whose node was lost; their results appear in one rename, so that twice is no harm

Configuration = Mapping[str, Any]


class _DiskCheck:
    """Raises RuntimeError when the shared drive is nearly full: that of a client, or called on the class, the one that
    `find_share` finds."""

    def __get__(self, client: Client | None, owner: type[Client]) -> Callable[[], None]:
        if client is None:
            return lambda: _check_disk(ProjectFolder(find_share(), ""), print)
        return lambda: _check_disk(client._folder, client._say)


class Client:
    """Submits the jobs of one project.

    `share` is the shared drive, see `find_share`, and `share_on_nodes` where the nodes have it. `python` is the
    interpreter there. `yard` is a runyard.Client for another yard than this home's. `say` shows messages to the user.
    """

    check_lab_disk_space = _DiskCheck()

    def __init__(
        self,
        project_name: str,
        param2default: Configuration | None = None,
        *,
        share: Path | str | None = None,
        share_on_nodes: Path | str | None = None,
        site: str | None = None,
        python: str = "python3",
        yard: runyard.client.Client | None = None,
        say: Callable[[str], object] = print,
    ) -> None:
        self.project_name, self.param2default = name_text(project_name, "project_name"), param2default
        self._folder = ProjectFolder(find_share(share), project_name)
        self._path_on_nodes = str(Path(share_on_nodes or on_nodes(self._folder.share)) / project_name)
        self._site, self._python = site, python
        self._yard, self._say = yard or runyard.client.Client(), say

    def submit(
        self,
        src_ps: Sequence[Path | str],
        param2val_list: Sequence[Configuration] | Mapping[str, Any] | None = None,
        data_ps: Sequence[Path | str] | None = None,
        reps: int = 1,
        test: bool = False,
        worker: str | Sequence[str] | None = None,
        run_f_name: str | None = "run.py",
        *,
        param2requests: Mapping[str, Any] | None = None,
        anew: bool = False,
        **fields: Any,
    ) -> list[Run]:
        """Start the missing ones of `reps` repetitions of each configuration. Never stops a run.

        With `test` it only shows what it would start, with `anew` it starts all of them. `worker` is a node, or
        several. `run_f_name`: the project's own program, if there is one. `fields` are further fields of a run, such as
        `resources` or `priority`.
        """
        layout = ProjectLayout.find(Path.cwd().resolve(), src_ps, run_f_name)
        data = _data(data_ps or (), layout.root)
        configurations = self._configurations(param2val_list, param2requests)
        with self._folder.locked():
            plan = jobs.plan(self._folder, self._known(), configurations, reps, anew=anew)
            if test or not plan.jobs:
                self._tell(plan, reps, "Would run")
                return []
            for name, item in data.items():
                self._folder.copy(item.folder, name)
            for param_name, configuration in plan.new.items():
                self._folder.add(param_name, configuration, self._path_on_nodes)
            common = {**self._common(layout, data.values(), worker), **fields}
            runs = self._yard.submit_many([self._own(job, layout, common) for job in plan.jobs])
            self._tell(plan, reps, "Running")
            return runs

    def list_all_param2vals(
        self, param2requests: Mapping[str, Any], update_d: Configuration | None = None, add_names: bool = True
    ) -> list[dict[str, Any]]:
        names = {"param_name": None, "job_name": None} if add_names else {}
        found = gen_all_param2vals(param2requests, self._defaults())
        return [{**configuration, **names, **(update_d or {})} for configuration in found]

    def gen_param_ps(
        self,
        param2requests: Mapping[str, Any],
        runs_p: Path | None = None,
        label_params: Sequence[str] | None = None,
    ) -> Iterator[tuple[Path, str]]:
        """The existing folders with results of these configurations, each with a label for plots."""
        return results.gen_param_paths(
            self.project_name, param2requests, self._defaults(), runs_path=runs_p,
            ludwig_data_path=self._folder.share, label_params=label_params, require_all_found=False,
        )  # fmt: skip

    def _configurations(self, listed: Any, requested: Mapping[str, Any] | None) -> list[dict[str, Any]]:
        """Of a list, or of a request; later clients had requests instead of lists."""
        if isinstance(listed, Mapping) and requested is None:
            listed, requested = None, listed
        if (listed is None) == (requested is None):
            raise errors.InvalidInput("there are no configurations", "give param2val_list, or param2requests")
        if requested is not None:
            listed = gen_all_param2vals(requested, self._defaults())
        return [values.clean(item, f"param2val_list[{index}]") for index, item in enumerate(listed)]

    def _defaults(self) -> Configuration:
        if self.param2default is None:
            raise errors.InvalidInput(
                "param2requests needs param2default",
                f"make the client with Client({self.project_name!r}, param2default)",
            )
        return self.param2default

    def _known(self) -> jobs.KnownRuns:
        found = self._yard.iter_runs(project=self.project_name, tag=self._tag)
        return jobs.KnownRuns.read(run.data for run in found)

    @property
    def _tag(self) -> str:
        """Only of this folder: another drive may have a project of the same name."""
        return f"{TAG}-{hashlib.sha256(self._path_on_nodes.encode()).hexdigest()[:12]}"

    def _tell(self, plan: jobs.SubmissionPlan, reps: int, verb: str) -> None:
        if not plan.jobs:
            self._say(f"{reps} replications of each model already exist.")
        for job in plan.jobs:
            self._say(f"{verb} {job.param_name} {job.job_name} {job.configuration}")

    # --- runs -------------------------------------------------------------------------------------------------------

    def _common(
        self, layout: ProjectLayout, data: Iterable[DataHere], worker: str | Sequence[str] | None
    ) -> dict[str, Any]:
        program = DataHere(folder=Path(__file__).parent / "node", to=WORKER)
        common = {
            "command": [self._python, f"{WORKER}/worker.py"],
            "project": self.project_name,
            "code": CodeHere(root=layout.root, paths=layout.code),
            "data": [program, *data],
            "site": self._site,
            "node": [worker] if isinstance(worker, str) else list(worker or []) or None,
            "resources": {"gpus": 1} if self._has_gpus() else None,
            "retry": {"max": RETRIES},
        }
        return {name: value for name, value in common.items() if value is not None}

    def _has_gpus(self) -> bool:
        """If the nodes have GPUs, a job gets one for itself, as before."""
        agents = [agent for agent in self._yard.agents() if self._site in (None, agent["site"])]
        return any(agent["total"].get("gpus") for agent in agents)

    def _own(self, job: LudwigJob, layout: ProjectLayout, common: Mapping[str, Any]) -> dict[str, Any]:
        names = {"param_name": job.param_name, "job_name": job.job_name}
        if layout.package is not None:
            saves = f"{layout.package}_runs/{job.param_name}/{job.job_name}/saves"
            names |= {"project_path": self._path_on_nodes, "save_path": saves}
        nodes = common.get("node", [])
        told = {
            "project_path": self._path_on_nodes,
            "param2val": values.encode({**job.configuration, **names}),
            "program": layout.program,
            "source": layout.package,
            "import_from": layout.import_from,
            "workers": nodes if len(nodes) == 1 else [],
        }
        return {
            **common,
            "name": job.job_name,
            "params": values.told(job.configuration),
            "tags": [*common.get("tags", []), TAG, self._tag, job.param_name],
            "env": {**common.get("env", {}), "LUDWIG_JOB": json.dumps(told), "PYTHONUNBUFFERED": "1"},
        }


def _check_disk(folder: ProjectFolder, say: Callable[[str], object]) -> None:
    folder.check()
    usage = shutil.disk_usage(folder.share)
    percent = round(100 * usage.used / usage.total)
    say(f"Percent Disk Space used at {folder.share}: {percent}")
    if percent > DISK_USAGE_MAX:
        raise RuntimeError(f"Disk space usage > {DISK_USAGE_MAX}.")


def _data(data_ps: Sequence[Path | str], root: Path) -> dict[str, DataHere]:
    """Folders by their names on the drive. A job also finds them beside its code, at the project's paths."""
    found: dict[str, DataHere] = {}
    for path in data_ps:
        folder = Path(os.path.abspath(Path(path).expanduser()))  # a link has its own name, whatever it leads to
        name = folder.name
        if not folder.is_dir():
            raise errors.InvalidInput(f"data_ps: there is no folder {path}", "check the path, and where you are")
        if name == RUNS:
            raise errors.InvalidInput(f"data_ps: on the drive {RUNS!r} is where results are", "rename the folder")
        if name in found and found[name].folder != folder:
            raise errors.InvalidInput(
                f"data_ps: {path} and {found[name].folder} would both be {name!r} on the drive", "rename one of them"
            )
        found[name] = DataHere(folder=folder, to=name_below(folder, root))
    return found
