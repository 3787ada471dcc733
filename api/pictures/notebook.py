"""Pictures in a notebook: one cell has the engine, each other one its picture, or the table where no script may run."""

from dataclasses import dataclass
from hashlib import sha256

from api.pictures.html import engine, module, option_text, templates
from api.pictures.picture import Picture

_STYLES = ".drawing { display: none; } .drawn .drawing { display: block; height: 22rem; }"


class Engine:
    """What draws the pictures of a notebook: the value of one of its first cells, once for all of them."""

    def __repr__(self) -> str:
        return "Pictures are drawn where scripts run; everywhere else they are tables."

    def _repr_html_(self) -> str:
        drawn_by = module("window.lagcastDraw = draw;\n")
        return (
            f"<style>{_STYLES}</style><script>{engine().text}</script>"
            f'<script type="module">{drawn_by.text}</script>{self!r}'
        )


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture as the value of a cell."""

    picture: Picture

    def _repr_html_(self) -> str:
        name = f"{self.picture.name}-{sha256(option_text(self.picture).encode()).hexdigest()[:12]}"
        return templates().get_template("shown.html").render(picture=self.picture, name=name)

    def __repr__(self) -> str:
        return f"{self.picture.title}. {self.picture.sentence}"
