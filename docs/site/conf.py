# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The site of the documentation, which scripts/docs_site.sh builds: every page of the repository where it is, the notebook with what it shows, and the
Python package's reference out of its docstrings. Nothing is written for the site alone, so that pages are read in the repository as well."""
import inspect
import os
import re

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
    release = version = re.search(r"project\(tc VERSION ([0-9.]+)", file.read())[1]
project = "tc"
copyright = "the tc authors, Apache-2.0 WITH LLVM-exception" # noqa: A001, Sphinx's name
root_doc = "README"
extensions = ["myst_nb", "sphinx.ext.autodoc"]
include_patterns = ["*.md", "docs/**.md", "docs/**.ipynb", "examples/**.md", "lib/**.md", "models/**.md", "python/**.md", "test/**.md"]
smartquotes = False # "--" is that of an option
html_theme = "furo"
html_static_path, html_css_files = ["static"], ["site.css"]
html_title = f"tc {version}"
html_show_sourcelink = False
html_copy_source = False

myst_heading_anchors = 4 # as the links of the pages have them
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100

# The README is the front page, and knows nothing of the site.
CONTENTS = """

```{toctree}
:hidden:
:caption: Using tc

docs/python
docs/python-tour
docs/python-api
docs/options
docs/pytorch
docs/from-torch-compile
docs/operators
docs/precision
docs/random-and-bounds
docs/measuring
docs/performance
docs/troubleshooting
docs/debugging
docs/security
examples/custom-op/README
CHANGELOG
```

```{toctree}
:hidden:
:glob:
:caption: Changing tc

docs/tour
docs/performance-history
lib/README
lib/*/README
lib/*/*/README
python/**README
models/**README
test/*/README
THIRD_PARTY_NOTICES
```

```{toctree}
:hidden:
:glob:
:caption: Decisions

**DECISIONS
```
"""


def add_contents(app, docname, source):
    if docname == root_doc:
        source[0] += CONTENTS


def parameters_of(obj):
    try:
        return list(inspect.signature(obj).parameters)
    except (TypeError, ValueError): # of no function
        return []


def to_rst(app, what, name, obj, options, lines):
    """Docstrings are plain text with `code`, in which * and _ are themselves, and sentences that begin with "parameter:" are about it."""
    names = "|".join(map(re.escape, parameters_of(obj)))
    for index, line in enumerate(lines):
        parts = line.split("`")
        parts[::2] = [re.sub(r"([*|\\]|_\b)", r"\\\1", part) for part in parts[::2]]
        lines[index] = "``".join(parts)
        if names:
            lines[index] = re.sub(rf"(^|[.)] )({names}):(?= |$)", r"\1**\2**:", lines[index])


def add_front_page(app, error):
    if error is None and app.builder.name == "html":
        with open(os.path.join(app.outdir, "index.html"), "w", encoding="utf-8") as file:
            file.write(f'<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={root_doc}.html"><a href="{root_doc}.html">tc</a>\n')


def setup(app):
    app.connect("build-finished", add_front_page)
    app.connect("source-read", add_contents)
    app.connect("autodoc-process-docstring", to_rst)
