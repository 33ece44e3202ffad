"""Code points of any script to the few characters that the text rules are written about.

Folding maps one code point to a short string: an ASCII character where there is a plain counterpart, one
of a handful of symbols that have a spoken form, a *marker* for what cannot be spoken, or nothing for what
only modifies its neighbour (combining marks, joiners). Layout that the segmenter has understood is written
into the folded text as control characters, which input can never contain: they fold to a marker.
"""

import unicodedata
from functools import lru_cache

import regex

EMOJI, SCRIPT, CONTROL, SURROGATE, SYMBOL = "\ue001", "\ue002", "\ue003", "\ue004", "\ue005"
DROPPED = {
    EMOJI: "emoji",
    SCRIPT: "characters of a script this model does not speak",
    CONTROL: "control characters",
    SURROGATE: "lone surrogates",
    SYMBOL: "symbols without a spoken form",
}
"""What a marker stands for, as a person would say it."""

LINE = "\f"  # a line begins; nothing is asked of the word before
COMMA_LINE = "\v"  # a line begins and the word before it pauses
STOP_LINE = "\n"  # a line begins and the sentence before it is over
END = "\x04"  # spoken now, whatever follows: the sentence is over
LAYOUT = LINE + COMMA_LINE + STOP_LINE + END

VULGAR = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5),
    "⅘": (4, 5), "⅙": (1, 6), "⅚": (5, 6), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8), "⅒": (1, 10),
}  # fmt: skip
GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta",
    "θ": "theta",
    "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "ο": "omicron", "π": "pi",
    "ρ": "rho",
    "σ": "sigma", "ς": "sigma", "τ": "tau", "υ": "upsilon", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega",
    "Δ": "delta", "Σ": "sigma", "Ω": "omega", "Π": "pi", "Θ": "theta", "Λ": "lambda", "Φ": "phi",
}  # fmt: skip
KEPT = frozenset("–—−×÷±≈≠≤≥°²³€£¥₹₩₽₺₪₫฿₿¢§√∞•→") | VULGAR.keys() | GREEK.keys()
"""Characters outside ASCII that rules know how to say."""

_SPECIAL = {
    **dict.fromkeys("‘’‚‛ʼʹˈ′´＇ʻ", "'"),
    **dict.fromkeys("“”„‟«»‹›″＂「」『』《》〈〉", '"'),
    **dict.fromkeys("‐‑⁃", "-"),
    **dict.fromkeys("‒", "–"),
    **dict.fromkeys("―⸺⸻", "—"),
    **dict.fromkeys("‣◦●▪▫■□∙⋅·‧", "•"),
    **dict.fromkeys("⇒➔➜➡⟶←↔↓↑⇐⇔", "→"),
    **dict.fromkeys("™®©℠¶†‡", ""),
    **dict.fromkeys("。．｡", "."),
    **dict.fromkeys("、，､", ","),
    **dict.fromkeys("ºᵒ˚", "°"),
    "µ": "μ", "℃": "°C", "℉": "°F", "№": "No.", "ℓ": "l", "⁄": "/", "∕": "/", "∗": "*", "∼": "~",
    "ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L",
    "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ı": "i", "ħ": "h", "Ħ": "H", "ŋ": "ng",
    "ə": "e", "ʿ": "", "ʾ": "",
}  # fmt: skip
_WHITE = {"\t": " "} | dict.fromkeys("\n\v\f\r\x85\u2028\u2029", "\n")
_PICTURE = regex.compile(r"[\p{Extended_Pictographic}\p{Regional_Indicator}\p{Emoji_Modifier}]")


@lru_cache(maxsize=8192)
def fold(char: str) -> str:
    """What one code point stands for: "", a space, a line feed, a marker, or a few visible characters."""
    if char in _WHITE:
        return _WHITE[char]
    if " " <= char <= "~":
        return char
    if char in _SPECIAL:
        return _SPECIAL[char]
    if char in KEPT:
        return char
    category = unicodedata.category(char)
    if category == "Cs":
        return SURROGATE
    if category == "Cc":
        return CONTROL
    if category == "Zs":
        return " "
    if category[0] == "M" or category == "Cf":
        return ""
    if category == "Nd":
        return str(unicodedata.digit(char))
    if _PICTURE.match(char):
        return EMOJI
    plain = "".join(c for c in unicodedata.normalize("NFKD", char) if not unicodedata.combining(c))
    plain = plain.replace("\u2044", "/").strip()
    if plain and plain.isascii() and plain.isprintable():
        return plain.replace(" ", "")
    return SYMBOL if category[0] in "SP" else SCRIPT
