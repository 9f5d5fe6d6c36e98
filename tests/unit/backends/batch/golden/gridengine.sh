#!/bin/sh
# runyard, batch ry-1-1-7: a task finds its attempt's directory and becomes its runner.
trap '' USR1 USR2  # warnings, which would end this shell; the runner listens to them
task=${SGE_TASK_ID:-undefined}
[ "$task" = undefined ] && task=1
# The array is the batch's own. A run that is a task of the user's array is told so by runyard.
SGE_TASK_ID=undefined SGE_TASK_FIRST=undefined SGE_TASK_LAST=undefined SGE_TASK_STEPSIZE=undefined
batch='/scratch/my site/batches/ry-1-1-7'
runner='/scratch/my site/runner-1'
python=python3

# The first argument is what the task's number lacks to the job's index: arrays of some sites are small.
index=$((task + ${1:-0}))
# manifest.json has a line for each job, so that a node can read it before it has found an interpreter.
attempt=$(sed -n "s|^ *\"$index\": \"\(.*\)\",\{0,1\}\$|\1|p" "$batch/manifest.json")
if [ -z "$attempt" ]; then
    echo "runyard: job $index is not in $batch/manifest.json, as $(uname -n) sees it" >&2
    exit 1
fi
if ! command -v "$python" >/dev/null 2>&1; then
    echo "runyard: $(uname -n) has no interpreter $python; name one with: runyard site edit --python PATH" >&2
    exit 127
fi
# Where the site has relay=node, its agent left a script that brings the run home. The runner ends as that one.
exec "$python" -I -S "$runner" run "$attempt" "${batch%/*/*}/relay.sh"
