"""The words of Go's encoding/json, as `go run` prints them for the same texts."""

from __future__ import annotations

import pytest

from seatrial.text.gojson import syntax_error


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", ""),
        ('{"a": [1, -2.5e+3, "x\\u00e9\\n", true, null, {}]}', ""),
        ("", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        ("{bad", "invalid character 'b' looking for beginning of object key string"),
        ("{'a': 1}", "invalid character '\\'' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a": 1 "b"}', "invalid character '\"' after object key:value pair"),
        ('{"a": 1,}', "invalid character '}' looking for beginning of object key string"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ('{"a": 1}}', "invalid character '}' after top-level value"),
        ('{"a": tru}', "invalid character '}' in literal true (expecting 'e')"),
        ('{"a": nul', "invalid character ' ' in literal null (expecting 'l')"),
        ('{"a": -x}', "invalid character 'x' in numeric literal"),
        ('{"a": 1.x}', "invalid character 'x' after decimal point in numeric literal"),
        ('{"a": 1ex}', "invalid character 'x' in exponent of numeric literal"),
        ('{"a": 1e+}', "invalid character '}' in exponent of numeric literal"),
        ('{"a": 01}', "invalid character '1' after object key:value pair"),
        ('{"a": "\n"}', "invalid character '\\n' in string literal"),
        ('{"a": "\\x"}', "invalid character 'x' in string escape code"),
        ('{"a": "\\u12g4"}', "invalid character 'g' in \\u hexadecimal character escape"),
        ('{"a": é}', "invalid character 'Ã' looking for beginning of value"),
        ('{"a": "x', "unexpected end of JSON input"),
        ("no", "invalid character 'o' in literal null (expecting 'u')"),
        ("x", "invalid character 'x' looking for beginning of value"),
    ],
)
def test_a_text_that_is_no_json_gets_the_words_of_go(text: str, words: str) -> None:
    assert syntax_error(text) == words
