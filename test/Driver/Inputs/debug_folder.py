"""debug_folder.py FOLDER FILE...: what is in a debug folder and on its page. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"""
import html.parser
import os
import sys

folder, *wanted = sys.argv[1:]
files = set(os.listdir(folder))
assert set(wanted) <= files, (wanted, files)
# Constants stand once.
assert not os.path.islink(f"{folder}/weights.data") and 150_000 < os.path.getsize(f"{folder}/weights.data") < 1_000_000
links = [name for name in files if name.endswith(".mlir.data")]
assert len(links) >= 11 and all(os.readlink(f"{folder}/{name}") == "weights.data" for name in links), links


class Page(html.parser.HTMLParser):
    targets = []

    def handle_starttag(self, tag, attrs):
        assert tag not in ("link", "img", "iframe"), tag
        self.targets += [value for key, value in attrs if key in ("href", "src")]


page = Page()
with open(f"{folder}/index.html", encoding="utf-8") as f:
    page.feed(f.read())
# It leads to every file but itself and the links, and to nothing else.
assert set(page.targets) == files - {"index.html"} - set(links), set(page.targets) ^ files
