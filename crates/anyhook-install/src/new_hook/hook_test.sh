#!/bin/sh
# Tests NAME.sh: each line is an exit code and a command.
here=$(dirname "$0")
failed=0
while read -r expected command; do
  printf '{"event":"before_tool_execute","source":"test","data":{"tool_name":"shell","tool_input":{"command":"%s"}}}' "$command" |
    "$here/NAME.sh" 2>/dev/null
  found=$?
  if [ "$found" != "$expected" ]; then
    echo "FAILED: \`$command\`: exit $found, expected $expected"
    failed=1
  fi
done <<'CASES'
2 git push --force
2 git push -f origin main
0 git push
0 ls
CASES
[ "$failed" = 0 ] && echo ok
exit "$failed"
