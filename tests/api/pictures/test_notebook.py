"""Pictures in a notebook: the engine once, and each picture with its table for where no script may run."""

from api.pictures.notebook import Engine, Shown
from tests.api.pictures.test_report import NOON, File, picture_of


def test_a_picture_is_small_beside_the_engine_and_has_its_table() -> None:
    """A hundred pictures do not carry a hundred engines."""
    shown, engine = Shown(picture_of(("orders", 1.5, NOON)))._repr_html_(), Engine()._repr_html_()
    assert "Group Lag, s At orders 1.50 2026-01-05 12:00:00 UTC" in File(shown).text
    assert len(shown) < 5_000
    assert len(engine) > 1_000_000
    assert File(shown).addresses == File(engine).addresses == []


def test_the_cell_of_a_picture_finds_its_own_figure() -> None:
    """Two pictures differ in their names, and the same one has the same in each run: notebooks can be compared."""
    one, other = (Shown(picture_of(("orders", lag, NOON))) for lag in (1.0, 2.0))
    names = [html._repr_html_().partition('data-shown="')[2].partition('"')[0] for html in (one, other, one)]
    assert names[0] == names[2] != names[1]
    assert f"""querySelectorAll('[data-shown="{names[0]}"]')""" in one._repr_html_()


def test_without_html_a_picture_is_its_sentence() -> None:
    """In a terminal, and for whoever reads the notebook's text."""
    assert repr(Shown(picture_of())) == "Lag. Lag is low."
