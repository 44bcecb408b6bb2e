"""The tools of the network, built together since they share one way to the web."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from crush_kernel.config.settings import Settings
from crush_kernel.tools.base import AnyTool, erase
from crush_kernel.tools.download import download_tool
from crush_kernel.tools.fetch import fetch_tool
from crush_kernel.tools.filechange import OpenNotebook
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.sourcegraph import sourcegraph_tool
from crush_kernel.tools.web.backends import backend_for
from crush_kernel.tools.web.inquiry import Web
from crush_kernel.tools.web_fetch import web_fetch_tool
from crush_kernel.tools.web_search import web_search_tool


@dataclass(frozen=True, slots=True)
class NetworkTools:
    """The way to the web under one user's settings, and the tools that take it."""

    settings: Settings
    web: Web

    def for_agent(self, paths: PathPolicy, notebook: OpenNotebook) -> tuple[AnyTool, ...]:
        """Return what the agent itself has."""
        return (
            erase(fetch_tool(self.web)),
            erase(download_tool(self.web, paths, notebook=notebook)),
            erase(sourcegraph_tool(self.web)),
        )

    def for_reader(self, folder: Path) -> tuple[AnyTool, ...]:
        """Return what a sub-agent that reads the web has; long pages go to `folder`."""
        backend = partial(
            backend_for,
            self.settings.variable("SEARCH_BACKEND"),
            url=self.settings.variable("SEARCH_URL"),
            brave_key=self.settings.variable("BRAVE_API_KEY"),
        )
        return (
            erase(web_fetch_tool(self.web, folder)),
            erase(web_search_tool(self.web, backend)),
        )


def network_tools(settings: Settings) -> NetworkTools:
    """Return the tools under `settings`; nothing is loaded before the first is called."""
    return NetworkTools(settings, Web(settings.environ))
