"""What helps where an operator is not supported: the change at the source that avoids it."""

_RANDOM = "no TFLite kernel makes random numbers: draw them outside and feed them as an input of the model"

HINTS = {
    **dict.fromkeys(
        ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"), _RANDOM
    ),
    "ImageDecoder": "decode the picture before the model and feed its pixels",
}
