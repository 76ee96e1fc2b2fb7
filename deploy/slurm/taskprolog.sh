#!/bin/sh
# Slurm's TaskProlog: perfagent records every task, without a change to anybody's script. It runs as the user, just
# before the task, as a child of the process that becomes the task. See README.md beside this file.
#
# Whatever goes wrong here, the task starts. What this prints would be read by Slurm ("export NAME=value"), so it prints
# nothing.
[ -z "${NO_PERFAGENT:-}" ] && [ -n "${SLURM_TASK_PID:-}" ] && command -v perfagent >/dev/null 2>&1 || exit 0

run=$SLURM_JOB_ID.${SLURM_STEP_ID:-batch} # the batch script has no step ID
out=${PERFAGENT_OUT:-$PWD/perfagent-out}
mkdir -p "$out/$run" 2>/dev/null || exit 0

# In a session of its own, the task's signals do not reach it. It ends by itself, with the task.
task=$out/$run/task-$SLURM_PROCID
setsid perfagent attach --ready --out "$out" --run-id "$run" --summary never "$SLURM_TASK_PID" \
	</dev/null >"$task.ready" 2>"$task.log" &
pid=$!
echo "$pid" >"$task.pid"

# Slurm kills the process group of this script when it ends. A line says that perfagent has left it, and has begun to
# record: within some hundredths of a second. The task waits 2 s for it at most.
left=100
while [ "$left" -gt 0 ] && [ ! -s "$task.ready" ] && kill -0 "$pid" 2>/dev/null; do
	sleep 0.02
	left=$((left - 1))
done
exit 0
