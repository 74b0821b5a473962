#!/bin/sh
# Not idempotent: applied twice, it shows.
case $(cat) in
*level-1*) echo '{"updated_input": {"command": "echo level-2 >> levels.txt"}}' ;;
*level-2*) echo '{"updated_input": {"command": "echo level-3 >> levels.txt"}}' ;;
esac
