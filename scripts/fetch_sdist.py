#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Download one source archive from the Python package index and unpack it.

usage: fetch_sdist.py PROJECT VERSION SHA256 FOLDER

Used instead of `pip download`, which would prepare the package's metadata and for that install its build dependencies.
Asks the index that pip is set up for (PIP_INDEX_URL, `pip config`, else pypi.org), accepts JSON and HTML indexes, and
trusts nothing but the SHA-256. Unpacks to FOLDER/PROJECT-VERSION, atomically; does nothing where that exists already.
"""
import hashlib
import html.parser
import json
import os
import shutil
import ssl
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.parse
import urllib.request

DEFAULT_INDEX = "https://pypi.org/simple"


class UserError(Exception):
    """What is wrong, as one sentence for the user."""


def index_url():
    if os.environ.get("PIP_INDEX_URL"):
        return os.environ["PIP_INDEX_URL"]
    for key in ("global.index-url", "install.index-url"):
        r = subprocess.run([sys.executable, "-m", "pip", "config", "get", key], capture_output=True, text=True)
        if r.returncode == 0 and r.stdout.strip():
            return r.stdout.strip()
    return DEFAULT_INDEX


def opener_for(url):
    """An opener that sends the user name and password of `url` by basic authentication, and `url` without them."""
    parts = urllib.parse.urlsplit(url)
    handlers = []
    if parts.username:
        host = parts.hostname + (f":{parts.port}" if parts.port else "")
        url = urllib.parse.urlunsplit(parts._replace(netloc=host))
        passwords = urllib.request.HTTPPasswordMgrWithPriorAuth()
        passwords.add_password(None, url, urllib.parse.unquote(parts.username),
                               urllib.parse.unquote(parts.password or ""), is_authenticated=True)
        handlers.append(urllib.request.HTTPBasicAuthHandler(passwords))
    # As pip does, trust the certificates that the user names, for instance those of a company's proxy.
    context = ssl.create_default_context(cafile=os.environ.get("PIP_CERT") or None)
    return urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), *handlers), url


def get(opener, url, accept="*/*", tries=4):
    request = urllib.request.Request(url, headers={"Accept": accept, "User-Agent": "tc-setup"})
    for attempt in range(tries):
        try:
            with opener.open(request, timeout=120) as response:
                return response.headers.get_content_type(), response.read(), response.geturl()
        except OSError as error:
            if attempt == tries - 1:
                raise UserError(f"cannot read {url}: {error}; check the network and pip's index settings")
            time.sleep(2 ** attempt)


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.hrefs = []

    def handle_starttag(self, tag, attrs):
        if tag == "a" and dict(attrs).get("href"):
            self.hrefs.append(dict(attrs)["href"])


def archive_url(opener, index, project, name):
    accept = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
    kind, body, base = get(opener, f"{index.rstrip('/')}/{project}/", accept)
    if kind.endswith("json"):
        urls = [f["url"] for f in json.loads(body)["files"]]
    else:
        links = Links()
        links.feed(body.decode("utf-8", "replace"))
        urls = links.hrefs
    for url in urls:
        url = urllib.parse.urljoin(base, url)
        path = urllib.parse.urlsplit(url).path
        if urllib.parse.unquote(path.rsplit("/", 1)[-1]) == name:
            return urllib.parse.urldefrag(url)[0]
    raise UserError(f"the package index has no {name}; check pip's index settings")


def main(project, version, sha256, folder):
    target = os.path.join(folder, f"{project}-{version}")
    if os.path.isdir(target):
        return
    opener, index = opener_for(index_url())
    url = archive_url(opener, index, project, f"{project}-{version}.tar.gz")
    data = get(opener, url)[1]
    got = hashlib.sha256(data).hexdigest()
    if got != sha256:
        raise UserError(f"{project}-{version}.tar.gz has SHA-256 {got}, expected {sha256}; nothing was unpacked")
    os.makedirs(folder, exist_ok=True)
    work = tempfile.mkdtemp(prefix=".unpack-", dir=folder)
    try:
        archive = os.path.join(work, "archive.tar.gz")
        with open(archive, "wb") as f:
            f.write(data)
        with tarfile.open(archive) as tar:
            tar.extractall(work, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(work)
        os.rename(os.path.join(work, f"{project}-{version}"), target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{project} {version}: unpacked to {target}")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__.split("\n\n")[1])
    try:
        main(*sys.argv[1:])
    except UserError as error:
        sys.exit(f"{os.path.basename(__file__)}: error: {error}")
