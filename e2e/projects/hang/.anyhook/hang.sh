#!/bin/sh
case $(cat) in
*hang.txt*)
    echo $$ > "$HOME/hang.pid.new"
    mv "$HOME/hang.pid.new" "$HOME/hang.pid"
    exec sleep 600
    ;;
esac
