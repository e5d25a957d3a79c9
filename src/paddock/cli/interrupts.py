"""Ends of a command from outside, for commands that clear away what they made for a moment."""

import asyncio
import signal


def end_as_by_interrupt() -> None:
    """Have SIGTERM and a closed terminal end the command as ctrl+C does: what was made for a moment must not stay."""
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGHUP):
        # `nohup` has the command ignore that its terminal is closed.
        if signal.getsignal(each) is not signal.SIG_IGN:
            loop.add_signal_handler(each, _interrupt)


def _interrupt() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell without job control lets its background jobs ignore SIGINT, so raising it would do nothing.
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)
