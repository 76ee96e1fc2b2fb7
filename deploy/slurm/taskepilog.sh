#!/bin/sh
# Slurm's TaskEpilog: waits until the report of the task is written, 10 s at most. Without it Slurm would kill perfagent
# with the rest of the step.
run=$SLURM_JOB_ID.$SLURM_STEP_ID
out=${PERFAGENT_OUT:-$PWD/perfagent-out}
file=$out/$run/task-$SLURM_PROCID

[ -r "$file.pid" ] && read -r pid <"$file.pid" || exit 0
left=100
while [ "$left" -gt 0 ] && kill -0 "$pid" 2>/dev/null; do
	sleep 0.1
	left=$((left - 1))
done

rm -f "$file.pid"
[ -s "$file.log" ] || rm -f "$file.log"
exit 0
