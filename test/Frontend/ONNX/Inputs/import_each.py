# Imports each ONNX file of a folder, in order of names, and prints what tc-opt says: import_each.py FOLDER
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import glob
import os
import subprocess
import sys

os.chdir(sys.argv[1])
done = subprocess.run(["tc-opt", "--import-onnx-each", *sorted(glob.glob("*.onnx"))], capture_output=True, text=True)
for line in done.stdout.splitlines():
    # "FILE: " is there twice, as the error has it too.
    file, _, rest = line.partition(": ")
    print(rest if rest.startswith(file) else line)
print(done.stderr, end="")
print("exit", done.returncode)
