"""A reader of PDF files of one page, as jsPDF writes them: its size, fonts, and texts with their places."""

import re
import zlib
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

_ASCENT, _DESCENT = 0.73, 0.2
"""Of capitals above the baseline, and of letters below it, as shares of the font's size."""


class Box(NamedTuple):
    """In points from the page's lower left corner."""

    left: float
    bottom: float
    right: float
    top: float


@dataclass(frozen=True)
class PdfText:
    """A line of text."""

    text: str
    box: Box
    colour: tuple[float, float, float]


@dataclass(frozen=True)
class PdfFont:
    """A font that the page uses."""

    name: str
    file: bytes | None
    """Embedded; None if it is not."""
    widths: dict[int, float]
    """By glyph, in thousandths of its size."""
    characters: dict[int, str]


class PdfPage:
    """The only page of a PDF."""

    def __init__(self, file: bytes) -> None:
        self._objects = {
            int(match[1]): match[2] for match in re.finditer(rb"(\d+) 0 obj(.*?)endobj", file, re.DOTALL)
        }
        [page] = [body for body in self._objects.values() if b"/Type /Page " in body.replace(b"\n", b" ")]
        box = re.search(rb"/MediaBox \[([\d. ]+)\]", page)
        assert box is not None
        _, _, self.width_pt, self.height_pt = map(float, box[1].split())
        self.fonts = self._fonts(self._objects[self._reference(page, b"Resources")])
        self.texts = self._texts(self._stream(self._reference(page, b"Contents")))

    @property
    def outside(self) -> list[str]:
        """Texts that are not wholly on the page."""
        page = Box(0, 0, self.width_pt, self.height_pt)
        return [
            text.text
            for text in self.texts
            if text.box.left < page.left
            or text.box.bottom < page.bottom
            or text.box.right > page.right
            or text.box.top > page.top
        ]

    @property
    def overlapping(self) -> list[tuple[str, str]]:
        """Pairs of texts that share a part of the page."""
        return [
            (a.text, b.text)
            for a, b in combinations(self.texts, 2)
            if min(a.box.right, b.box.right) > max(a.box.left, b.box.left)
            and min(a.box.top, b.box.top) > max(a.box.bottom, b.box.bottom)
        ]

    def _reference(self, body: bytes, name: bytes) -> int:
        match = re.search(rb"/" + name + rb" \[?(\d+) 0 R", body)
        assert match is not None, (name, body[:200])
        return int(match[1])

    def _stream(self, number: int) -> bytes:
        head, _, data = self._objects[number].partition(b"stream")
        return zlib.decompressobj().decompress(data.lstrip(b"\r\n")) if b"FlateDecode" in head else data

    def _fonts(self, resources: bytes) -> dict[str, PdfFont]:
        listed = re.search(rb"/Font <<(.*?)>>", resources, re.DOTALL)
        assert listed is not None
        return {
            name.decode(): self._font(int(number))
            for name, number in re.findall(rb"/(\w+) (\d+) 0 R", listed[1])
        }

    def _font(self, number: int) -> PdfFont:
        outer = self._objects[number]
        inner = self._objects[self._reference(outer, b"DescendantFonts")]
        descriptor = self._objects[self._reference(inner, b"FontDescriptor")]
        is_embedded = b"/FontFile2" in descriptor
        widths = re.search(rb"/W \[(.*)\]", inner, re.DOTALL)
        name = re.search(rb"/FontName /([^\s/]+)", descriptor)
        assert widths is not None
        assert name is not None
        mapping = self._stream(self._reference(outer, b"ToUnicode"))
        return PdfFont(
            name[1].decode(),
            self._stream(self._reference(descriptor, b"FontFile2")) if is_embedded else None,
            {int(glyph): float(width) for glyph, width in re.findall(rb"(\d+) \[([\d.]+)\]", widths[1])},
            {
                int(glyph, 16): bytes.fromhex(text.decode()).decode("utf-16-be")
                for glyph, text in re.findall(rb"<([0-9a-fA-F]{4})>\s*<([0-9a-fA-F]+)>\s*\n", mapping)
            },
        )

    def _texts(self, content: bytes) -> list[PdfText]:
        texts: list[PdfText] = []
        matrix = np.eye(3)
        kept: list[np.ndarray] = []
        operands: list[str] = []
        font, size = "", 0.0
        placed = matrix
        colour = (0.0, 0.0, 0.0)
        for token in content.decode("latin-1").split():
            if token == "q":
                kept.append(matrix)
            elif token == "Q":
                matrix = kept.pop()
            elif token == "cm":
                matrix = _matrix(operands) @ matrix
            elif token == "Tm":
                placed = _matrix(operands)
            elif token == "Tf":
                font, size = operands[-2].removeprefix("/"), float(operands[-1])
            elif token == "rg":
                red, green, blue = map(float, operands[-3:])
                colour = (red, green, blue)
            elif token == "Tj":
                texts.append(self._text(operands[-1], self.fonts[font], size, placed @ matrix, colour))
            if re.fullmatch(r"[A-Za-z*]+", token):
                operands = []
            else:
                operands.append(token)
        return texts

    def _text(
        self,
        written: str,
        font: PdfFont,
        size: float,
        matrix: np.ndarray,
        colour: tuple[float, float, float],
    ) -> PdfText:
        codes = written.strip("<>")
        glyphs = [int(codes[at : at + 4], 16) for at in range(0, len(codes), 4)]
        width = sum(font.widths[glyph] for glyph in glyphs) / 1000 * size
        corners = (
            np.array([[x, y, 1.0] for x in (0.0, width) for y in (-_DESCENT * size, _ASCENT * size)]) @ matrix
        )
        (left, bottom), (right, top) = corners[:, :2].min(axis=0), corners[:, :2].max(axis=0)
        text = "".join(font.characters[glyph] for glyph in glyphs)
        return PdfText(text, Box(left, bottom, right, top), colour)


def _matrix(operands: list[str]) -> np.ndarray:
    a, b, c, d, e, f = map(float, operands[-6:])
    return np.array([[a, b, 0.0], [c, d, 0.0], [e, f, 1.0]])
