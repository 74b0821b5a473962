import json, sys
command = json.load(sys.stdin)["tool_input"]["command"]
sys.exit(2 if "secret" in command else 0)
