"""Records a real run of `headwater demo` as an animated SVG: `make docs-picture`.

1. Run the command in a pseudo-terminal and note what it writes, and when.
2. Replay that into a terminal emulator (pyte) and take a picture of the screen every so often.
3. Choose frames: few of the time before the first results, because waiting is not worth watching.
4. Write the frames one below the other into an SVG, which a CSS animation moves past a window of one frame. Lines that
   several frames share are written once.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from typing import TypeVar

import pyte

COLUMNS, ROWS = 110, 27
EVERY = 0.8
LONGEST_STILL = 0.8
LAST_STILL = 6.0
MOST_WAITING, MOST_WORKING = 8, 32
CHAR_WIDTH, LINE_HEIGHT, MARGIN, BAR = 8.4, 18, 14, 28
RESULTS = re.compile(r"\d+ s of \d+ s")  # how long results have been there
SPINNER = re.compile("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]")
FAINT = re.compile(r"\x1b\[((?:\d+;)*)2((?:;\d+)*)m")
COLOURS = {
    "black": "#3b4252", "red": "#e06c75", "green": "#98c379", "brown": "#e5c07b", "blue": "#61afef",
    "magenta": "#c678dd", "cyan": "#56b6c2", "white": "#d8dee9", "brightblack": "#7f8896", "brightred": "#e06c75",
    "brightgreen": "#98c379", "brightbrown": "#e5c07b", "brightblue": "#61afef", "brightmagenta": "#c678dd",
    "brightcyan": "#56b6c2", "brightwhite": "#ffffff", "default": "#c8ccd4",
}  # fmt: skip
Span = tuple[int, str, str, bool]  # column, text, colour, bold
Line = tuple[Span, ...]
T = TypeVar("T")


@dataclass(frozen=True)
class Frame:
    lines: tuple[Line, ...]
    seconds: float


def record(command: Sequence[str]) -> Iterator[tuple[float, str]]:
    """What the command writes to its terminal, with the time since its start."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True)
    os.close(theirs)
    began, decoder = time.monotonic(), b""
    while True:
        ready, _, _ = select.select([ours], [], [], 0.1)
        try:
            data = os.read(ours, 65536) if ready else b""
        except OSError:  # the other end is closed
            break
        if not data and not ready and process.poll() is not None:
            break
        decoder += data
        text = decoder.decode("utf-8", errors="ignore") if not _is_cut(decoder) else ""
        if text:
            decoder = b""
            yield time.monotonic() - began, text
    if process.wait() != 0:
        raise SystemExit(f"'{' '.join(command)}' ended with exit code {process.returncode}.")


