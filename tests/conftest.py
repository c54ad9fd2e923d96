"""Lets tests run alike wherever they are started."""

import signal


def pytest_configure():
    # A shell that starts the suite in the background lets it, and all it starts, ignore ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Under nohup they ignore that their terminal is gone, too.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
