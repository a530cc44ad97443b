#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Type command lines into a shell with the Tab key, and check what the shell makes of them.

usage: completion.py SHELL      bash, zsh or fish; the tools are those of PATH

The tools are replaced in the shell by a function that prints its arguments, so that a line shows what was completed.
"""
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import time

TOOLS = ["tc-compile", "tc-run", "tc-inspect", "tc-bench", "tc-opt"]
# What is typed, with \t for the key, and the arguments that the tool gets.
LINES = [
    ("tc-compile --ver\t", None),  # --verify and --version
    ("tc-compile --veri\t", ["--verify"]),
    ("tc-compile --precision bf\t", ["--precision", "bf16"]),
    ("tc-compile --precision=bf\t", ["--precision=bf16"]),
    ("tc-compile --target cpu,cud\t", ["--target", "cpu,cuda"]),
    ("tc-compile --compile-to sch\t", ["--compile-to", "schedule"]),
    ("tc-compile model\t", ["model.onnx"]),  # not model.txt
    ("tc-compile -o fold\t", ["-o", "folder/"]),
    ("tc-compile --tuning-db tun\t", ["--tuning-db", "tuned.json"]),
    ("tc-run art\t", ["artifact.bin"]),
    ("tc-run artifact.bin --inputs arr\t", ["artifact.bin", "--inputs", "arrays.npz"]),
    ("tc-run model.tune --tune tun\t", ["model.tune", "--tune", "tuned.json"]),
    ("tc-run --device cud\t", ["--device", "cuda"]),
    ("tc-inspect --ope\t", ["--operators"]),
    ("tc-bench --peers ort,open\t", ["--peers", "ort,openvino"]),
    ("tc-bench --against art\t", ["--against", "artifact.bin"]),
    ("tc-opt --tc-phase-sch\t", ["--tc-phase-schedule"]),
    ("tc-opt modu\t", ["module.mlir"]),
]


class Shell:
    """A shell at a terminal of its own. Its prompt is PROMPT."""

    PROMPT = "@@>"

    def __init__(self, words, folder):
        environment = {**os.environ, "TERM": "dumb", "HOME": folder, "PS1": self.PROMPT, "PROMPT_COMMAND": "", "COLUMNS": "400", "LC_ALL": "C.UTF-8"}
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.execvpe(words[0], words, environment)

    def read(self, seconds, until):
        text, end = "", time.monotonic() + seconds
        while time.monotonic() < end and not re.search(until, text):
            if select.select([self.terminal], [], [], 0.1)[0]:
                try:
                    text += os.read(self.terminal, 65536).decode(errors="replace")
                except OSError:
                    break
        return text

    def ask(self, line):
        """The arguments that the function prints for a line; None where it printed none."""
        os.write(self.terminal, line.encode() + b"\r")
        text = self.read(20, r"<<[^$%]*>>[^@]*" + self.PROMPT)
        found = re.findall(r"<<([^$%]*?)>>", text)
        return (found[-1].split("|")[:-1] if found else None), text

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.process, 0)


def setup(shell, folder):
    """The command that starts the shell, which reads the completions as its own start-up file."""
    if shell == "bash":
        lines = [f"{tool}() {{ printf '<<'; printf '%s|' \"$@\"; printf '>>\\n'; }}; source {tool}.bash" for tool in TOOLS]
        lines += [f"PS1='{Shell.PROMPT}'"]  # Debian's own start-up file has set another
        words = ["bash", "--noprofile", "--rcfile", "rc", "-i"]
    elif shell == "zsh":
        # As functions of $fpath, which compinit finds by their names.
        os.mkdir(os.path.join(folder, "functions"))
        for tool in TOOLS:
            os.rename(os.path.join(folder, f"{tool}.zsh"), os.path.join(folder, "functions", f"_{tool}"))
        lines = ["fpath=($HOME/functions $fpath); autoload -Uz compinit; compinit -u -D"]
        lines += [f"{tool}() {{ printf '<<'; printf '%s|' \"$@\"; printf '>>\\n'; }}" for tool in TOOLS]
        lines += ["setopt nolistambiguous; unsetopt prompt_cr prompt_sp"]
        words = ["zsh", "-d", "-i"]
    with open(os.path.join(folder, ".zshrc" if shell == "zsh" else "rc"), "w") as f:
        f.write("\n".join(lines) + "\n")
    return words


def complete_fish(folder, line):
    """fish completes a line without a terminal: the candidates, with the line that one alone makes."""
    script = "".join(f"source {tool}.fish; " for tool in TOOLS) + f"complete -C '{line}'"
    result = subprocess.run(["fish", "--no-config", "-c", script], cwd=folder, capture_output=True, text=True, check=True,
                            env={**os.environ, "HOME": folder})
    assert not result.stderr, result.stderr
    words = [candidate.split("\t")[0] for candidate in result.stdout.splitlines()]
    if len(words) != 1:
        return None, result.stdout
    before = line.split(" ")[1:-1]
    return before + words, result.stdout


def main(shell):
    failed = 0
    with tempfile.TemporaryDirectory(prefix="tc-completion-") as folder:
        for name in ("model.onnx", "model.txt", "artifact.bin", "arrays.npz", "module.mlir", "module.txt", "tuned.json", "tuned.npz"):
            open(os.path.join(folder, name), "w").close()
        os.mkdir(os.path.join(folder, "folder"))
        for tool in TOOLS:
            with open(os.path.join(folder, f"{tool}.{shell}"), "w") as f:
                subprocess.run([tool, "--generate", shell], stdout=f, check=True)
        if shell != "fish":
            terminal = Shell(setup(shell, folder), folder)
            terminal.read(20, re.escape(Shell.PROMPT))
        for line, expected in LINES:
            if shell == "fish":
                got, text = complete_fish(folder, line.rstrip("\t"))
            else:
                got, text = terminal.ask(line)
            if expected is None:  # several candidates: nothing is added
                expected = None if shell == "fish" else [line.split(" ")[1].rstrip("\t")]
            # zsh takes back the slash behind a folder.
            if [word.rstrip("/") for word in got or []] != [word.rstrip("/") for word in expected or []]:
                failed += 1
                print(f"{shell}: {line!r} became {got}, not {expected}\n{text!r}")
        if shell != "fish":
            terminal.close()
    print(f"{len(LINES) - failed} lines completed as they should, {failed} not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
