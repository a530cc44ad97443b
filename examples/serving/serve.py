#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An HTTP service of one model, with Python's own server and tc_compiler: requests that come together run as one batch.

usage: serve.py ARTIFACT [--port 8000] [--host 127.0.0.1] [--max-batch 64] [--max-delay-ms 2] [--threads 0]

The artifact's inputs and outputs have the batch as first dim, of the same symbol (tc-compile --dim batch=bucket:1,4,16,64 gives each bucket code of its own).

  POST /infer    an .npz file with the inputs by name, 1 row or more -> an .npz file with the outputs; or JSON {"name": nested lists} -> JSON
  GET /metrics   Prometheus text: requests, rows, batches, seconds of runs, refusals
  GET /health    "ok"

A request that the model refuses gets status 400 with the sentence; others of its batch run without it. Where more wait than --max-waiting says, 503.
"""
import argparse
import http.server
import io
import json
import queue
import threading
import time
import zipfile

import numpy as np
import tc_compiler as tc


class Job:
    """A request: its inputs, how many rows they have, and what became of it."""

    def __init__(self, inputs, rows):
        self.inputs, self.rows = inputs, rows
        self.outputs, self.error, self.done = None, None, threading.Event()

    def finish(self, outputs=None, error=None):
        self.outputs, self.error = outputs, error
        self.done.set()


class Overloaded(Exception):
    pass


class Batcher:
    """Runs jobs in batches, on a thread of its own. Thread-safe.

    A batch begins with the job that waited longest and takes others until it has `max_batch` rows or `max_delay` seconds have passed."""

    def __init__(self, artifact, max_batch=64, max_delay=0.002, max_waiting=1024):
        self.artifact, self.max_batch, self.max_delay = artifact, max_batch, max_delay
        self.jobs = queue.Queue(max_waiting)
        self.held = None # a job that did not fit into the last batch
        self.counts = {"requests": 0, "rows": 0, "batches": 0, "refused": 0, "seconds": 0.0}
        self.lock = threading.Lock()
        symbols = {value.shape[0] if value.shape else None for value in artifact.inputs + artifact.outputs}
        if len(symbols) != 1 or not isinstance(next(iter(symbols)), str):
            raise ValueError(f"{artifact.path}: inputs and outputs need one open batch dim in common, but begin with {', '.join(map(str, symbols))}; compile the model with --dim batch=1..64")
        self.limit = next(s.maximum for s in artifact.main.symbols if s.name in symbols)
        self.max_batch = min(max_batch, self.limit)
        threading.Thread(target=self._work, daemon=True).start()

    def run(self, inputs):
        """Outputs of these inputs by name; blocks until they are there. Raises tc.TcError where the model refuses them, Overloaded where too many wait."""
        rows = self._rows(inputs)
        job = Job(inputs, rows)
        try:
            self.jobs.put_nowait(job)
        except queue.Full:
            raise Overloaded("too many requests wait; try again") from None
        job.done.wait()
        if job.error:
            raise job.error
        return job.outputs

    def _rows(self, inputs):
        """Checks what could harm others of a batch."""
        known = {value.name: value for value in self.artifact.inputs}
        for name in list(known) + list(inputs):
            if name not in inputs or name not in known:
                raise tc.RefusedError(f'input "{name}" is {"missing" if name in known else "none of the model"}; inputs are {", ".join(known)}')
        rows = {array.shape[0] if array.ndim else 0 for array in inputs.values()}
        if len(rows) != 1 or not 0 < next(iter(rows)) <= self.limit:
            raise tc.RefusedError(f"inputs have {', '.join(map(str, sorted(rows)))} rows; all need the same number, from 1 to {self.limit}")
        return next(iter(rows))

    def _take(self):
        """The next batch: jobs whose inputs have one shape behind the first dim, and one dtype."""
        first = self.held or self.jobs.get()
        self.held, batch, rows = None, [first], first.rows
        kind = self._kind(first)
        end = time.monotonic() + self.max_delay
        while rows < self.max_batch:
            try:
                job = self.jobs.get(timeout=max(0.0, end - time.monotonic())) if self.max_delay else self.jobs.get_nowait()
            except queue.Empty:
                break
            if rows + job.rows > self.max_batch or self._kind(job) != kind:
                self.held = job
                break
            batch.append(job)
            rows += job.rows
        return batch, rows

    @staticmethod
    def _kind(job):
        return {name: (array.shape[1:], array.dtype) for name, array in job.inputs.items()}

    def _work(self):
        while True:
            batch, rows = self._take()
            started = time.perf_counter()
            try:
                joined = batch[0].inputs if len(batch) == 1 else {name: np.concatenate([job.inputs[name] for job in batch]) for name in batch[0].inputs}
                outputs, start = self.artifact.run(joined), 0
                for job in batch:
                    job.finish({name: array[start : start + job.rows] for name, array in outputs.items()})
                    start += job.rows
            except Exception as error: # all jobs are of one shape and dtype: what is refused for one is for all, unless it is a value
                for job in batch:
                    self._run_alone(job, error, len(batch))
            with self.lock:
                self.counts["requests"] += len(batch)
                self.counts["rows"] += rows
                self.counts["batches"] += 1
                self.counts["refused"] += sum(job.error is not None for job in batch)
                self.counts["seconds"] += time.perf_counter() - started

    def _run_alone(self, job, error, count):
        if count == 1:
            job.finish(error=error)
            return
        try:
            job.finish(self.artifact.run(job.inputs))
        except Exception as own:
            job.finish(error=own)

    def metrics(self):
        """Prometheus text."""
        with self.lock:
            counts = dict(self.counts)
        lines = []
        for name, value in counts.items():
            lines += [f"# TYPE tc_serving_{name}_total counter", f"tc_serving_{name}_total {value}"]
        lines += ["# TYPE tc_serving_waiting gauge", f"tc_serving_waiting {self.jobs.qsize()}"]
        return "\n".join(lines) + "\n"


def read_json(body, values):
    given = json.loads(body)
    if not isinstance(given, dict):
        raise ValueError("the request is no object of inputs by name")
    dtypes = {value.name: value.dtype.numpy for value in values}
    return {name: np.asarray(array, dtypes.get(name)) for name, array in given.items()}


def read_npz(body):
    if not body.startswith(b"PK"):
        raise ValueError("it is no .npz file; send one, or JSON with Content-Type: application/json")
    return dict(np.load(io.BytesIO(body), allow_pickle=False))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    max_body = 64 << 20
    batcher: Batcher

    def log_message(self, *_):
        pass

    def answer(self, status, body, kind="text/plain; charset=utf-8"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/health":
            self.answer(200, b"ok\n")
        elif self.path == "/metrics":
            self.answer(200, self.batcher.metrics().encode())
        else:
            self.answer(404, b"there are /infer, /metrics and /health\n")

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if self.path != "/infer" or not length.isdecimal() or int(length) > self.max_body:
            self.close_connection = True # the body was not read
            self.answer(404 if self.path != "/infer" else 413 if length.isdecimal() else 411, b"POST /infer takes a body of known length, of 64 MiB at most\n")
            return
        body = self.rfile.read(int(length))
        is_json = self.headers.get("Content-Type", "").startswith("application/json")
        try:
            inputs = read_json(body, self.batcher.artifact.inputs) if is_json else read_npz(body)
        except (ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
            self.answer(400, f"the request cannot be read: {error}\n".encode())
            return
        try:
            outputs = self.batcher.run(inputs)
        except tc.TcError as error:
            self.answer(400 if error.code == 4 else 500, f"{error}\n".encode())
        except Overloaded as error:
            self.answer(503, f"{error}\n".encode())
        else:
            if is_json:
                self.answer(200, json.dumps({name: array.tolist() for name, array in outputs.items()}).encode(), "application/json")
            else:
                result = io.BytesIO()
                np.savez(result, **outputs)
                self.answer(200, result.getvalue(), "application/octet-stream")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


def make_server(artifact, host="127.0.0.1", port=0, **options):
    """A server that serve_forever() runs; its address is in server_address."""
    return Server((host, port), type("Handler", (Handler,), {"batcher": Batcher(artifact, **options)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("artifact")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--max-batch", type=int, default=64)
    parser.add_argument("--max-delay-ms", type=float, default=2)
    parser.add_argument("--max-waiting", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    try:
        server = make_server(tc.load(options.artifact, threads=options.threads), options.host, options.port, max_batch=options.max_batch,
                             max_delay=options.max_delay_ms / 1000, max_waiting=options.max_waiting) # fmt: skip
    except (tc.TcError, ValueError, OSError) as error:
        parser.exit(1, f"serve.py: error: {error}\n")
    print(f"http://{server.server_address[0]}:{server.server_address[1]}/infer", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
