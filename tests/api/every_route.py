"""Every route of a service, as the framework keeps them: a route that is added is among them without further ado."""

from fastapi import FastAPI
from starlette.routing import BaseRoute, Mount, Route


def requests_of(app: FastAPI) -> list[tuple[str, str]]:
    """Method and path of each route, those that the framework adds too; parameters are in braces.

    Of a folder of files one is named. What answers GET also answers HEAD, which is left out.
    """

    def each(routes: list[BaseRoute]) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for route in routes:
            if isinstance(route, Mount):
                found.append(("GET", f"{route.path}/lagcast.css"))
            elif isinstance(route, Route):
                found += [(method, route.path) for method in sorted(route.methods or ()) if method != "HEAD"]
            else:  # the framework keeps a router that is included as a whole
                found += each(route.original_router.routes)  # type: ignore[attr-defined]  # no public class
        return found

    return each(app.routes)
