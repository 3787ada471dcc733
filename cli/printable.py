"""Text of others on a terminal: the name of a group may hold any character, also those that a terminal obeys."""

import json


def printable(text: str) -> str:
    r"""The text as one line, each character that is no letter, sign or space as its escape.

    >>> printable("ord\x1b[2Jers\n\u202e")
    'ord\\x1b[2Jers\\n\\u202e'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def printable_lines(text: str) -> str:
    """The same of each of the lines, which stay lines."""
    return "\n".join(map(printable, text.split("\n")))


def printable_json(document: str) -> str:
    r"""The same document, with such characters in its strings as JSON's own escapes: it reads as before.

    >>> printable_json('{"group": "a\x9b2J"}')
    '{"group": "a\\u009b2J"}'
    """
    return "\n".join(
        line if line.isprintable() else "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in line)
        for line in document.split("\n")
    )
