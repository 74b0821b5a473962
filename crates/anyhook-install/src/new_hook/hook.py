"""NAME: denies a forced push. Change `check` to your rule, then run NAME_test.py.

The event comes as JSON on stdin, the answer goes to stdout as JSON; no answer means
no objection. Print debug text to stderr. An exception is a failure of the hook:
`on_failure: block` in the manifest denies the call then.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def check(event: dict[str, Any]) -> str | None:
    """The reason to deny, or None."""
    command = event.get("data", {}).get("tool_input", {}).get("command")
    if not isinstance(command, str):
        return None
    words = command.split()
    if "push" in words and ("--force" in words or "-f" in words):
        return "NAME: a forced push can remove the work of others"
    return None


if __name__ == "__main__":
    reason = check(json.load(sys.stdin))
    if reason is not None:
        json.dump({"decision": "deny", "reason": reason}, sys.stdout)
