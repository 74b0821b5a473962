# Asks about commands that name a file `asked-…`.
if grep -q 'asked-'; then
  printf '{"decision": "ask", "reason": "REASON-ASK shall this run?"}\n'
fi
