"""Prints what a server has of runs, as MLflow's own client sees it.

With no argument: answers each line of standard input, a JSON list of the arguments below, with a line of JSON.
RUN_ID               that run
--all                every run
--experiment NAME    every run of an experiment
"""

import hashlib
import json
import math
import sys
import tempfile

from mlflow import MlflowClient
from mlflow.entities import ViewType


def number(v):
    """JSON has no words for the others."""
    return v if math.isfinite(v) else str(v)


def artifacts(client, run_id, path=None):
    for f in client.list_artifacts(run_id, path):
        if f.is_dir:
            yield from artifacts(client, run_id, f.path)
            continue
        found = {"path": f.path, "size": f.file_size}
        if f.path.endswith(".json") and f.file_size <= 1 << 20:
            with tempfile.TemporaryDirectory() as place:  # MLflow's own would stay
                with open(client.download_artifacts(run_id, f.path, place), "rb") as data:
                    found["sha256"] = hashlib.sha256(data.read()).hexdigest()
        yield found


def run_data(client, run_id):
    run = client.get_run(run_id)
    return {
        "info": {
            "run_id": run.info.run_id,
            "run_name": run.info.run_name,
            "experiment_id": run.info.experiment_id,
            "experiment_name": client.get_experiment(run.info.experiment_id).name,
            "user_id": run.info.user_id,
            "status": run.info.status,
            "lifecycle_stage": run.info.lifecycle_stage,
            "start_time": run.info.start_time,
            "end_time": run.info.end_time,
            "artifact_uri": run.info.artifact_uri,
        },
        "tags": run.data.tags,
        "params": run.data.params,
        "latest": {k: number(v) for k, v in run.data.metrics.items()},
        "metrics": {
            k: [[m.timestamp, m.step, number(m.value)] for m in client.get_metric_history(run_id, k)]
            for k in run.data.metrics
        },
        "artifacts": sorted(artifacts(client, run_id), key=lambda a: a["path"]),
    }


def everything(search):
    """All pages of a search."""
    token = None
    while True:
        page = search(token)
        yield from page
        token = page.token
        if not token:
            return


def run_ids(client, args):
    if args[0] not in ("--all", "--experiment"):
        return args
    experiments = everything(lambda token: client.search_experiments(view_type=ViewType.ALL, page_token=token))
    ids = [e.experiment_id for e in experiments if args[0] == "--all" or e.name == args[1]]
    if not ids:
        return []
    runs = everything(
        lambda token: client.search_runs(
            ids, run_view_type=ViewType.ALL, order_by=["attributes.start_time ASC"], page_token=token
        )
    )
    return [r.info.run_id for r in runs]


def answer(args):
    client = MlflowClient()
    return [run_data(client, run_id) for run_id in run_ids(client, args)]


if len(sys.argv) > 1:
    json.dump(answer(sys.argv[1:]), sys.stdout, indent=2, allow_nan=False)
    print()
    sys.exit()
for line in sys.stdin:
    try:
        reply = {"runs": answer(json.loads(line))}
    except Exception as e:
        reply = {"error": f"{type(e).__name__}: {e}"}
    print(json.dumps(reply, allow_nan=False), flush=True)
