# Two images from one file: `web` needs no torch and no emulator, `worker` brings both.
#
#   docker build --target web --tag callboard-web .
#   docker build --target worker --tag callboard-worker .

FROM python:3.11-slim AS base
ENV PATH=/opt/callboard/venv/bin:$PATH \
    PIP_NO_CACHE_DIR=1 \
    PYTHONUNBUFFERED=1 \
    CALLBOARD_HOME=/var/lib/callboard \
    CALLBOARD_LOG_FORMAT=json
WORKDIR /opt/callboard
RUN python -m venv venv \
    && useradd --system callboard \
    && install --directory --owner=callboard --mode=0700 /var/lib/callboard /var/lib/artifacts
COPY pyproject.toml setup.py constraints.txt README.md LICENSE THIRD-PARTY.md ./
COPY alembic alembic
COPY backend backend
COPY workers workers
COPY client client
COPY callboard_cli callboard_cli
COPY callboard_algorithms callboard_algorithms
COPY callboard_environments callboard_environments

FROM base AS documents
COPY docs docs
COPY mkdocs.yml *.md ./
COPY frontend/src/lib/glossary.json frontend/src/lib/glossary.json
RUN pip install --constraint constraints.txt --editable ./client --editable '.[docs]' \
    && mkdocs build --strict --quiet \
    && python -m backend.openapi > openapi.json

FROM node:22-slim AS pages
WORKDIR /src/frontend
COPY frontend/package.json frontend/package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY frontend ./
COPY backend/specs/environments/atari_games.csv ../backend/specs/environments/
COPY --from=documents /opt/callboard/openapi.json ../
RUN npm run api -- ../openapi.json && npm run build

FROM base AS web
RUN pip install --constraint constraints.txt --editable ./client --editable '.[mcp,parquet,s3]'
COPY --from=pages /src/frontend/dist frontend/dist
COPY --from=documents /opt/callboard/site site
USER callboard
EXPOSE 8642
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8642/healthz', timeout=3)"]
CMD ["callboard", "web"]

FROM base AS worker
# MuJoCo renders with these, without a screen.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libegl1 libopengl0 libgl1-mesa-dri \
    && rm -rf /var/lib/apt/lists/*
RUN pip install --constraint constraints.txt --editable ./client --editable '.[worker,gorila,onnx,racing,s3]'
# Where the engine's compiled loops are kept from run to run.
ENV NUMBA_CACHE_DIR=/var/lib/callboard/numba
USER callboard
HEALTHCHECK --interval=30s --timeout=20s --start-period=60s \
    CMD ["callboard", "doctor", "--check", "worker"]
CMD ["callboard", "worker"]
