"""A report: pictures with their sentences and tables as one file of HTML, which loads nothing."""

from collections.abc import Sequence

from api.pictures.html import engine, module, styles, templates
from api.pictures.picture import LIGHT, Picture

# A report of a dozen pictures, each with as many points as a series may have and all of them in its table, is smaller.
MOST_BYTES = 5_000_000


def report(
    title: str,
    pictures: Sequence[Picture],
    *,
    sentences: Sequence[str] = (),
    notes: Sequence[str] = (),
    footer: str = "",
) -> str:
    """The report, in the light theme: `sentences`, pictures, `notes`.

    Its policy lets its own scripts run and no other, and nothing be loaded.
    """
    scripts = (engine(), module())
    policy = (
        f"default-src 'none'; script-src {' '.join(script.source for script in scripts)}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return (
        templates()
        .get_template("report.html")
        .render(
            title=title,
            sentences=sentences,
            notes=notes,
            pictures=pictures,
            footer=footer,
            policy=policy,
            scripts=scripts,
            styles=styles(),
            theme=LIGHT,
        )
    )
