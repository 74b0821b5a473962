"""A dispatcher of the wrapped form: wrap, post, print, exit 1 on `continue: false`."""

import json
import os
import sys
import urllib.request

kind = sys.argv[1] if len(sys.argv) > 1 else "unknown"
body = json.dumps({"hook_type": kind, "input_data": json.load(sys.stdin)}).encode()
call = urllib.request.Request(
    os.environ["ANYHOOK_TEST_URL"] + "/hooks/claude",
    data=body,
    headers={"Content-Type": "application/json"},
)
with urllib.request.urlopen(call, timeout=5) as response:
    answer = json.load(response)
print(json.dumps(answer))
sys.exit(0 if answer.get("continue", True) else 1)
