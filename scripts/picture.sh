#!/bin/sh
# Makes docs/mlflow-system-metrics.png: the page of a run with two nodes on a real MLflow server, in a real
# browser. Takes about four minutes, and 850 MB in .tools/picture for MLflow with its pages.
# Needs chromium on PATH (apt-get install chromium).
set -eu
python=${PYTHON:-python3}
venv=.tools/picture
port=${PORT:-5071}
out=docs/mlflow-system-metrics.png

command -v chromium >/dev/null || { echo "picture: chromium is missing: apt-get install chromium" >&2; exit 1; }
if [ ! -x $venv/bin/mlflow ]; then
	echo "picture: installing MLflow with its pages into $venv"
	"$python" -m venv --clear $venv
	$venv/bin/python -m pip install -q --disable-pip-version-check -r scripts/requirements-picture.txt
fi

dir=$(mktemp -d)
server=
trap 'test -z "$server" || kill $server; rm -rf "$dir"' EXIT
export MLFLOW_DISABLE_TELEMETRY=true MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false
echo "picture: starting the server"
$venv/bin/mlflow server --host 127.0.0.1 --port "$port" --workers 1 --backend-store-uri "sqlite:///$dir/mlflow.db" \
	--artifacts-destination "$dir/artifacts" >"$dir/server.log" 2>&1 &
server=$!
tries=0
until $venv/bin/python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$port/health')" 2>/dev/null; do
	tries=$((tries + 1))
	if [ $tries -gt 60 ] || ! kill -0 $server; then
		tail -n 5 "$dir/server.log" >&2
		exit 1
	fi
	sleep 1
done

# A job with phases: one busy CPU, writing, a pause.
cat >"$dir/train.sh" <<'EOF'
for step in 1 2 3 4; do
	timeout $((6 + 2 * step)) sh -c 'while :; do :; done'
	dd if=/dev/zero of="data-$PERFAGENT_NODE" bs=1M count=$((step * 150)) conv=fsync 2>/dev/null
	sleep 9
done
EOF
echo "picture: running the job on two nodes"
export MLFLOW_TRACKING_URI="http://127.0.0.1:$port"
agent=$PWD/bin/perfagent
(cd "$dir" && exec "$agent" run --node 0 --run-id picture -- sh train.sh) &
first=$!
(cd "$dir" && exec "$agent" run --node 1 --run-id picture -- sh train.sh)
wait $first

run=$($venv/bin/python - <<'EOF'
import mlflow
run, = mlflow.MlflowClient().search_runs(["0"])
print(run.info.run_id)
EOF
)

# The page draws its charts in sequence, with scripts that the browser caches on the first visit. A picture without all
# charts is much smaller.
for visit in 1 2 3 4 5 6; do
	echo "picture: visit $visit of the browser"
	chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --window-size=2500,3250 \
		--virtual-time-budget=90000 --user-data-dir="$dir/browser" --screenshot="$dir/shot.png" \
		"http://127.0.0.1:$port/#/experiments/0/runs/$run/system-metrics" >"$dir/browser.log" 2>&1 ||
		{ tail -n 5 "$dir/browser.log" >&2; exit 1; }
	if [ "$(wc -c <"$dir/shot.png")" -gt 400000 ]; then
		cp "$dir/shot.png" $out
		echo "picture: $out"
		exit
	fi
done
echo "picture: the charts were not drawn" >&2
exit 1
