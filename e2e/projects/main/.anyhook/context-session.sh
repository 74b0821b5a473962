#!/bin/sh
cat > /dev/null
echo '{"context": "CONTEXT-SESSION this house is blue"}'
