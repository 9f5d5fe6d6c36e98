"""What is known to go wrong in scripts of this kind: each slip is found before it costs a run, and told with its fix.

    jobs         in what is asked for           shell       in how shells read a script
    containers   in the use of Charliecloud     ray         of Ray
    programs     in any language, and in Python

A slip is a suspicion, not a proof: the job is accepted all the same.
"""

from __future__ import annotations

from runyard.bridges.scripts.job import Here, Job, Notice
from runyard.bridges.scripts.script import Script
from runyard.bridges.scripts.slips import containers, jobs, programs, ray, shell

_IN_SHELL = (*shell.FINDERS, *containers.FINDERS, *ray.FINDERS)


def in_script(script: Script, here: Here) -> list[Notice]:
    finders = [*(_IN_SHELL if script.is_shell else ()), *programs.FINDERS]
    return [notice for finder in finders for notice in finder(script, here)]


def in_job(job: Job, here: Here) -> list[Notice]:
    return [notice for finder in jobs.FINDERS for notice in finder(job, here)]
