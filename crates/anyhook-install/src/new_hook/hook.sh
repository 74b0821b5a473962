#!/bin/sh
# NAME: denies a forced push. Change the rule to yours, then run NAME_test.sh.
#
# The event comes as JSON on stdin. Exit 2 denies, and the model sees what is on
# stderr; exit 0 does not object; anything else is a failure of the hook. Print
# debug text to stderr: stdout is for an answer in JSON.

event=$(cat)
command=$(printf '%s' "$event" | sed -nE 's/.*"command" *: *"(([^"\\]|\\.)*)".*/\1/p')

case "$command" in
*'git push'*--force* | *'git push'*' -f'*)
  echo 'NAME: a forced push can remove the work of others' >&2
  exit 2
  ;;
esac
exit 0
