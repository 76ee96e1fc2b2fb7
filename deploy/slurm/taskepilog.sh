#!/bin/sh
# Slurm's TaskEpilog: waits until the report of the task is written, 10 s at most. Without it Slurm would kill perfagent
# with the rest of the step.
run=$SLURM_JOB_ID.${SLURM_STEP_ID:-batch} # the batch script has no step ID
out=${PERFAGENT_OUT:-$PWD/perfagent-out}
task=$out/$run/task-$SLURM_PROCID

[ -r "$task.pid" ] && read -r pid <"$task.pid" || exit 0
left=100
while [ "$left" -gt 0 ] && kill -0 "$pid" 2>/dev/null; do
	sleep 0.1
	left=$((left - 1))
done

rm -f "$task.pid" "$task.ready"
[ -s "$task.log" ] || rm -f "$task.log"
exit 0
