#!/bin/sh
# A reason with everything that is easily lost on the way: lines, quotes, a backslash, other scripts, an emoji.
case $(cat) in
*words.txt*)
    cat << 'REASON' >&2
REASON-WORDS «nicht heute», "quoted" \ and 'single':
  第二行 — zweite Zeile, вторая строка 🛑
	and a tab; $HOME `date` %s <b>&amp;</b>
REASON
    exit 2
    ;;
esac
