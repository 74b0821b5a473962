# The user, at a terminal of their own: allows what they are asked, except what names `asked-denied`. Ends with the
# second answer, or after two minutes.
answers=0
for _ in $(seq 600); do
  question=$(anyhook approve --json | jq -r '.[] | select(.seconds_left > 0) | .id + " " + .detail' | head -n 1)
  if [ -n "$question" ]; then
    answer=allow more=
    case $question in *asked-denied*) answer=deny more=--deny ;; esac
    script -qec "anyhook approve ${question%% *} $more" /dev/null && echo "$question" >>"$HOME/answered-$answer"
    answers=$((answers + 1))
    [ "$answers" = 2 ] && exit
  fi
  sleep 0.2
done
