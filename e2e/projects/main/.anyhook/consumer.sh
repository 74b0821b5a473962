#!/bin/sh
# One write per envelope: consumers may run at the same time.
printf '%s\n' "$(cat)" >> openhook.jsonl
