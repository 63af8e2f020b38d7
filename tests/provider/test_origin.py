"""URLs: whom they name and what is asked there, as it is written; whatever is unclear is refused in words that give no secret away."""

import pytest

from coatcheck.provider.origin import Origin, split_url

CLEAR = Origin(secure=False, host="h", port=80, authority="h")


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://h", "/"),
        ("http://h/", "/"),
        ("http://h?x", "/?x"),
        ("http://h?x#y", "/?x"),
        ("http://h#y", "/"),
        ("http://h#/y?z", "/"),
        ("http://h/a#", "/a"),
        ("http://h/a%2Fb//../c;d?e=%23&f=?/:@", "/a%2Fb//../c;d?e=%23&f=?/:@"),
        ("http://h:80/a:0/@b", "/a:0/@b"),
        ("http://h:/", "/"),
        ("HTTP://H/A", "/A"),
    ],
)
def test_path_and_query_are_asked_for_as_they_are_written_and_a_fragment_is_not(url: str, target: str) -> None:
    assert split_url(url) == (CLEAR, target)


@pytest.mark.parametrize(
    ("url", "is_secure", "host", "port", "authority"),
    [
        ("https://h/", True, "h", 443, "h"),
        ("https://h:443/", True, "h", 443, "h"),
        ("https://h:80/", True, "h", 80, "h:80"),
        ("http://h:443/", False, "h", 443, "h:443"),
        ("http://h:1/", False, "h", 1, "h:1"),
        ("http://h:65535/", False, "h", 65535, "h:65535"),
        ("http://[::1]/", False, "::1", 80, "[::1]"),
        ("https://[::1]:8443", True, "::1", 8443, "[::1]:8443"),
    ],
)
def test_the_port_is_told_where_it_is_not_the_usual_one(
    url: str, is_secure: bool, host: str, port: int, authority: str
) -> None:
    assert split_url(url)[0] == Origin(secure=is_secure, host=host, port=port, authority=authority)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        *(("h/hidden", "another form"), ("//h/hidden", "another form"), ("http:/h/hidden", "another form")),
        *(("http://h/hid den", "another form"), ("http://h/hidden\n", "another form"), ("http://h\t/hidden", "another form")),
        *(("http://hidden\u00e9/", "another form"), ("http:///hidden", "another form"), ("http://?hidden", "another form")),
        *(("ftp://h/?hidden", "another scheme"), ("ws://h/hidden", "another scheme")),
        *(("http://hidden@h/", "a user"), ("http://hidden:hidden@h/", "a user"), ("http://@h/hidden", "a user")),
        *(("http://:80/hidden", "no host"), ("http://h:0/hidden", "port 0"), ("http://h:00/hidden", "port 0")),
        *(("http://h:65536/hidden", "a port"), ("http://h:hidden/", "a port"), ("http://h:-1/hidden", "a port")),
        *(("http://h:8:0/hidden", "a port"), ("http://[::1/hidden", "a port"), ("http://u:hidden@h:x/", "a port")),
    ],
)  # fmt: skip
def test_what_is_unclear_is_refused_without_a_word_of_it(url: str, told: str) -> None:
    with pytest.raises(ValueError, match="expected http://") as refused:
        split_url(url)
    assert told in str(refused.value)
    assert "hidden" not in str(refused.value)
    assert refused.value.__suppress_context__ or refused.value.__context__ is None
