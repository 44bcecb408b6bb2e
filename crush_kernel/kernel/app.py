"""The process of the kernel: ipykernel's application, less what we do not want of it."""

import logging
from typing import Any

from ipykernel.kernelapp import IPKernelApp

from crush_kernel.kernel.kernel import CrushKernel


class CrushApp(IPKernelApp):
    """Starts a `CrushKernel` with one shell loop on the main thread.

    Without a shell-channel thread no subshells are advertised, so comm messages always
    arrive on the main loop; without stream capture our output is what we publish, and a
    shutdown race of up to 2.5 s is gone.

    Source: ipykernel 7.4 `kernelapp.init_control`, `init_io`.
    """

    name = "crush-kernel"
    kernel_class = CrushKernel
    outstream_class = None  # pyright: ignore[reportAssignmentType] - `None` is what turns it off
    log_level = logging.ERROR

    def init_control(self, context: Any) -> None:  # noqa: ANN401 - signature of the base
        """Open the control channel, and drop the thread that would read the shell channel."""
        super().init_control(context)  # pyright: ignore[reportUnknownMemberType] - untyped base
        self.shell_channel_thread = None

    def start(self) -> None:
        """Run until a shutdown, and let the control thread finish its last message.

        It reports itself idle after it has stopped the loop, and what comes next in this
        thread are the exit handlers, which close the sockets under it.
        """
        super().start()  # pyright: ignore[reportUnknownMemberType] - untyped base
        if self.control_thread is not None:
            self.control_thread.stop()
            self.control_thread.join()

    def init_pdb(self) -> None:
        """Leave the debugger alone: no Python of the user's runs here."""

    def init_gui_pylab(self) -> None:
        """Leave matplotlib alone."""
