"""A dispatcher of the wrapped form: wrap with its source, post, print, exit 2 on deny."""

import json
import os
import sys
import urllib.request

kind = sys.argv[1] if len(sys.argv) > 1 else "unknown"
body = {"source": "gemini", "hook_type": kind, "input_data": json.load(sys.stdin)}
call = urllib.request.Request(
    os.environ["ANYHOOK_TEST_URL"] + "/hooks/gemini",
    data=json.dumps(body).encode(),
    headers={"Content-Type": "application/json"},
)
with urllib.request.urlopen(call, timeout=5) as response:
    answer = json.load(response)
print(json.dumps(answer))
sys.exit(0 if answer.get("decision", "allow") == "allow" else 2)
