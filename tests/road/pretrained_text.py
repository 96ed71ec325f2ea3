"""Reading: where text stands, whether it is upside down, what it says; and what kind of file bytes are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from pretrained_table import TO_ROUNDING, Array, Find, Pair, close, row
from road_models import IMAGENET

from vitrify.runtimes import open as open_model

DRAWN = ("Hello World 12345", "quantize_model v2.1", "NPU INT8 deploy", "float32 -> int8", "i.MX 93 at 1 GHz")
HEIGHT, WIDTH = 48, 640
PAGE = (320, 640)


def drawn(text: str) -> Image.Image:
    """One line of black text on white."""
    font = ImageFont.load_default(34)
    width = int(font.getlength(text)) + 16
    picture = Image.new("RGB", (width, HEIGHT), "white")
    ImageDraw.Draw(picture).text((8, 3), text, "black", font)
    return picture


def as_line(picture: Image.Image, width: int) -> Array:
    """A line at the reader's height, filled up to its width: BGR in -1..1."""
    scaled = picture.resize((min(width, round(picture.width * HEIGHT / picture.height)), HEIGHT))
    values = np.zeros((1, 3, HEIGHT, width), np.float32)
    values[0, :, :, :scaled.width] = (np.asarray(scaled, np.float32)[:, :, ::-1] / 127.5 - 1).transpose(2, 0, 1)
    return values


def as_page(picture: Image.Image) -> Array:
    """A page as the finder of text takes it."""
    scaled = np.asarray(picture.resize(PAGE[::-1]), np.float32)[:, :, ::-1] / 255
    return (((scaled - IMAGENET["mean"]) / IMAGENET["std"]).transpose(2, 0, 1)[None]).astype(np.float32)


def boxes(text_map: Array) -> Iterator[tuple[int, int, int, int]]:
    """Corners (left, top, right, bottom) of connected regions of text, from the top, in the map's pixels."""
    free = text_map > 0.3
    found = []
    while free.any():
        edge = [tuple(np.argwhere(free)[0])]
        free[edge[0]] = False
        region = []
        while edge:
            y, x = edge.pop()
            region.append((y, x))
            for place in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                if 0 <= place[0] < free.shape[0] and 0 <= place[1] < free.shape[1] and free[place]:
                    free[place] = False
                    edge.append(place)
        (top, left), (bottom, right) = np.min(region, axis=0), np.max(region, axis=0) + 1
        if len(region) > 50:
            grow = round(0.4 * min(bottom - top, right - left))
            found.append((int(left) - grow, int(top) - grow, int(right) + grow, int(bottom) + grow))
    yield from sorted(found, key=lambda box: box[1])


@cache
def characters(path: str) -> tuple[str, ...]:
    """What the reader's classes stand for; the first is none."""
    import onnxruntime

    listed = onnxruntime.InferenceSession(path).get_modelmeta().custom_metadata_map["character"]
    return ("", *listed.splitlines(), " ")


def read(output: Array, names: tuple[str, ...]) -> str:
    """The text of one output [1,steps,classes]: repeated classes count once."""
    classes = output[0].argmax(axis=-1)
    kept = np.flatnonzero(np.diff(classes, prepend=0) != 0)
    return "".join(names[classes[k]] for k in kept)


def page_lines(find: Find) -> list[Image.Image]:
    """The lines of the printed page, where the finder's source finds them."""
    page = Image.open(find("skimage_photos/page.png")).convert("RGB")
    with open_model(find("ppocr_v4/ch_PP-OCRv4_det_infer.onnx"), shapes={"x": (1, 3, *PAGE)}) as finder:
        (text_map,) = finder.run({"x": as_page(page)}).values()
    across, down = page.width / PAGE[1], page.height / PAGE[0]
    return [page.crop((round(left * across), round(top * down), round(right * across), round(bottom * down)))
            for left, top, right, bottom in boxes(text_map[0, 0])]


@row("text_finder", "PP-OCRv4, finds text", "ppocr_v4/ch_PP-OCRv4_det_infer.onnx", "lines of text on a printed page",
     shapes={"x": (1, 3, *PAGE)})
def finder(find: Find, pair: Pair) -> str:
    """The corners of every region of text."""
    outputs = pair.first({"x": as_page(Image.open(find("skimage_photos/page.png")).convert("RGB"))})
    close(*outputs)
    before, after = (list(boxes(output[0, 0])) for output in outputs)
    assert before == after
    assert len(before) >= 5
    return f"{len(before)} regions (at least 5) at the same pixels; {TO_ROUNDING}"


@row("text_upright", "PP-OCRv4, tells upside down", "ppocr_v4/ch_ppocr_mobile_v2.0_cls_infer.onnx",
     "drawn lines, upright and turned over", shapes={"x": (1, 3, HEIGHT, 192)})
def upright(find: Find, pair: Pair) -> str:
    """Which way up each line is."""
    right = [0, 0]
    for text in DRAWN:
        for turned in (False, True):
            picture = drawn(text).rotate(180 * turned)
            outputs = pair.first({"x": as_line(picture, 192)})
            close(*outputs)
            told = [bool(output[0].argmax()) for output in outputs]
            assert told[0] == told[1]
            right = [count + (one == turned) for count, one in zip(right, told, strict=True)]
    return f"{right[0]} of {2 * len(DRAWN)} right before, {right[1]} after, the same each time; {TO_ROUNDING}"


@row("text_reader", "PP-OCRv4, reads text", "ppocr_v4/ch_PP-OCRv4_rec_infer.onnx",
     f"{len(DRAWN)} drawn lines and the lines of a printed page", shapes={"x": (1, 3, HEIGHT, WIDTH)})
def reader(find: Find, pair: Pair) -> str:
    """Every line, letter by letter."""
    names = characters(str(find("ppocr_v4/ch_PP-OCRv4_rec_infer.onnx")))
    page = page_lines(find)
    texts: list[str] = []
    for picture in [*map(drawn, DRAWN), *page]:
        outputs = pair.first({"x": as_line(picture, WIDTH)})
        close(*outputs)
        before, after = (read(output, names) for output in outputs)
        assert before == after
        texts.append(after)
    assert all(texts), texts
    exact = [text for text, wanted in zip(texts, DRAWN, strict=False) if text == wanted]
    assert set(DRAWN[:2]) <= set(exact), texts
    quoted = ", ".join(f'"{text}"' for text in exact)
    return f"all {len(texts)} read the same, letter by letter; {TO_ROUNDING}; exactly right: {quoted}"


@row("kind_of_file", "Magika", "magika/model.onnx", "kinds of 5 files", shapes={"bytes": (1, 2048)})
def kind_of_file(find: Find, pair: Pair) -> str:
    """The kind named for the first and last 1,024 bytes of each file."""
    files = ("magika/config.min.json", "skimage_photos/coffee.png", "skimage_photos/rocket.jpg",
             "speech_sample/sample.wav", "digits_cnn/model.py")
    kinds = set()
    for file in files:
        data = find(file).read_bytes()
        ends = [*data[:1024].lstrip().ljust(1024, b"\0")], [*data[-1024:].rstrip().rjust(1024, b"\0")]
        before, after = pair.first({"bytes": np.array([ends[0] + ends[1]], np.int32)})
        close(before, after)
        assert before.argmax() == after.argmax(), file
        kinds.add(int(after.argmax()))
    assert len(kinds) >= 4
    return f"the same kind for each of {len(files)} files, {len(kinds)} different ones (at least 4); {TO_ROUNDING}"
