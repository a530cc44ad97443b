#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Check tc-bench's JSON: every key with its type, and numbers that agree with each other.

usage: check_report.py REPORT.json THREADS ENGINE=STATUS ... [--known]

--known: every kernel must have its place on the roofline.
"""
import json
import math
import re
import sys

NUMBER = (int, float)
NONE = type(None)
ROOFLINE = {"threads": int, "instructions": str, "peak_gflops": NUMBER, "levels": list}
LEVEL = {"name": str, "capacity_bytes": (int, NONE), "working_set_bytes": int, "read_gbs": NUMBER, "copy_gbs": NUMBER}
MODEL = {"model": str, "sizes": dict, "inputs": str, "variant": str, "threads": int, "compile_s": NUMBER + (NONE,), "artifact_bytes": int,
         "load_us": NUMBER, "arena_bytes": int, "peak_memory_bytes": int, "engines": list, "kernels": list}
TIMES = {"name": str, "status": str, "version": str, "load_s": NUMBER, "median_us": NUMBER, "min_us": NUMBER, "p90_us": NUMBER,
         "p95_us": NUMBER, "p99_us": NUMBER, "mean_us": NUMBER, "std_dev_us": NUMBER, "spread": NUMBER, "noise": NUMBER, "runs": int,
         "runs_per_s": NUMBER, "time_over_tc": NUMBER}
PROBLEM = {"name": str, "status": str, "problem": str}
KERNEL = {"name": str, "number": int, "strategy": (str, NONE), "reads": list, "nodes": str, "calls_per_run": NUMBER, "us_per_run": NUMBER, "percent_of_time": NUMBER,
          "flops_per_call": int, "bytes_per_call": int, "gflops": NUMBER + (NONE,), "gbs": NUMBER + (NONE,),
          "bound": (str, NONE), "percent_of_roofline": NUMBER + (NONE,)}


def check_keys(what, entry, keys, optional=()):
    for key, kind in keys.items():
        assert key in entry, f"{what} lacks {key}"
        assert isinstance(entry[key], kind), f"{what}: {key} is {entry[key]!r}"
    unknown = set(entry) - set(keys) - set(optional)
    assert not unknown, f"{what} has keys that the check does not know: {unknown}"


def check_roofline(roofline):
    check_keys("roofline", roofline, ROOFLINE)
    assert roofline["peak_gflops"] > 0
    for level in roofline["levels"]:
        check_keys("level", level, LEVEL)
        assert level["read_gbs"] > 0 and level["copy_gbs"] > 0 and level["working_set_bytes"] > 0
    assert roofline["levels"][-1]["name"] == "memory"


def check_kernels(model, roofline, known):
    assert model["kernels"], "no kernels"
    levels = {level["name"]: max(level["read_gbs"], level["copy_gbs"]) for level in roofline["levels"]}
    for kernel in model["kernels"]:
        check_keys("kernel", kernel, KERNEL)
        if kernel["bound"] is None:
            assert not known, kernel
            assert kernel["percent_of_roofline"] is None
            continue
        # Percent of the roofline is the achieved rate over the roof that binds.
        roof = kernel["gflops"] / roofline["peak_gflops"] if kernel["bound"] == "peak" else kernel["gbs"] / levels[kernel["bound"]]
        assert math.isclose(kernel["percent_of_roofline"], 100 * roof, rel_tol=1e-6), kernel
    assert math.isclose(sum(kernel["percent_of_time"] for kernel in model["kernels"]), 100, rel_tol=1e-6)
    times = [kernel["us_per_run"] for kernel in model["kernels"]]
    assert times == sorted(times, reverse=True)


def main():
    path, threads, *engines = (word for word in sys.argv[1:] if word != "--known")
    with open(path) as f:
        report = json.load(f)
    check_keys("report", report, {"tool": str, "schema": int, "version": str, "machine": str, "date": str, "command": str,
                                  "rooflines": list, "models": list})
    assert "cores usable" in report["machine"] and "Linux" in report["machine"], report["machine"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}", report["date"]), report["date"]
    assert report["command"].startswith("tc-bench ") and path in report["command"] + path, report["command"]
    sizes = [json.dumps(model["sizes"]) for model in report["models"]]
    assert len(set(sizes)) == len(sizes), sizes
    for roofline in report["rooflines"]:
        check_roofline(roofline)
    assert [r["threads"] for r in report["rooflines"]] == sorted({1, int(threads)})
    for model in report["models"]:
        check_keys("model", model, MODEL)
        assert model["threads"] == int(threads)
        found = [f"{engine['name']}={engine['status']}" for engine in model["engines"]]
        assert found == engines, found
        for engine in model["engines"]:
            if engine["status"] != "measured":
                check_keys("engine", engine, PROBLEM)
                continue
            check_keys("engine", engine, TIMES, ["max_rel_error", "difference"])
            ordered = [engine[key] for key in ("min_us", "median_us", "p90_us", "p95_us", "p99_us")]
            assert 0 < ordered[0] and ordered == sorted(ordered) and engine["runs"] >= 5, ordered
            assert engine["std_dev_us"] >= 0 and engine["noise"] >= 0 and engine["mean_us"] >= engine["min_us"]
            assert math.isclose(engine["runs_per_s"] * engine["mean_us"], 1e6, rel_tol=1e-9)
            assert ("max_rel_error" in engine) == (engine["name"] != "tc")
        assert model["engines"][0]["time_over_tc"] == 1
        check_kernels(model, report["rooflines"][-1], "--known" in sys.argv)
    print("the report is as documented")


if __name__ == "__main__":
    main()
