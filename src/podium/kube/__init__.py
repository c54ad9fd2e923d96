"""Follows a live cluster: what its API server tells, as the same records that traces give."""

from podium.kube.extra import need_extra
from podium.kube.pod import LiveGang, LivePod, Request, Unreadable
from podium.kube.state import LiveState

__all__ = ["LiveGang", "LivePod", "LiveState", "Request", "Unreadable", "need_extra"]
