"""The service: one web application, composed of components that settings switch on.

Its modules need the extra `serve`; the room itself does not, so that a missing one can be reported.
"""

from podium.service.extra import importing, need_extra

__all__ = ["importing", "need_extra"]
