"""Follows a control plane in tests, and compares what is known with a fresh list."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from podium.kube import LiveState
from podium.kube.access import Access, Target
from podium.kube.client import KubeClient
from podium.kube.feed import Feed
from podium.kube.watch import ClusterWatch
from support.kube_api import KubeApi
from support.kubelike import image


@asynccontextmanager
async def following(kubeconfig: Path) -> AsyncIterator[tuple[LiveState, ClusterWatch]]:
    """Keeps a state current for as long as the block."""
    state = LiveState()
    access = Access(Target(kubeconfig), environ={})
    async with (
        KubeClient(access) as client,
        ClusterWatch(client, Feed(state), random=random.Random(1)) as watch,
    ):
        await asyncio.wait_for(watch.synced(), 120)
        yield state, watch


def fresh(api: KubeApi) -> LiveState:
    """Gives the state that a list gives now."""
    state = LiveState()
    state.replace("Node", api.nodes())
    state.replace("Pod", api.pods())
    return state


async def agrees(state: LiveState, api: KubeApi, within_s: float = 60.0) -> float:
    """Waits until a state is that of a fresh list; gives the time it took."""
    begun_s = time.monotonic()
    expected = image(await asyncio.to_thread(fresh, api))
    while image(state) != expected:
        waited_s = time.monotonic() - begun_s
        assert waited_s < within_s, f"{difference(image(state), expected)} after {waited_s:.1f} s"
        await asyncio.sleep(0.02)
    return time.monotonic() - begun_s


def difference(found: Any, expected: Any) -> str:
    """Names the objects that differ."""
    names = [
        name
        for one, other in zip(found, expected, strict=True)
        for name in sorted(one.keys() | other.keys())
        if one.get(name) != other.get(name)
    ]
    return f"{len(names)} objects differ, such as {names[:3]}"


def write_kubeconfig(folder: Path, access: Any, **changes: Any) -> Path:
    """Writes a kubeconfig like another one, with another port or token."""
    config = access.kubeconfig()
    if "port" in changes:
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{changes['port']}"
    if "token" in changes:
        config["users"][0]["user"]["token"] = changes["token"]
    file = folder / "kubeconfig"
    file.write_text(json.dumps(config))
    return file
