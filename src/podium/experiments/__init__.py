"""Experiments as the user asks for them: simulate, compare, search, promote, explain, keep.

The command line, notebooks and services come this way: settings and requests go in, outcomes come
out, and a listener is told what happens in between.
"""
