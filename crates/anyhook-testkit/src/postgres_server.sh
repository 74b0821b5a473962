# Starts a PostgreSQL server in $2 with the programs of $1, prints "ready", and
# lives as long as its standard input: when the test process ends, however it
# ends, the server and its folder go with it.
set -eu
bin=$1
dir=$2
if [ "$(id -u)" = 0 ]; then
    # PostgreSQL refuses to run as root.
    user=nobody
    id postgres >/dev/null 2>&1 && user=postgres
    as="setpriv --reuid=$user --regid=$(id -g $user) --clear-groups"
    chown "$user" "$dir"
else
    as=
fi
cd "$dir"
$as "$bin/initdb" -D "$dir/data" -U anyhook --auth=trust --no-sync -E UTF8 --locale=C >"$dir.log" 2>&1 || {
    cat "$dir.log"
    exit 1
}
$as "$bin/postgres" -D "$dir/data" -k "$dir" -c listen_addresses= -c fsync=off -c max_connections=200 >>"$dir.log" 2>&1 </dev/null &
server=$!
for _ in $(seq 300); do
    if "$bin/pg_isready" -q -h "$dir" -U anyhook; then
        echo ready
        cat >/dev/null || true
        break
    fi
    sleep 0.1
done
kill -INT "$server" || true
wait "$server" || true
rm -rf "$dir" "$dir.log"
