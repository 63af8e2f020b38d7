"""The type of a body by its first bytes, because a declared type is only a claim.

A body in which markup or script can wake is never taken for media, whatever magic number stands in front of it.
"""

import re
from dataclasses import dataclass

HEAD_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A sniffed type and the extension, without a dot, that an object of it is stored under."""

    media_type: str
    extension: str


UNKNOWN = Kind(media_type="application/octet-stream", extension="bin")
EMPTY = Kind(media_type="application/x-empty", extension="empty")
TEXT = Kind(media_type="text/plain", extension="txt")
HTML = Kind(media_type="text/html", extension="html")
SVG = Kind(media_type="image/svg+xml", extension="svg")
XML = Kind(media_type="application/xml", extension="xml")
SCRIPT = Kind(media_type="text/x-script", extension="script")
EXECUTABLE = Kind(media_type="application/x-executable", extension="exe")
JSON = Kind(media_type="application/json", extension="json")
GLTF = Kind(media_type="model/gltf+json", extension="gltf")
ZIP = Kind(media_type="application/zip", extension="zip")
GZIP = Kind(media_type="application/gzip", extension="gz")
SEVEN_ZIP = Kind(media_type="application/x-7z-compressed", extension="7z")
TAR = Kind(media_type="application/x-tar", extension="tar")

_ACTIVE = frozenset({HTML, SVG, XML, SCRIPT, EXECUTABLE})
_NEVER_MEDIA = frozenset({JSON, ZIP, GZIP, SEVEN_ZIP, TAR})
_MEDIA = ("image/", "video/", "audio/")
# What nothing runs. Prose may begin as a script does: "Let us go", "import duties", "// a note".
_PROSE = frozenset({"text/plain", "text/markdown", "text/csv", "text/vtt", "application/x-subrip"})

_MAGIC: tuple[tuple[int, bytes, Kind], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", Kind(media_type="image/png", extension="png")),
    (0, b"\xff\xd8\xff", Kind(media_type="image/jpeg", extension="jpg")),
    (0, b"GIF87a", Kind(media_type="image/gif", extension="gif")),
    (0, b"GIF89a", Kind(media_type="image/gif", extension="gif")),
    (0, b"II*\x00", Kind(media_type="image/tiff", extension="tif")),
    (0, b"MM\x00*", Kind(media_type="image/tiff", extension="tif")),
    (0, b"\xff\x0a", Kind(media_type="image/jxl", extension="jxl")),
    (0, b"\x00\x00\x00\x0cJXL \r\n\x87\n", Kind(media_type="image/jxl", extension="jxl")),
    (0, b"8BPS", Kind(media_type="image/vnd.adobe.photoshop", extension="psd")),
    (0, b"\x76\x2f\x31\x01", Kind(media_type="image/x-exr", extension="exr")),
    (0, b"ID3", Kind(media_type="audio/mpeg", extension="mp3")),
    (0, b"fLaC", Kind(media_type="audio/flac", extension="flac")),
    (0, b"OggS", Kind(media_type="audio/ogg", extension="ogg")),
    (0, b"MThd", Kind(media_type="audio/midi", extension="mid")),
    (0, b"\x00\x00\x01\xba", Kind(media_type="video/mpeg", extension="mpg")),
    (0, b"FLV\x01", Kind(media_type="video/x-flv", extension="flv")),
    (0, b"%PDF-", Kind(media_type="application/pdf", extension="pdf")),
    (0, b"glTF", Kind(media_type="model/gltf-binary", extension="glb")),
    (0, b"PK\x03\x04", ZIP),
    (0, b"PK\x05\x06", ZIP),
    (0, b"\x1f\x8b", GZIP),
    (0, b"7z\xbc\xaf\x27\x1c", SEVEN_ZIP),
    (0, b"\x7fELF", EXECUTABLE),
    (0, b"MZ", EXECUTABLE),
    (0, b"\xcf\xfa\xed\xfe", EXECUTABLE),
    (0, b"\xca\xfe\xba\xbe", EXECUTABLE),
    (257, b"ustar", TAR),
)
_RIFF = {
    b"WEBP": Kind(media_type="image/webp", extension="webp"),
    b"WAVE": Kind(media_type="audio/wav", extension="wav"),
    b"AVI ": Kind(media_type="video/x-msvideo", extension="avi"),
}
_BRANDS = {
    b"avif": Kind(media_type="image/avif", extension="avif"),
    b"avis": Kind(media_type="image/avif", extension="avif"),
    b"heic": Kind(media_type="image/heic", extension="heic"),
    b"heix": Kind(media_type="image/heic", extension="heic"),
    b"mif1": Kind(media_type="image/heif", extension="heif"),
    b"qt  ": Kind(media_type="video/quicktime", extension="mov"),
    b"M4A ": Kind(media_type="audio/mp4", extension="m4a"),
}
_MP4 = Kind(media_type="video/mp4", extension="mp4")
_WEBM = Kind(media_type="video/webm", extension="webm")
_MATROSKA = Kind(media_type="video/x-matroska", extension="mkv")
_MP3_FRAME = re.compile(rb"\xff[\xe2\xe3\xf2\xf3\xfa\xfb][^\xf0-\xff]")
_AAC_FRAME = re.compile(rb"\xff[\xf0\xf1\xf8\xf9][\x40-\x7f]")
# Whatever these stand in, a browser may be talked into running it: a picture with a page inside is refused as a page.
_AWAKE = re.compile(rb"<(?:!doctype\s+html|html|script|iframe|body|svg)[\s>/]", re.IGNORECASE)
_SCRIPT_START = re.compile(
    r"#!|/\*|//|['\"]use strict|\(\s*(?:async\s*)?(?:function\b|\(\s*\))|(?:async\s+)?function\b|"
    r"(?:var|let|const|import|export)\s|(?:window|document|self|globalthis)[.\[]|(?:alert|eval|settimeout)\("
)
_JSON_START = re.compile(r"\{\s*[\"}]|\[\s*[\[{\"\d\]]")
_TEXT_BYTES = frozenset(range(0x20, 0x7F)) | {0x09, 0x0A, 0x0C, 0x0D, 0x1B}


def sniff(head: bytes) -> Kind:
    """The kind of a body from its first `HEAD_BYTES`. One call: `sniff(b"GIF89a...").media_type == "image/gif"`."""
    if not head:
        return EMPTY
    binary = _binary(head)
    if binary is not None and _AWAKE.search(head) is None:
        return binary
    text = _as_text(head)
    if text is not None:
        return _text(text)
    return HTML if _AWAKE.search(head) is not None else UNKNOWN


def refusal(declared: str | None, kind: Kind) -> str | None:
    """Why a body of `kind` may not stand for the declared type; None when it may.

    A picture declared as another kind of picture, or bytes that nobody knows, are recorded and kept: a wrong label is no reason to
    lose what was paid for. A page, a script, an archive or an error message in place of media is none of it.
    """
    claim = (declared or "").partition(";")[0].strip().lower()
    if kind == EMPTY:
        return "the body is empty"
    if kind in _ACTIVE and not _is_harmless(kind, claim):
        return f"the body is {kind.media_type}"
    if kind in _NEVER_MEDIA and claim.startswith(_MEDIA):
        return f"the body is {kind.media_type} in place of declared media"
    return None


def _is_harmless(kind: Kind, claim: str) -> bool:
    """Whether what could wake elsewhere is what was declared, as a drawing or as words."""
    return (kind == SVG and claim == SVG.media_type) or (kind == SCRIPT and claim in _PROSE)


def _binary(head: bytes) -> Kind | None:
    if head[:4] == b"RIFF" and head[8:12] in _RIFF:
        return _RIFF[head[8:12]]
    if head[4:8] == b"ftyp":
        return _iso_media(head)
    if head[:4] == b"\x1aE\xdf\xa3":
        return _WEBM if b"webm" in head[:64] else _MATROSKA
    for offset, magic, kind in _MAGIC:
        if head.startswith(magic, offset):
            return kind
    if _AAC_FRAME.match(head):
        return Kind(media_type="audio/aac", extension="aac")
    return Kind(media_type="audio/mpeg", extension="mp3") if _MP3_FRAME.match(head) else None


def _iso_media(head: bytes) -> Kind:
    """The major brand decides; a general one (mif1, isom) yields to the first special one among the compatible brands."""
    major = head[8:12]
    end = min(int.from_bytes(head[:4]), 128)
    brands = [major, *(head[start : start + 4] for start in range(16, end, 4))]
    if major in {b"mif1", b"msf1"}:
        brands = [brand for brand in brands if brand in {b"avif", b"avis", b"heic", b"heix"}] or [b"mif1"]
    return _BRANDS.get(brands[0], _MP4)


def _as_text(head: bytes) -> str | None:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head[: len(head) // 2 * 2].decode("utf-16", errors="replace")
    body = head.removeprefix(b"\xef\xbb\xbf")
    if any(byte not in _TEXT_BYTES and byte < 0x80 for byte in body):  # noqa: PLR2004 - ASCII ends there
        return None
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        # The head may end inside a character; anything earlier is no UTF-8, but may still be a page in Latin-1.
        return body[: error.start].decode("utf-8") if error.start >= len(body) - 3 else body.decode("latin-1")


def _text(text: str) -> Kind:
    start = text.lstrip("\ufeff \t\r\n\f").lower()
    if start.startswith("<svg") or (start.startswith(("<?xml", "<!doctype svg", "<!--")) and "<svg" in start):
        return SVG
    if _AWAKE.search(text.encode("utf-8", errors="replace")) is not None:
        return HTML
    if start.startswith("<"):
        return XML if start.startswith("<?xml") else HTML
    if _SCRIPT_START.match(start):
        return SCRIPT
    if _JSON_START.match(start):
        return GLTF if '"asset"' in start else JSON
    return TEXT
