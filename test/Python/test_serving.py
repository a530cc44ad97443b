# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The service of examples/serving: answers of batches, refusals that stay with their request, limits, metrics.

usage: PYTHONPATH=build/python TC_BIN=build/bin pytest test/Python/test_serving.py
"""
import http.client
import io
import json
import os
import sys
import threading

import numpy as np
import pytest
import tc_compiler as tc

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "examples", "serving"))
from load import load # noqa: E402
from serve import Batcher, Overloaded, make_server # noqa: E402

DIGITS = os.path.join(ROOT, "models", "digits")


@pytest.fixture(scope="module")
def artifact():
    return tc.compile(os.path.join(DIGITS, "model.onnx"), dims={"batch": "bucket:1,4,16"}, threads=1)


@pytest.fixture(scope="module")
def address(artifact):
    server = make_server(artifact, max_batch=16, max_delay=0.005)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield "%s:%d" % server.server_address[:2]
    server.shutdown()
    server.server_close()


def data(name):
    return dict(np.load(os.path.join(DIGITS, name)))


def send(address, body, kind="application/octet-stream", method="POST", path="/infer"):
    connection = http.client.HTTPConnection(address)
    connection.request(method, path, body, {"Content-Type": kind})
    response = connection.getresponse()
    return response.status, response.read()


def npz(**arrays):
    body = io.BytesIO()
    np.savez(body, **arrays)
    return body.getvalue()


def test_batches_answer_as_single_runs(address):
    found = load(address, data("inputs.npz"), clients=8, requests=25, expected=data("outputs.npz"))
    assert found["wrong"] == [] and found["rows_per_batch"] > 1.2
    found = load(address, data("inputs.npz"), clients=1, requests=5, expected=data("outputs.npz"))
    assert found["wrong"] == [] and found["rows_per_batch"] == 1


def test_json_and_several_rows(address):
    images, logits = data("inputs.npz")["images"], data("outputs.npz")["logits"]
    status, body = send(address, json.dumps({"images": images[:3].tolist()}), "application/json")
    assert status == 200
    np.testing.assert_allclose(json.loads(body)["logits"], logits[:3], rtol=0, atol=2e-5 * np.abs(logits).max())
    status, body = send(address, npz(images=images[:16]))
    np.testing.assert_allclose(np.load(io.BytesIO(body))["logits"], logits[:16], rtol=0, atol=2e-5 * np.abs(logits).max())


def test_refusals(address):
    images = data("inputs.npz")["images"]
    for body, kind, sentence in (
        (b"nonsense", "application/octet-stream", "it is no .npz file"),
        (b"PK nonsense", "application/octet-stream", "the request cannot be read"),
        (b"[1]", "application/json", "no object of inputs"),
        (b"{", "application/json", "the request cannot be read"),
        (npz(other=images[:1]), "application/octet-stream", 'input "images" is missing'),
        (npz(images=images[:1], other=images[:1]), "application/octet-stream", 'input "other" is none of the model'),
        (npz(images=np.repeat(images[:1], 17, 0)), "application/octet-stream", "inputs have 17 rows; all need the same number, from 1 to 16"),
        (npz(images=images[:0]), "application/octet-stream", "inputs have 0 rows"),
        (npz(images=np.float32(3)), "application/octet-stream", "inputs have 0 rows"),
        (npz(images=images[:1].astype(np.float64)), "application/octet-stream", "float64, but the model takes float32"),
        (npz(images=images[:1, :, :7]), "application/octet-stream", 'input "images"'),
        (npz(images=np.array([None])), "application/octet-stream", "the request cannot be read"),
    ): # fmt: skip
        status, answer = send(address, body, kind)
        assert status == 400 and sentence in answer.decode(), answer
    assert send(address, b"x", path="/other")[0] == 404 and send(address, None, method="GET", path="/other")[0] == 404
    assert send(address, None, method="GET", path="/health") == (200, b"ok\n")
    status, text = send(address, None, method="GET", path="/metrics")
    assert status == 200 and b"tc_serving_refused_total" in text


def test_refused_requests_leave_others_alone(address):
    """Bad ones among good ones, at once."""
    images, logits, wrong = data("inputs.npz")["images"], data("outputs.npz")["logits"], []

    def client(index):
        for _ in range(10):
            if index % 2:
                status, body = send(address, npz(images=images[index : index + 1]))
                if status != 200 or np.abs(np.load(io.BytesIO(body))["logits"] - logits[index]).max() > 1e-4:
                    wrong.append(body)
            elif send(address, npz(images=images[:1].astype(np.float64)))[0] != 400:
                wrong.append("taken")

    threads = [threading.Thread(target=client, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_limits(artifact):
    class Slow:
        """An artifact whose runs wait."""

        def __init__(self):
            self.begun, self.gate = threading.Event(), threading.Event()
            self.inputs, self.outputs, self.main, self.path = artifact.inputs, artifact.outputs, artifact.main, artifact.path

        def run(self, inputs):
            self.begun.set()
            self.gate.wait(20)
            return artifact.run(inputs)

    slow, images = Slow(), data("inputs.npz")["images"]
    batcher = Batcher(slow, max_batch=1, max_delay=0, max_waiting=2)
    results = []
    threads = [threading.Thread(target=lambda: results.append(batcher.run({"images": images[:1]}))) for _ in range(3)]
    threads[0].start()
    slow.begun.wait(20) # it waits no more: the others are what may
    for thread in threads[1:]:
        thread.start()
    with pytest.raises(Overloaded):
        for _ in range(200):
            if batcher.jobs.full():
                batcher.run({"images": images[:1]})
            threading.Event().wait(0.02)
    slow.gate.set()
    for thread in threads:
        thread.join()
    assert len(results) == 3
    fixed = tc.compile(os.path.join(DIGITS, "model.onnx"), dims={"batch": "4"})
    with pytest.raises(ValueError, match="need one open batch dim in common"):
        Batcher(fixed)