def _is_cut(data: bytes) -> bool:
    """Whether the last character is not complete."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.end == len(data)
    return False


def screens(chunks: Iterator[tuple[float, str]]) -> Iterator[tuple[float, tuple[Line, ...]]]:
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.Stream(screen)
    due = 0.0
    for when, text in chunks:
        while when >= due:
            yield due, picture(screen)
            due += EVERY
        stream.feed(FAINT.sub(_without_faint, text))
    yield due, picture(screen)


def _without_faint(match: re.Match[str]) -> str:
    """pyte does not know faint text: it becomes grey, unless it has a colour."""
    rest = [part for part in (match[1] + match[2]).split(";") if part]
    coloured = any(len(part) == 2 and part[0] in "39" for part in rest)
    return f"\x1b[{';'.join(rest if coloured else ['90', *rest])}m"


def picture(screen: pyte.Screen) -> tuple[Line, ...]:
    return tuple(_line(screen, row) for row in range(ROWS))


def _line(screen: pyte.Screen, row: int) -> Line:
    cells = [screen.buffer[row][column] for column in range(COLUMNS)]
    spans: list[Span] = []
    column = 0
    for (colour, bold, blank), run in groupby(cells, key=lambda c: (c.fg, c.bold, c.data == " ")):
        text, shade = "".join(cell.data for cell in run), COLOURS.get(colour, f"#{colour}")
        if not blank and spans and spans[-1][2:] == (shade, bold) and column - _end(spans[-1]) == 1:
            spans[-1] = (spans[-1][0], f"{spans[-1][1]} {text}", shade, bold)  # words of one sentence
        elif not blank:
            spans.append((column, text, shade, bold))
        column += len(text)
    return tuple(spans)


def _end(span: Span) -> int:
    return span[0] + len(span[1])


def frames(found: Iterator[tuple[float, tuple[Line, ...]]]) -> list[Frame]:
    """Screens that follow each other and are equal, but for a spinner, are one frame."""
    kept: list[tuple[tuple[Line, ...], int]] = []
    for _, lines in found:
        if kept and _plain(kept[-1][0]) == _plain(lines):
            kept[-1] = (lines, kept[-1][1] + 1)
        elif any(lines):
            kept.append((lines, 1))
    first = next((n for n, (lines, _) in enumerate(kept) if RESULTS.search(_plain(lines))), 0)
    chosen = [*_evenly(kept[:first], MOST_WAITING), *_evenly(kept[first:-1], MOST_WORKING)]
    timed = [Frame(lines, min(LONGEST_STILL, count * EVERY)) for lines, count in chosen]
    return [*timed, Frame(kept[-1][0], LAST_STILL)]


def _evenly(found: Sequence[T], most: int) -> list[T]:
    """At most so many of them, at equal distances."""
    step = max(1.0, len(found) / most)
    return [found[int(n * step)] for n in range(int(len(found) / step))]


def _plain(lines: tuple[Line, ...]) -> str:
    return SPINNER.sub("*", "\n".join(" ".join(text for _, text, _, _ in line) for line in lines))


def svg(shown: Sequence[Frame], title: str) -> str:
    width = round(COLUMNS * CHAR_WIDTH + 2 * MARGIN)
    page = ROWS * LINE_HEIGHT
    height = page + BAR + 2 * MARGIN
    names = {line: f"l{number}" for number, line in enumerate(dict.fromkeys(_lines(shown)))}
    total = sum(frame.seconds for frame in shown)
    steps, at = [], 0.0
    for number, frame in enumerate(shown):
        steps.append(f"{at / total * 100:.2f}%{{transform:translateY(-{number * page}px)}}")
        at += frame.seconds
    best = max(range(len(shown)), key=lambda n: sum(len(text) for line in shown[n].lines for _, text, _, _ in line))
    style = (
        f"@keyframes play{{{''.join(steps)}100%{{transform:translateY(-{(len(shown) - 1) * page}px)}}}}"
        f"#film{{transform:translateY(-{best * page}px);animation:play {total:.1f}s step-end infinite}}"
        "text{font-family:ui-monospace,'SFMono-Regular',Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:14px;"
        "white-space:pre}.b{font-weight:bold}" + "".join(f".{name}{{fill:{c}}}" for c, name in _CLASSES.items()) + ""
        "@media (prefers-reduced-motion:reduce){#film{animation:none}}"
    )
    lines = "".join(f'<g id="{name}">{_drawn(line)}</g>' for line, name in names.items())
    film = "".join(
        f'<use href="#{names[line]}" y="{number * page + row * LINE_HEIGHT + 14}"/>'
        for number, frame in enumerate(shown)
        for row, line in enumerate(frame.lines)
        if line
    )
    dots = "".join(f'<circle cx="{20 + 18 * n}" cy="15" r="5.5" fill="{c}"/>' for n, c in enumerate(_DOTS))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">'
        f"<title>{title}</title><style>{style}</style><defs>{lines}"
        f'<clipPath id="window"><rect width="{width - 2 * MARGIN}" height="{page}"/></clipPath></defs>'
        f'<rect width="{width}" height="{height}" rx="8" fill="#1e222a"/>{dots}'
        f'<text x="{width / 2}" y="20" text-anchor="middle" fill="#7f8896">{title}</text>'
        f'<g transform="translate({MARGIN} {BAR + MARGIN})" clip-path="url(#window)"><g id="film">{film}</g></g>'
        "</svg>\n"
    )


def _lines(shown: Sequence[Frame]) -> Iterator[Line]:
    return (line for frame in shown for line in frame.lines if line)


_CLASSES = {colour: f"c{number}" for number, colour in enumerate(dict.fromkeys(COLOURS.values()))}
_DOTS = ("#e06c75", "#e5c07b", "#98c379")


def _drawn(line: Line) -> str:
    parts = []
    for column, text, colour, bold in line:
        known = _CLASSES.get(colour, "")
        classes = f"{known} b" if bold else known
        paint = f'class="{classes}"' if known else f'class="{classes}" fill="{colour}"'
        place = (
            f'x="{column * CHAR_WIDTH:.1f}" textLength="{len(text) * CHAR_WIDTH:.1f}" lengthAdjust="spacingAndGlyphs"'
        )
        parts.append(f"<text {place} {paint}>{escape(text, quote=False)}</text>")
    return "".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name("demo.svg"))
    parser.add_argument("--title", default="headwater demo")
    parser.add_argument("command", nargs="+", help="after '--': headwater demo --seconds 20")
    options = parser.parse_args()
    shown = frames(screens(record(options.command)))
    options.output.write_text(svg(shown, options.title), encoding="utf-8")


if __name__ == "__main__":
    main()
