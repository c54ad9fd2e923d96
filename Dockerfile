# podium serve, for charts/podium and `podium kube manifests`:
#   docker build -t podium:0.1.0 .
# Everything that is installed is locked with its hash; nothing is compiled, nothing else is fetched.
ARG PYTHON=docker.io/library/python:3.11.14-slim-bookworm

FROM ${PYTHON} AS build
WORKDIR /source
RUN python -m venv /opt/podium
COPY requirements requirements
RUN /opt/podium/bin/python -m pip install --no-cache-dir --disable-pip-version-check \
    --require-hashes --only-binary :all: --no-deps \
    -r requirements/base.txt -r requirements/serve.txt -r requirements/kube.txt \
    -r requirements/postgres.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/podium/bin/python -m pip install --no-cache-dir --disable-pip-version-check \
    --no-index --no-deps --no-build-isolation .
RUN /opt/podium/bin/podium --version

FROM ${PYTHON}
LABEL org.opencontainers.image.title="Podium" \
      org.opencontainers.image.description="GPU scheduling for Kubernetes that learns." \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/podium /opt/podium
# The only folders that are written to; a cluster mounts volumes there.
RUN install --directory --owner=65532 --group=65532 /var/cache/podium /var/lib/podium
ENV PATH=/opt/podium/bin:$PATH \
    HOME=/tmp \
    XDG_CACHE_HOME=/var/cache \
    XDG_DATA_HOME=/var/lib \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /tmp
# By number, so that Kubernetes can see that it is not root.
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["podium"]
CMD ["serve", "--host", "0.0.0.0"]
