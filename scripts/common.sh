# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Shared by the scripts of this folder, which source it: strict mode, the repository's root, messages, the Python environment.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

say() { printf '== %s\n' "$*"; }
die() { printf '%s: error: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# The tools that scripts/setup.sh installed come first on PATH; without them those of the caller serve.
if [ -d "$root/.venv/bin" ]; then
  PATH="$root/.venv/bin:$PATH"
fi
