# Runs one server and outlives its owner by as long as it takes to clean up.
#
# Arguments: the signal that ends the server when its owner is gone, the server's folder, and the
# server's command line.
# Output: the server's process id, on one line. The server itself writes to the standard error, and
# nobody else does: once that is closed, every process of the server is gone.
# Input: one order a line. `gone` means that the owner saw the server end and keeps the folder;
# anything else is a signal for the server. The input closes when the owner is gone, however it
# went; then the server is ended and the folder removed.
#
# The server is not waited for before it has to be: until then its process id belongs to nobody else.
last=$1 folder=$2
shift 2

"$@" </dev/null >&2 &
server=$!
echo "$server"
exec >/dev/null 2>&1

while read -r order; do
    case $order in
    gone)
        wait "$server"
        exit 0
        ;;
    *) kill -s "$order" "$server" ;;
    esac
done

kill -s "$last" "$server"
wait "$server"
cd / && rm -rf "$folder"
