"""Writes a body of Prometheus' text format to stdout as a vLLM server (v1 engine) with three engines would: its names,
types, labels and buckets, made by prometheus_client 0.26.0. Usage: vllm.py >vllm.txt
"""

import random

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest

random.seed(1)
registry = CollectorRegistry()
labels = ["model_name", "engine"]
model = "meta-llama/Llama-3.1-70B-Instruct"
engines = [str(i) for i in range(3)]
seconds = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680]
tokens = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000]
short = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560]
xfer = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 5.0]

gauges = ["num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "lora_requests_info", "engine_sleep_state"]
counters = [
    "num_preemptions", "prompt_tokens", "generation_tokens", "prefix_cache_queries", "prefix_cache_hits",
    "mm_cache_queries", "mm_cache_hits", "spec_decode_num_drafts", "spec_decode_num_draft_tokens",
    "spec_decode_num_accepted_tokens", "nixl_num_failed_transfers", "nixl_num_failed_notifications",
    "nixl_num_kv_expired_reqs",
]
histograms = {
    "iteration_tokens_total": tokens, "request_prompt_tokens": tokens, "request_generation_tokens": tokens,
    "request_max_num_generation_tokens": tokens, "request_params_n": [1, 2, 5, 10, 20],
    "request_params_max_tokens": tokens, "time_to_first_token_seconds": short,
    "inter_token_latency_seconds": short, "time_per_output_token_seconds": short,
    "request_time_per_output_token_seconds": short, "e2e_request_latency_seconds": seconds,
    "request_queue_time_seconds": seconds, "request_inference_time_seconds": seconds,
    "request_prefill_time_seconds": seconds, "request_decode_time_seconds": seconds,
    "nixl_xfer_time_seconds": xfer, "nixl_post_time_seconds": [0.001] + xfer,
    "nixl_bytes_transferred": [2.0**i for i in range(11, 34, 2)],
    "nixl_num_descriptors": [10, 20, 30, 50, 75, 100, 200, 400, 1000, 2000, 4000, 10000, 20000, 50000],
}

for name in gauges:
    metric = Gauge("vllm:" + name, name.replace("_", " ") + ".", labels, registry=registry)
    for engine in engines:
        metric.labels(model, engine).set(random.randrange(100))
for name in counters:
    metric = Counter("vllm:" + name, name.replace("_", " ") + ".", labels, registry=registry)
    for engine in engines:
        metric.labels(model, engine).inc(random.randrange(1000000))
success = Counter("vllm:request_success", "Finished.", labels + ["finished_reason"], registry=registry)
for engine in engines:
    for reason in ["stop", "length", "abort", "error"]:
        success.labels(model, engine, reason).inc(random.randrange(1000))
for name, buckets in histograms.items():
    metric = Histogram("vllm:" + name, name.replace("_", " ") + ".", labels, buckets=buckets, registry=registry)
    for engine in engines:
        child = metric.labels(model, engine)
        for _ in range(200):
            child.observe(random.choice(buckets) * random.random())
print(generate_latest(registry).decode(), end="")
