#!/bin/bash
#SBATCH --job-name=digits
#SBATCH --output=%x_%A_%a.txt
#SBATCH --array=1-4
#SBATCH --cpus-per-task=1
#SBATCH --mem=500M
#SBATCH --time=5:00

echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT, learning rate ${LR:-0.1}"
