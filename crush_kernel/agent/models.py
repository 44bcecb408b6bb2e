"""The models that are asked: the one in use, and others for as long as they are needed."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.to_thread

from crush_kernel.providers.base import Model, ModelInfo
from crush_kernel.providers.cachemisses import CacheLedger
from crush_kernel.providers.selection import Providers
from crush_kernel.providers.watched import WatchedModel
from crush_kernel.tools.media.mediatype import DOCUMENT_TYPE


@dataclass(slots=True)
class Models:
    """Opens models; owns the connections of the one in use."""

    providers: Providers
    cache: CacheLedger = field(default_factory=CacheLedger)
    """What is known of the prompt caches of the models that were in use."""
    _in_use: WatchedModel | None = None
    _opening: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def info(self) -> ModelInfo | None:
        """What is known about the model in use; `None` before the first was opened."""
        return self._in_use.info if self._in_use else None

    def accepts(self, media_type: str) -> bool:
        """Return whether the model in use takes files of `media_type`; not if none is."""
        if self.info is None:
            return False
        is_document = media_type == DOCUMENT_TYPE
        return self.info.accepts_documents if is_document else self.info.accepts_images

    async def in_use(self) -> Model:
        """Return the model in use, choosing and opening it the first time.

        Raises:
            CrushKernelError: no model can be opened; its hint says what to set.
        """
        async with self._opening:
            if self._in_use is None:
                self._in_use = await self._open(await self.providers.default())
            return self._in_use

    async def choose(self, label: str) -> ModelInfo:
        """Use the model that `label` names from the next turn on; the history is kept."""
        info = await self.providers.find(label)
        model = await self._open(info)
        async with self._opening:
            former, self._in_use = self._in_use, model
        if former is not None:
            await former.aclose()
        return info

    async def keep(self) -> ModelInfo:
        """Remember the model in use as the default of new notebooks."""
        info = (await self.in_use()).info
        await anyio.to_thread.run_sync(self.providers.keep, info)
        return info

    @asynccontextmanager
    async def small(self, large: ModelInfo) -> AsyncGenerator[Model]:
        """Open the small model beside `large` for the block.

        Raises:
            CrushKernelError: there is none that can be opened.
        """
        async with self._beside(await self.providers.small(large)) as model:
            yield model

    @asynccontextmanager
    async def beside(self, name: str, large: ModelInfo) -> AsyncGenerator[Model]:
        """Open the model that a sub-agent wants for the block.

        Args:
            name: `large`, `small`, or a label.
            large: about the model in use. Asked beside the conversation, it tells nothing to
                whoever watches the cache of that.

        Raises:
            CrushKernelError: there is none, or it cannot be opened.
        """
        in_use = self._in_use
        if name == "large" and in_use is not None and in_use.info == large:
            yield in_use.unwatched  # its connections are warm
            return
        match name:
            case "large":
                wanted = self._beside(large)
            case "small":
                wanted = self.small(large)
            case _:
                wanted = self.named(name)
        async with wanted as model:
            yield model

    @asynccontextmanager
    async def named(self, label: str) -> AsyncGenerator[Model]:
        """Open the model that `label` names for the block.

        Raises:
            CrushKernelError: there is none, or it cannot be opened.
        """
        async with self._beside(await self.providers.find(label)) as model:
            yield model

    async def aclose(self) -> None:
        """Close the connections to the model in use."""
        if self._in_use is not None:
            await self._in_use.aclose()

    @asynccontextmanager
    async def _beside(self, info: ModelInfo) -> AsyncGenerator[Model]:
        """Open a model whose cache is none of the conversation's."""
        model = await anyio.to_thread.run_sync(self.providers.open, info)
        try:
            yield model
        finally:
            with anyio.move_on_after(1, shield=True):
                await model.aclose()

    async def _open(self, info: ModelInfo) -> WatchedModel:
        # In a thread: the first import of a vendor's SDK takes a second.
        model = await anyio.to_thread.run_sync(self.providers.open, info)
        return WatchedModel(model, self.cache)
