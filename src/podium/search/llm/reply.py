"""Holds what came back from a service, and says what it means."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podium.search.llm.budget import Charge

TIMEOUT = "time-out"
LOST = "connection lost"
UNREACHABLE = "not reachable"

_KEY_REFUSED = (401, 403)
_OUT_OF_CREDIT = 402
_UNKNOWN_MODEL = 404
_OK = 200
_TOO_MANY = 429
_TOO_SLOW = (408, 409, 425)
_LONGEST_DETAIL = 300


@dataclass(frozen=True, slots=True)
class Reply:
    """Holds a service's answer as it came, or how it failed to come."""

    status: int = 0  # of HTTP; 0: there is none
    text: str = ""
    retry_after: str = ""
    failure: str = ""  # TIMEOUT, LOST or UNREACHABLE

    @property
    def body(self) -> Any:
        """Reads the answer as JSON; None if it is none."""
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            return None

    @property
    def code(self) -> int:
        """Gives the status, also where a service reports an error under status 200."""
        body = self.body
        error = body.get("error") if self.status == _OK and isinstance(body, Mapping) else None
        if not error:
            return self.status
        code = error.get("code") if isinstance(error, Mapping) else None
        return code if isinstance(code, int) and 400 <= code < 600 else 500

    @property
    def is_billed(self) -> bool:
        """Tells whether the service may have charged for it: errors are free, losses may not be."""
        return self.code == _OK or self.failure in (TIMEOUT, LOST)

    @property
    def is_garbled(self) -> bool:
        """Tells whether an answer came that is no JSON object."""
        return self.status == _OK and not isinstance(self.body, Mapping)

    @property
    def is_transient(self) -> bool:
        """Tells whether the same call may succeed a little later."""
        if self.failure or self.is_garbled:
            return True
        code = self.code
        return (code == _TOO_MANY and not self._is_quota) or code >= 500 or code in _TOO_SLOW

    @property
    def stop(self) -> str:
        """Says why no further call of the model can succeed; nothing if one may."""
        code, detail = self.code, self.detail
        if code in _KEY_REFUSED:
            return f"the service does not accept the key ({code}): {detail}"
        if code == _OUT_OF_CREDIT or (code == _TOO_MANY and self._is_quota):
            return f"the account has no credit left ({code}): {detail}"
        if code == _UNKNOWN_MODEL:
            return f"the service knows no such model, or no such address ({code}): {detail}"
        return ""

    @property
    def problem(self) -> str:
        """Says in a sentence why there is no answer; nothing if there is one."""
        if self.failure:
            return f"the service gave no answer: {self.failure}"
        if self.is_garbled:
            return f"the service answered with something that is not JSON: {self.detail}"
        if self.code != _OK:
            return self.stop or f"the service answered with error {self.code}: {self.detail}"
        return ""

    @property
    def detail(self) -> str:
        """Quotes what the service says of itself."""
        return shortened(self.error_message or self.text, _LONGEST_DETAIL) or "no reason given"

    @property
    def error_message(self) -> str:
        """Finds the message of an error, which services put in different places."""
        body = self.body
        error = body.get("error") if isinstance(body, Mapping) else None
        if isinstance(error, Mapping):
            return str(error.get("message") or "")
        return str(error or (body.get("message") if isinstance(body, Mapping) else "") or "")

    @property
    def error_parameter(self) -> str:
        """Names the parameter that an error is about, where the service does."""
        body = self.body
        error = body.get("error") if isinstance(body, Mapping) else None
        return str(error.get("param") or "") if isinstance(error, Mapping) else ""

    @property
    def _is_quota(self) -> bool:
        return "insufficient_quota" in self.text


@dataclass(frozen=True, slots=True)
class Try:
    """Holds one call: what was sent, what came back, and what it cost."""

    model: str
    sent: tuple[str, ...]  # the optional parameters that were sent
    reply: Reply
    charge: Charge
    seconds: float


@dataclass(frozen=True, slots=True)
class Exchange:
    """Holds all calls that were made for one proposal; or why none was made."""

    tries: tuple[Try, ...] = ()
    spent: str = ""  # set: no call was made, and none will be
    is_stopped: bool = False  # not for the budget, but because every model is beyond asking
    note: str = ""  # set: why no further call was made


def shortened(text: str, most: int) -> str:
    """Quotes a text in one line of so many characters."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else line[: most - 3] + "..."
