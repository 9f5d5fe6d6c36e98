# The yard: HTTP on 9090, everything it keeps in the volume /var/lib/runyard. Built at the root of the repository:
#   docker build --file deploy/server.Dockerfile --tag runyard-server .
#   docker run --detach --init --name yard --hostname yard -p 9090:9090 --volume yard:/var/lib/runyard \
#     --env RUNYARD_ALLOWED_HOSTS=yard,yard.lab.example runyard-server
# BASE may be any image with Python 3.11 or newer and its module venv: --build-arg BASE=my-mirror-of-python
ARG BASE=python:3.13-slim
FROM ${BASE}

USER root
COPY pyproject.toml README.md LICENSE /build/
COPY src /build/src
RUN --mount=type=cache,target=/root/.cache/pip \
    python3 -m venv /opt/runyard \
    && /opt/runyard/bin/pip install "/build[postgres,rabbitmq,s3,sweep]" \
    && ln -s /opt/runyard/bin/runyard /usr/local/bin/runyard \
    && useradd --uid 10001 --create-home --home-dir /var/lib/runyard runyard

# In a container, its own address is the only one that others reach. It has nothing that runs could import, and no GPU:
# they are for workers, unless they name its site `local`.
ENV RUNYARD_HOME=/var/lib/runyard \
    RUNYARD_HOST=0.0.0.0 \
    RUNYARD_PORT=9090 \
    RUNYARD_ALLOWED_HOSTS=yard \
    RUNYARD_LOCAL_SITE=named \
    PYTHONUNBUFFERED=1
USER runyard
WORKDIR /var/lib/runyard
VOLUME /var/lib/runyard
EXPOSE 9090
HEALTHCHECK --interval=30s --timeout=20s --start-period=60s CMD ["runyard", "status"]
ENTRYPOINT ["runyard"]
CMD ["up"]
