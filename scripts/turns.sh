#!/bin/sh
# Times commands in turn, so that noise on the machine affects all of them alike, and prints the median, first decile and
# minimum of the times of each in ms: scripts/turns.sh ROUNDS 'COMMAND' 'COMMAND'...
set -eu
rounds=$1
shift
times=$(mktemp -d)
trap 'rm -r "$times"' EXIT

round=0
while [ "$round" -lt "$rounds" ]; do
	round=$((round + 1)) number=0
	for command; do
		number=$((number + 1))
		begin=$(date +%s%N)
		sh -c "exec $command" >/dev/null
		end=$(date +%s%N)
		echo $((end - begin)) >>"$times/$number"
	done
done

number=0
for command; do
	number=$((number + 1))
	sort -n "$times/$number" | awk -v command="$command" '{ t[NR] = $1 / 1e6 }
		END { printf "%.2f %.2f %.2f %s\n", t[int((NR + 1) / 2)], t[int((NR + 9) / 10)], t[1], command }'
done
