#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Check what scripts/demo.sh says beside the demo: help, wrong options, a step that fails, quietly until then.

usage: demo.py SCRIPTS
"""
import os
import pty
import shutil
import subprocess
import sys
import tempfile


def ask(script, *words, **options):
    return subprocess.run(["bash", script, *words], capture_output=True, text=True, **options)


def on_terminal(script, environment):
    """What it prints on a terminal, and its status."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe("bash", ["bash", script], environment)
    text = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        text += part
    return text.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main(scripts):
    script = os.path.join(scripts, "demo.sh")
    result = ask(script, "--help")
    assert result.returncode == 0 and "scripts/demo.sh --tour" in result.stdout and "#" not in result.stdout, result
    result = ask(script, "--tuor")
    assert result.returncode == 1 and result.stderr.startswith('demo.sh: error: "--tuor" is no option'), result

    # In a folder where setup.sh works and build.sh says much and fails.
    with tempfile.TemporaryDirectory(prefix="tc-demo-") as folder:
        inside = os.path.join(folder, "scripts")
        os.mkdir(inside)
        for name in ("demo.sh", "common.sh"):
            shutil.copy(os.path.join(scripts, name), inside)
        for name, body in (("setup.sh", "echo chatter\n"), ("build.sh", "for i in $(seq 40); do echo line $i; done; echo the cause >&2; exit 9\n")):
            with open(os.path.join(inside, name), "w") as f:
                f.write("#!/bin/bash\n" + body)
            os.chmod(os.path.join(inside, name), 0o755)
        environment = {key: value for key, value in os.environ.items() if key != "BUILD_DIR"}
        result = ask(os.path.join(inside, "demo.sh"), env=environment)
        log = os.path.join(folder, "build", "demo.log")
        assert result.returncode == 1, result
        assert result.stdout.splitlines() == [f"== installing what is needed (log: {log})",
                                              f"== building tc, a quarter of an hour on two cores the first time (log: {log})"], result.stdout
        assert "the cause" in result.stderr and "line 40" in result.stderr and "line 20" not in result.stderr, result.stderr
        assert result.stderr.splitlines()[-1].endswith(f"failed with status 9; all of what it said is in {log}"), result.stderr
        with open(log) as f:
            assert f.read().startswith("chatter\nline 1\n")
        text, status = on_terminal(os.path.join(inside, "demo.sh"), environment)
        assert status == 1 and "(log:" not in text and "\r\033[K" in text, text
    print("demo.sh says what it should")


if __name__ == "__main__":
    main(sys.argv[1])
