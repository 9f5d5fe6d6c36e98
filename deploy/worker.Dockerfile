# A worker: an agent that fetches runs from a yard and has them executed here. Built at the root of the repository:
#   docker build --file deploy/worker.Dockerfile --tag runyard-worker .
#   docker run --detach --init --name worker --hostname worker --gpus all --volume worker:/var/lib/runyard \
#     --volume "$PWD/worker_token:/run/secrets/worker_token:ro" --env RUNYARD_TOKEN_FILE=/run/secrets/worker_token \
#     --env RUNYARD_URL=http://yard.lab.example:9090 runyard-worker
# BASE is what the runs need, any image with Python 3.11 or newer and its module venv: --build-arg BASE=my-training-image
# No GPU is needed to build it: the driver comes with --gpus when it starts.
ARG BASE=python:3.13-slim
FROM ${BASE}

USER root
COPY pyproject.toml README.md LICENSE /build/
COPY src /build/src
# An environment of its own: what the base image has installed stays what `python` finds in a run.
RUN --mount=type=cache,target=/root/.cache/pip \
    python3 -m venv /opt/runyard \
    && /opt/runyard/bin/pip install "/build[rabbitmq]" \
    && ln -s /opt/runyard/bin/runyard /usr/local/bin/runyard \
    && useradd --uid 10001 --create-home --home-dir /var/lib/runyard runyard

# RUNYARD_URL and RUNYARD_TOKEN_FILE are for whoever starts it: which yard, and with what.
ENV RUNYARD_HOME=/var/lib/runyard \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    PYTHONUNBUFFERED=1
USER runyard
WORKDIR /var/lib/runyard
VOLUME /var/lib/runyard
HEALTHCHECK --interval=30s --timeout=20s --start-period=60s CMD ["runyard", "status"]
ENTRYPOINT ["runyard"]
CMD ["agent", "--site", "workers"]
