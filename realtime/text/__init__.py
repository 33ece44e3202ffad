"""Text as it streams in to the words that are spoken for it."""

from realtime.text.front_end import SpokenPiece, TextFrontEnd, TextWarning
from realtime.text.normalizer import normalize, spoken_form

__all__ = ["SpokenPiece", "TextFrontEnd", "TextWarning", "normalize", "spoken_form"]
