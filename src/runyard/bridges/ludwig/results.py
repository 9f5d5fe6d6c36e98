"""The folders of results of configurations, for plots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from runyard import errors
from runyard.bridges.ludwig.folder import ProjectFolder, find_share, identity
from runyard.bridges.ludwig.grid import gen_all_param2vals


def gen_param_paths(
    project_name: str,
    param2requests: Mapping[str, Any],
    param2default: Mapping[str, Any],
    runs_path: Path | None = None,
    ludwig_data_path: Path | None = None,
    label_params: Iterable[str] | None = None,
    isolated: bool = False,
    label_n: bool = True,
    verbose: bool = True,
    verbose_plus: bool = False,
    require_all_found: bool = True,
) -> Iterator[tuple[Path, str]]:
    """The folder of each requested configuration, and a label such as `lr=0.1\\nn=2`.

    `isolated`: results are in the current folder, and not on the shared drive. `verbose_plus` also says which
    configurations were looked at.
    """
    folder = (
        ProjectFolder(Path.cwd().parent, Path.cwd().name)
        if isolated
        else ProjectFolder(find_share(ludwig_data_path), project_name)
    )
    folder.runs = runs_path or folder.runs
    if not folder.runs.is_dir():
        raise errors.NotFound(
            f"there is no {folder.runs}", "check the project's name, and whether the drive is mounted"
        )
    wanted = {identity(asked): asked for asked in gen_all_param2vals(param2requests, param2default)}
    names = sorted({*param2requests, *(label_params or ())})
    if unknown := [name for name in names if name not in param2default]:
        raise errors.InvalidInput(f"label_params: param2default does not have {unknown[0]!r}", "correct the name")
    found = 0
    for param_name, configuration in folder.configurations().items():
        asked = wanted.get(identity(configuration))
        if verbose_plus:
            print(f"Ludwig: {param_name}: {configuration}")
        if asked is not None:
            found += 1
            lines = [f"{name}={asked[name]}" for name in names]
            lines += [f"n={len(folder.jobs(param_name))}"] if label_n else []
            if verbose:
                print(f"Ludwig: {folder.runs / param_name}: {', '.join(lines)}")
            yield folder.runs / param_name, "\n".join(lines)
    if found != len(wanted) and require_all_found:
        raise SystemExit(f"Ludwig: Found {found} but requested {len(wanted)}")
