#!/bin/sh
# Denies shell commands that destroy more than they should.
#
# The event comes as JSON on stdin. Exit 2 denies, and the agent reads the text on
# stderr as the reason; exit 0 does not object. Change the list to your needs: it
# prevents accidents, and does not stop anyone who wants to get around it.

# Without quotes, so that these hide nothing.
command=$(sed -nE 's/.*"command":"(([^"\\]|\\.)*)".*/\1/p' | sed "s/\\\\\"//g; s/'//g")

deny() {
  echo "anyhook: $1" >&2
  exit 2
}

has() {
  printf '%s\n' "$command" | grep -Eq -e "$1"
}

start='(^|[;&|(`[:space:]]|\\n)'
end='/*([;&|)`[:space:]]|\\n|$)'

if has "${start}rm[[:space:]]+(-[-[:alpha:]]+[[:space:]]+)*(/|~|\\\$HOME|\\\$\{HOME\}|\.|\.\.|/\*|~/\*)${end}" &&
  has "${start}rm[[:space:]]+([^;&|]*[[:space:]])?(-[[:alpha:]]*[rR]|--recursive)"; then
  deny 'this would remove a whole home, disk or project; name what is to go'
fi
if has "${start}mkfs(\.[[:alnum:]]+)?[[:space:]]" || has "${start}dd[[:space:]].*of=/dev/(sd|hd|nvme|disk|mmcblk)"; then
  deny 'this would overwrite a disk'
fi
if has "${start}git[[:space:]]+push[[:space:]].*(--force([[:space:]]|\$)|-f([[:space:]]|\$))"; then
  deny 'a forced push can remove the work of others; use --force-with-lease, or ask'
fi
if has "${start}(curl|wget)[[:space:]][^|]*\|[[:space:]]*(sudo[[:space:]]+)?(ba|z|da)?sh([[:space:]]|\$)"; then
  deny 'this runs a program from the network unread; download it and look first'
fi
if has "${start}chmod[[:space:]]+(-[[:alpha:]]+[[:space:]]+)*-?[[:alpha:]]*R?[[:space:]]*777[[:space:]]+(/|~)${end}"; then
  deny 'this would open everything to everyone'
fi
exit 0
