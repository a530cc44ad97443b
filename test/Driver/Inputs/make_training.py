#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes training.pt2, training.npz and training.txt: a small network with AdamW, 30 batches, PyTorch's losses.

usage: PYTHONPATH=build/python make_training.py FOLDER      with PyTorch 2.15; CI needs the files alone
"""
import sys
import zipfile

import numpy as np
import torch
import torch.nn.functional as F
from tc_compiler import export_training
from torch import nn


def main():
    folder = sys.argv[1]
    torch.manual_seed(4)
    module = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.02)
    batches = [(x := torch.randn(8, 4), x[:, :3].argmax(1)) for _ in range(30)]
    export_training(module, F.cross_entropy, optimizer, batches[0], f"{folder}/training.pt2")
    with zipfile.ZipFile(f"{folder}/training.pt2") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(f"{folder}/training.pt2", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    np.savez_compressed(f"{folder}/training.npz", x=torch.stack([x for x, _ in batches]).numpy(), target=torch.stack([t for _, t in batches]).numpy())
    with open(f"{folder}/training.txt", "w") as losses:
        for x, target in batches:
            optimizer.zero_grad()
            loss = F.cross_entropy(module(x), target)
            loss.backward()
            optimizer.step()
            losses.write(f"{float(loss.detach()):.7f}\n")


if __name__ == "__main__":
    main()
