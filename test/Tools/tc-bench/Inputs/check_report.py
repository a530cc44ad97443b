#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Check tc-bench's JSON: every key with its type, and numbers that agree with each other.

usage: check_report.py REPORT.json THREADS ENGINE=STATUS ... [--known] [--economics]

--known: every kernel must have its place on the roofline. --economics: the report has what that option adds.
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
          "unfused_launches": (int, NONE), "unfused_bytes": (int, NONE), "bound": (str, NONE), "percent_of_roofline": NUMBER + (NONE,),
          "percent_of_roofline_unfused": NUMBER + (NONE,)}
MAYBE = NUMBER + (NONE,)
ECONOMICS = {"runs_per_day": NUMBER, "horizon_days": NUMBER, "engines": list, "peers": list, "modes": list, "cheapest": list,
             "recommendation": list, "fusion": dict}
COST = {"name": str, "kind": str, "once_s": NUMBER, "start_s": NUMBER, "run_s": NUMBER, "time_over_tc": NUMBER,
        "time_over_tc_low": NUMBER, "time_over_tc_high": NUMBER, "compile_s": MAYBE, "import_s": MAYBE, "build_s": MAYBE, "load_s": MAYBE,
        "first_run_us": NUMBER, "peak_rss_bytes": int, "artifact_bytes": (int, NONE), "weights_bytes": (int, NONE), "arena_bytes": (int, NONE)}
COMPARISON = {"name": str, "outcome": str, "time_ratio": NUMBER, "time_ratio_low": NUMBER, "time_ratio_high": NUMBER, "more_s": NUMBER,
              "gain_s_per_run": NUMBER, "gain_s_per_day": NUMBER, "break_even_runs": MAYBE, "break_even_runs_earliest": MAYBE,
              "break_even_runs_latest": MAYBE, "break_even_days": MAYBE}
FUSION = {"launches": NUMBER, "unfused_launches": NUMBER, "bytes": MAYBE, "unfused_bytes": MAYBE, "percent_of_roofline_unfused": MAYBE,
          "percent_of_roofline": MAYBE}


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
        assert kernel["unfused_launches"] >= 1, kernel
        if known:
            assert kernel["unfused_bytes"] >= kernel["bytes_per_call"] and kernel["percent_of_roofline_unfused"] <= 100 + 1e-9, kernel
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


def check_economics(model, economics):
    check_keys("economics", economics, ECONOMICS)
    check_keys("fusion", economics["fusion"], FUSION)
    engines = {engine["name"]: engine for engine in economics["engines"]}
    assert list(engines) == [engine["name"] for engine in model["engines"] if engine["status"] == "measured"], list(engines)
    for engine in engines.values():
        check_keys("cost", engine, COST)
        assert engine["time_over_tc_low"] <= engine["time_over_tc"] <= engine["time_over_tc_high"], engine
        is_peer = engine["kind"] == "peer"
        assert (engine["build_s"] is not None) == is_peer and (engine["compile_s"] is None) == is_peer, engine
        assert (engine["arena_bytes"] is None) == is_peer and engine["peak_rss_bytes"] > 1e6 and engine["first_run_us"] > 0, engine
        assert math.isclose(engine["once_s"], engine["start_s"] + (engine["compile_s"] or 0), rel_tol=1e-9), engine
    assert [peer["name"] for peer in economics["peers"]] == [name for name, engine in engines.items() if engine["kind"] == "peer"]
    assert [mode["name"] for mode in economics["modes"]] == [name for name, engine in engines.items() if engine["kind"] == "mode"]
    tc = engines["tc"]
    assert tc["peak_rss_bytes"] < 64e6, "the process that runs has the memory of the one that measures among its own"
    for kind in ("peers", "modes"):
        for comparison in economics[kind]:
            check_keys("comparison", comparison, COMPARISON)
            one, other = (tc, engines[comparison["name"]]) if kind == "peers" else (engines[comparison["name"]], tc)
            assert comparison["time_ratio_low"] <= comparison["time_ratio"] <= comparison["time_ratio_high"], comparison
            assert math.isclose(comparison["more_s"], one["once_s"] - other["once_s"], abs_tol=1e-9), comparison
            runs = comparison["break_even_runs"]
            assert (runs is not None) == (comparison["outcome"] in ("later", "few runs")), comparison
            if runs is not None:  # both cost the same
                a, b = (each["once_s"] + runs * each["run_s"] for each in (one, other))
                assert math.isclose(a, b, rel_tol=1e-6), (a, b)
                assert comparison["break_even_runs_earliest"] <= runs * (1 + 1e-9), comparison
    assert economics["cheapest"][0]["from_runs"] == 0 and all(stretch["name"] in engines for stretch in economics["cheapest"])
    assert economics["recommendation"] and all(sentence.endswith(".") or "--python" in sentence for sentence in economics["recommendation"])


def main():
    path, threads, *engines = (word for word in sys.argv[1:] if word not in ("--known", "--economics"))
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
        check_keys("model", model, {**MODEL, "economics": dict} if "--economics" in sys.argv else MODEL)
        if "--economics" in sys.argv:
            check_economics(model, model["economics"])
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
