# ruff: noqa: PLC0415 - the library takes 0.1 s to import, which only those pay who name a country
"""Days that run like holidays: by country and subdivision, and by date."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from typing import Self

from pydantic import BaseModel, ConfigDict, field_validator, model_validator


class HolidaySettings(BaseModel):
    """Days on which a group's load runs like that of other holidays, in UTC."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    country: str | None = None
    """Country whose public holidays count, by its ISO 3166 code: `DE`, `"NO"` (in quotes, for YAML reads it as no).
    Default: none; the origin of a load is not known."""

    subdivision: str | None = None
    """State or province, by its ISO 3166-2 code without the country's: `BY`. Default: none, what holds nationwide."""

    dates: tuple[date, ...] = ()
    """Further days: company holidays, Black Friday. Past ones too, for it is from them that the next one is forecast.
    Default: none."""

    @field_validator("country", mode="before")
    @classmethod
    def _no_norwegian_false(cls, country: object) -> object:
        if country is False:
            message = 'country is the word that YAML reads as "no"; write it in quotes: "NO"'
            raise ValueError(message)
        return country

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.country is None:
            if self.subdivision is not None:
                message = f"subdivision is '{self.subdivision}', of no country; set `country` too"
                raise ValueError(message)
            return self
        from holidays import list_supported_countries

        countries = list_supported_countries(include_aliases=True)
        if self.country not in countries:
            raise ValueError(_unknown("country", self.country, list(countries)))
        subdivisions = countries[self.country]
        if self.subdivision is not None and self.subdivision not in subdivisions:
            raise ValueError(_unknown(f"subdivision of {self.country}", self.subdivision, subdivisions))
        return self

    def between(self, first: date, last: date) -> tuple[date, ...]:
        """The days from `first` to `last`, both included, in order."""
        days = set(self.dates)
        if self.country is not None:
            from holidays import country_holidays

            days |= set(country_holidays(self.country, subdiv=self.subdivision, years=range(first.year, last.year + 1)))
        return tuple(sorted(day for day in days if first <= day <= last))


@dataclass(frozen=True, slots=True, kw_only=True)
class HolidayCalendar:
    """The holidays of every group over one span: those set for single groups, and those of all others.

    It is called with a group's name, and is a plain value, so that Spark can send it to its workers.
    """

    shared: tuple[date, ...]
    own: Mapping[str, tuple[date, ...]]

    def __call__(self, group: str) -> tuple[date, ...]:
        """The days of `group`."""
        return self.own.get(group, self.shared)


def _unknown(what: str, code: str, known: list[str]) -> str:
    """One sentence on an unknown code.

    >>> _unknown("country", "de", ["AT", "DE"])
    "country is 'de', which is none of the 2 known codes; the nearest is 'DE', or list the days under `dates`"
    """
    if not known:
        return f"{what} is '{code}', but none is known there; leave it out, or list the days under `dates`"
    # Compared in capitals: in codes so short, a difference in case would count as much as other letters.
    near = get_close_matches(code.upper(), known, n=1, cutoff=0.0)[0]
    return (
        f"{what} is '{code}', which is none of the {len(known)} known codes; the nearest is '{near}', or list the days "
        "under `dates`"
    )
