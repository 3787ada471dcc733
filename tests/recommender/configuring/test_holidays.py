"""C15, holidays: which days they are, and the error for a wrong setting."""

import pickle
from datetime import date
from pathlib import Path

import pytest

from recommender.configuring.holidays import HolidaySettings
from recommender.configuring.settings import Settings, SettingsError, load_settings


def load(tmp_path: Path, groups: str) -> Settings:
    path = tmp_path / "lagcast.yaml"
    path.write_text(f"groups: {groups}")
    return load_settings(path, {})


def test_country_subdivision_and_dates_add_up() -> None:
    """Bavaria's Epiphany, Germany's New Year and a date that is set are holidays; days outside the span are not."""
    settings = HolidaySettings(country="DE", subdivision="BY", dates=(date(2026, 1, 2), date(2027, 1, 2)))
    assert settings.between(date(2025, 12, 27), date(2026, 1, 31)) == tuple(date(2026, 1, day) for day in (1, 2, 6))
    assert HolidaySettings(country="DE").between(date(2026, 1, 2), date(2026, 1, 31)) == ()
    assert HolidaySettings().between(date(2026, 1, 1), date(2026, 12, 31)) == ()


def test_a_span_over_new_year_has_both_years() -> None:
    """History in December and a horizon in January have both Christmas and New Year."""
    days = HolidaySettings(country="DE").between(date(2025, 12, 1), date(2026, 1, 5))
    assert days == (date(2025, 12, 25), date(2025, 12, 26), date(2026, 1, 1))


def test_a_group_has_its_own_calendar_or_the_shared_one(tmp_path: Path) -> None:
    """`*` holds for groups without a calendar, named elsewhere in the file or not; it also reaches Spark's workers."""
    groups = "{'*': {holidays: {country: DE}}, us: {holidays: {dates: [2026-07-04]}}, other: {max_replicas: 3}}"
    calendar = load(tmp_path, groups).holidays(date(2026, 1, 1), date(2026, 12, 31))
    assert calendar("us") == (date(2026, 7, 4),)
    assert calendar("other") == calendar("unnamed")
    assert date(2026, 10, 3) in calendar("unnamed")
    assert pickle.loads(pickle.dumps(calendar)) == calendar  # noqa: S301  # pickled here
    assert load(tmp_path, "{us: {max_replicas: 3}}").holidays(date(2026, 1, 1), date(2026, 12, 31))("us") == ()


@pytest.mark.parametrize(
    ("holidays", "message"),
    [
        ("{country: de}", "groups.o.holidays: country is 'de', which is none of the "),
        ("{country: de}", "the nearest is 'DE', or list the days under `dates`"),
        ("{country: DE, subdivision: BX}", "subdivision of DE is 'BX', which is none of the "),
        ("{country: VA, subdivision: X}", "subdivision of VA is 'X', but none is known there; leave it out"),
        ("{subdivision: BY}", "subdivision is 'BY', of no country; set `country` too"),
        ("{country: NO}", 'write it in quotes: "NO"'),
        ("{dates: [2026-02-30]}", "is not YAML: day is out of range for month"),
        ("{dates: [soon]}", "'groups.o.holidays.dates.0' is 'soon'; input should be a valid date"),
        ("{land: DE}", "unknown key 'groups.o.holidays.land'; known there: country, dates, subdivision"),
    ],
)
def test_a_wrong_setting_gets_one_sentence(tmp_path: Path, holidays: str, message: str) -> None:
    """The error names the place and the code, and what to write instead."""
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, f"{{o: {{holidays: {holidays}}}}}")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
