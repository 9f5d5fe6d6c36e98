batch=@directory@
runner=@runner@
python=@python@

# The first argument is what the task's number lacks to the job's index: arrays of some sites are small.
index=$((task + ${1:-0}))
# manifest.json has a line for each job, so that a node can read it before it has found an interpreter.
attempt=$(sed -n "s|^ *\"$index\": \"\(.*\)\",\{0,1\}\$|\1|p" "$batch/manifest.json")
if [ -z "$attempt" ]; then
    echo "runyard: job $index is not in $batch/manifest.json, as $(uname -n) sees it" >&2
    exit 1
fi
if ! command -v "$python" >/dev/null 2>&1; then
    echo "runyard: $(uname -n) has no interpreter $python; name one with: runyard site edit --python PATH" >&2
    exit 127
fi
# Where the site has relay=node, its agent left a script that brings the run home. The runner ends as that one.
exec "$python" -I -S "$runner" run "$attempt" "${batch%/*/*}/relay.sh"
