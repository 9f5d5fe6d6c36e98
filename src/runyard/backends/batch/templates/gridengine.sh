#!/bin/sh
# runyard, batch @batch@: a task finds its attempt's directory and becomes its runner.
trap '' USR1 USR2  # warnings, which would end this shell; the runner listens to them
task=${SGE_TASK_ID:-undefined}
[ "$task" = undefined ] && task=1
# The array is the batch's own. A run that is a task of the user's array is told so by runyard.
SGE_TASK_ID=undefined SGE_TASK_FIRST=undefined SGE_TASK_LAST=undefined SGE_TASK_STEPSIZE=undefined
@common@
