"""The service: one web application that scores, learns and answers for itself.

Its modules need the extra `serve`; the room itself does not, so that its absence can be told.
"""

from podium.service.extra import need_extra

__all__ = ["need_extra"]
