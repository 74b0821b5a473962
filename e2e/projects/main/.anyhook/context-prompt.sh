#!/bin/sh
cat > /dev/null
echo '{"context": "CONTEXT-PROMPT this house is blue"}'
