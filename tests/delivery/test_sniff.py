"""What a body is, is read from its bytes; what it claims is only recorded."""

import pytest

from coatcheck.delivery import sniff
from coatcheck.delivery.sniff import Kind, refusal

NOISE = bytes(range(128, 256)) * 8 + bytes(range(32))

BODIES = {
    "image/png": b"\x89PNG\r\n\x1a\n" + NOISE,
    "image/jpeg": b"\xff\xd8\xff\xe0\x00\x10JFIF" + NOISE,
    "image/gif": b"GIF89a" + NOISE,
    "image/webp": b"RIFF\x24\x00\x00\x00WEBPVP8 " + NOISE,
    "image/avif": b"\x00\x00\x00\x1cftypavif\x00\x00\x00\x00mif1avif" + NOISE,
    "image/heic": b"\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00mif1heic" + NOISE,
    "image/heif": b"\x00\x00\x00\x14ftypmif1\x00\x00\x00\x00mif1" + NOISE,
    "image/tiff": b"II*\x00" + NOISE,
    "image/jxl": b"\xff\x0a" + NOISE,
    "video/mp4": b"\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41" + NOISE,
    "video/quicktime": b"\x00\x00\x00\x14ftypqt  \x20\x05\x03\x00qt  " + NOISE,
    "video/webm": b"\x1aE\xdf\xa3\x01\x00\x00\x00\x00\x00\x00\x1fB\x82\x84webm" + NOISE,
    "video/x-matroska": b"\x1aE\xdf\xa3\x01\x00\x00\x00\x00\x00\x00\x1fB\x82\x88matroska" + NOISE,
    "audio/mp4": b"\x00\x00\x00\x18ftypM4A \x00\x00\x00\x00M4A isom" + NOISE,
    "audio/mpeg": b"ID3\x04\x00\x00\x00\x00\x00\x00" + NOISE,
    "audio/wav": b"RIFF\x24\x00\x00\x00WAVEfmt " + NOISE,
    "audio/flac": b"fLaC" + NOISE,
    "audio/ogg": b"OggS" + NOISE,
    "audio/aac": b"\xff\xf1\x50\x80" + NOISE,
    "application/pdf": b"%PDF-1.7\n" + NOISE,
    "application/zip": b"PK\x03\x04" + NOISE,
    "model/gltf-binary": b"glTF\x02\x00\x00\x00" + NOISE,
    "model/gltf+json": b'{"asset": {"version": "2.0"}}',
    "application/octet-stream": NOISE,
    "application/json": b'{"error": "not ready"}',
    "text/plain": "A poem, déjà vu.".encode(),
    "text/html": b"<!DOCTYPE html><html></html>",
    "image/svg+xml": b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>',
    "application/xml": b'<?xml version="1.0"?><MPD/>',
    "text/x-script": b"#!/bin/sh\nrm -rf /\n",
    "application/x-executable": b"\x7fELF\x02\x01\x01" + NOISE,
    "application/x-empty": b"",
}

AWAKE = {
    "page after blanks and a byte order mark": b"\xef\xbb\xbf \r\n\t<HtMl>",
    "page behind a comment": b"<!-- a picture, honestly --><html>",
    "page in UTF-16": "<html><script>x</script>".encode("utf-16"),
    "page in Latin-1": b"<html>\xe9t\xe9</html>",
    "page that begins with a sentence": b"Not found. <script src=x></script>",
    "drawing with a doctype": b'<!DOCTYPE svg PUBLIC "x"><svg onload="x"/>',
    "drawing": b"  <svg onload=alert(1)>",
    "feed": b'<?xml version="1.0"?><rss/>',
    "script": b"(function(){ fetch('/') })()",
    "module": b"import x from './y.js'",
    "strict script": b"'use strict'; alert(1)",
    "shell": b"#!/usr/bin/env python3",
    "picture that is a page": b"GIF89a/*" + NOISE + b"*/<script>alert(1)</script>",
    "png with a page in its comment": b"\x89PNG\r\n\x1a\n" + NOISE + b"tEXt<html ><body onload=x>",
    "pdf with a page": b"%PDF-1.4\n" + NOISE + b"<script >",
    "windows program": b"MZ\x90\x00" + NOISE,
}


@pytest.mark.parametrize("media_type", BODIES)
def test_a_type_is_known_by_its_first_bytes(media_type: str) -> None:
    assert sniff.sniff(BODIES[media_type]).media_type == media_type


@pytest.mark.parametrize(
    "declared", ["image/png", "video/mp4; codecs=avc1", "audio/mpeg", "model/obj", None, "text/html"]
)
@pytest.mark.parametrize("name", AWAKE)
def test_markup_and_script_never_pass(name: str, declared: str | None) -> None:
    assert refusal(declared, sniff.sniff(AWAKE[name])) is not None


@pytest.mark.parametrize("media_type", ["application/zip", "application/json", "application/x-empty"])
def test_archives_error_messages_and_nothing_are_no_media(media_type: str) -> None:
    kind = sniff.sniff(BODIES[media_type])
    assert refusal("image/png", kind) is not None
    assert (refusal(media_type, kind) is None) == (media_type != "application/x-empty")


def test_a_drawing_that_was_declared_as_one_is_kept() -> None:
    assert refusal("image/svg+xml", sniff.sniff(BODIES["image/svg+xml"])) is None


@pytest.mark.parametrize("declared", ["text/plain", "Text/Plain; charset=utf-8", "text/markdown", "text/vtt"])
@pytest.mark.parametrize(
    "words",
    [b"Let me count the ways.", b"Import duties rose.", b"// a note", b"Export\tquality", b"/* lyrics */ la la"],
)
def test_words_that_were_declared_as_words_may_begin_as_a_script_does(words: bytes, declared: str) -> None:
    assert refusal(declared, sniff.sniff(words)) is None
    assert refusal("image/png", sniff.sniff(words)) is not None
    assert refusal(None, sniff.sniff(words)) is not None


@pytest.mark.parametrize("name", ["page in UTF-16", "page that begins with a sentence", "drawing", "feed"])
def test_markup_never_passes_as_words(name: str) -> None:
    assert refusal("text/plain", sniff.sniff(AWAKE[name])) is not None


@pytest.mark.parametrize("body", ["image/webp", "video/mp4", "application/octet-stream", "text/plain"])
def test_a_wrong_label_is_no_reason_to_lose_what_was_paid_for(body: str) -> None:
    assert refusal("image/png", sniff.sniff(BODIES[body])) is None


def test_a_head_cut_inside_a_character_is_still_text() -> None:
    assert sniff.sniff("naïve".encode()[:3]) == sniff.TEXT


def test_extensions_are_short_and_plain() -> None:
    kinds = [value for value in vars(sniff).values() if isinstance(value, Kind)]
    kinds += [kind for _, _, kind in sniff._MAGIC] + list(sniff._RIFF.values()) + list(sniff._BRANDS.values())
    assert all(kind.extension.isalnum() and kind.extension.islower() | kind.extension[0].isdigit() for kind in kinds)
