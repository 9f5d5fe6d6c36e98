"""Common mistakes in scripts of this kind: each is found before it costs a run, and reported with a fix.

    jobs         in requests and files          shell       in shell syntax
    containers   in the use of Charliecloud     ray         of Ray
    programs     in any language, and in Python

A slip is a suspicion, not a proof: the job is accepted all the same.
"""

from __future__ import annotations

from runyard.bridges.scripts.job import Here, Notice, ScriptJob
from runyard.bridges.scripts.mistakes import containers, jobs, programs, ray, shell
from runyard.bridges.scripts.script import Script

_IN_SHELL = (*shell.FINDERS, *containers.FINDERS, *ray.FINDERS)


def in_script(script: Script, here: Here) -> list[Notice]:
    finders = [*(_IN_SHELL if script.is_shell else ()), *programs.FINDERS]
    return [notice for finder in finders for notice in finder(script, here)]


def in_job(job: ScriptJob, here: Here) -> list[Notice]:
    return [notice for finder in jobs.FINDERS for notice in finder(job, here)]
