#!/bin/sh
# runyard, batch @batch@: a task finds its attempt's directory and becomes its runner.
task=${SGE_TASK_ID:-undefined}
[ "$task" = undefined ] && task=1
@common@
