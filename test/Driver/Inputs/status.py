"""status.py N COMMAND...: runs the command and fails unless it exits with N. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"""
import subprocess
import sys

code = subprocess.run(sys.argv[2:]).returncode
sys.exit(0 if code == int(sys.argv[1]) else f"exit code {code}, expected {sys.argv[1]}")
