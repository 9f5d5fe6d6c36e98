#!/bin/sh
#$ -N digits
#$ -l h_rt=0:05:00,h_vmem=500M

echo "job $JOB_ID, task $SGE_TASK_ID, data in ${DATA_DIR:-nowhere}, on $NSLOTS core(s)"
