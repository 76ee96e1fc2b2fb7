#!/bin/sh
# Slurm's TaskProlog: perfagent records every task, without a change to anybody's script. It runs as the user, just
# before the task, in the process that becomes the task. See README.md beside this file.
#
# Whatever goes wrong here, the task starts: each line either succeeds or ends the recording, never the task. What this
# prints would be read by Slurm ("export NAME=value"), so it prints nothing.
[ "${PERFAGENT_SLURM:-on}" != off ] || exit 0
[ -n "${SLURM_TASK_PID:-}" ] && command -v perfagent >/dev/null 2>&1 || exit 0

run=$SLURM_JOB_ID.$SLURM_STEP_ID
out=${PERFAGENT_OUT:-$PWD/perfagent-out}
mkdir -p "$out/$run" 2>/dev/null || exit 0

# Its own session: neither the task's signals nor a closed terminal end it. It ends by itself, with the task.
setsid perfagent attach --out "$out" --run-id "$run" --summary never "$SLURM_TASK_PID" \
	</dev/null >/dev/null 2>"$out/$run/task-$SLURM_PROCID.log" &
echo $! >"$out/$run/task-$SLURM_PROCID.pid" 2>/dev/null
exit 0
