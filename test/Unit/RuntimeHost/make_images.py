#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the images of this folder's test: each format and kind of pixel, and beside each file what Pillow reads in it.

NAME.<format> is the file, NAME.<format>.rgb the pixels as RGB. Needs Pillow and NumPy, and is run by hand; the files are kept.

usage: make_images.py        writes images/ beside it
"""

import os
import sys

import numpy as np
from PIL import Image

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "images")
W, H = 19, 13


def picture(mode):
    """Smooth colours with a bright corner: codecs that lose something lose little of it."""
    y, x = np.mgrid[0:H, 0:W]
    rgb = np.stack([x * 255 // (W - 1), y * 255 // (H - 1), (x + y) * 255 // (W + H - 2)], axis=-1).astype(np.uint8)
    rgb[:4, :4] = (250, 240, 10)
    image = Image.fromarray(rgb)
    if mode in ("RGBA", "LA"):
        alpha = Image.fromarray((x * 13 % 256).astype(np.uint8))
        image = image.convert(mode)
        image.putalpha(alpha)
        return image
    if mode == "P":
        return image.quantize(11)
    if mode == "I;16":
        return Image.fromarray((rgb[..., 0].astype(np.uint16) * 257 + 3).astype(np.uint16))
    return image.convert(mode)


def main():
    os.makedirs(FOLDER, exist_ok=True)
    cases = {}
    for mode in ("RGB", "L", "CMYK"):
        cases[f"{mode.lower()}.jpg"] = (mode, {"quality": 90})
    for sampling in (0, 1, 2):
        cases[f"sampling{sampling}.jpg"] = ("RGB", {"quality": 80, "subsampling": sampling, "progressive": sampling == 1})
    for mode in ("RGB", "L", "P", "1", "RGBA", "LA", "I;16"):
        cases[f"{mode.lower().replace(';', '')}.png"] = (mode, {})
    for mode in ("RGB", "L", "P", "1"):
        cases[f"{mode.lower()}.bmp"] = (mode, {})
    for mode in ("RGB", "L", "1"):
        cases[f"{mode.lower()}.{dict(RGB='ppm', L='pgm')[mode] if mode != '1' else 'pbm'}"] = (mode, {})
    for mode, coding in (("RGB", "raw"), ("RGB", "tiff_lzw"), ("RGB", "jpeg"), ("L", "packbits"), ("P", "tiff_deflate"), ("1", "group4")):
        cases[f"{mode.lower()}_{coding}.tif"] = (mode, {"compression": coding})
    for name, mode, options in (
        ("rgb", "RGB", {}),
        ("lossless", "RGB", {"lossless": True}),
        ("rgba", "RGBA", {"lossless": True, "exact": True}),
    ):
        cases[f"{name}.webp"] = (mode, options)
    cases["animated.webp"] = ("RGB", {"lossless": True, "save_all": True, "append_images": [picture("RGB").rotate(180)]})
    cases["rgb.jp2"] = ("RGB", {})
    cases["l.jp2"] = ("L", {})
    cases["rgb.j2k"] = ("RGB", {"no_jp2": True})
    cases["lossy.jp2"] = ("RGB", {"irreversible": True, "quality_mode": "rates", "quality_layers": [4]})
    for name, (mode, options) in cases.items():
        path = os.path.join(FOLDER, name)
        picture(mode).save(path, **options)
        image = Image.open(path)
        if image.mode == "I;16":  # Pillow clips; the high byte is what is meant
            image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
        pixels = np.asarray(image.convert("RGB"))
        with open(path + ".rgb", "wb") as file:
            file.write(pixels.tobytes())
    print(len(cases), "images in", FOLDER)
    return 0


if __name__ == "__main__":
    sys.exit(main())
